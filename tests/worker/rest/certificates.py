"""Certificates for a server on this machine, and for clients; made once, by elliptic curves, which is quick."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)


@dataclass(frozen=True)
class Made:
    """Files in PEM form. authority: its certificate alone. server, client: certificate and key together."""

    authority: Path
    server: Path
    client: Path
    stranger: Path

    def trusting(self, own: Path | None = None) -> ssl.SSLContext:
        """A client's context."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if own is not None:
            context.load_cert_chain(own)
        return context


def make(folder: Path, password: str | None = None) -> Made:
    """All of them. password: of the server's key."""
    authority, authority_key = _certificate("authority", None, None)
    other, other_key = _certificate("another authority", None, None)
    made = {
        "server": _certificate("server", authority, authority_key),
        "client": _certificate("client", authority, authority_key),
        "stranger": _certificate("stranger", other, other_key),
    }
    (folder / "authority.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    for name, (certificate, key) in made.items():
        locked = password if name == "server" else None
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + _pem(key, locked))
    return Made(*(folder / f"{name}.pem" for name in ("authority", "server", "client", "stranger")))


def _pem(key: ec.EllipticCurvePrivateKey, password: str | None) -> bytes:
    lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def _certificate(
    name: str, issuer: x509.Certificate | None, issuer_key: ec.EllipticCurvePrivateKey | None
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signer = issuer_key or key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - dt.timedelta(days=1))
        .not_valid_after(_NOW + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if issuer is None:
        usage = dict.fromkeys(
            (
                *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
                *("key_agreement", "encipher_only", "decipher_only"),
            ),
            False,
        )
        builder = builder.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
    return builder.sign(signer, hashes.SHA256()), key
