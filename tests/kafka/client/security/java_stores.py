"""Certificates, keys and stores for tests: PKCS#12 by cryptography, JKS written by its description."""

import hashlib
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

SALT = b"0123456789abcdefghij"
PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")


@dataclass(frozen=True)
class Pair:
    """A certificate of its own, with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def pkcs8(self) -> bytes:
        return self.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())

    def key_pem(self, password: str | None = None) -> str:
        how: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()

    def pkcs12(self, password: str, *more: "Pair") -> bytes:
        """A key store; further certificates of its chain."""
        how = BestAvailableEncryption(password.encode())
        others = [one.certificate for one in more]
        return pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, others, how)


@cache
def pair(name: str, *, authority: bool = False) -> Pair:
    """Always the same for a name, within one run of the tests. authority: whether it may sign others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    if authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Pair(builder.sign(key, hashes.SHA256()), key)


def pkcs12_trust(password: str | None, *trusted: Pair) -> bytes:
    """A trust store, which has no key."""
    how: KeySerializationEncryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    return pkcs12.serialize_key_and_certificates(None, None, None, [one.certificate for one in trusted], how)


def jks(password: str, *entries: bytes, magic: int = 0xFEEDFEED, version: int = 2) -> bytes:
    """A store of these entries."""
    body = struct.pack(">III", magic, version, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def trusted_entry(alias: str, of: Pair, version: int = 2) -> bytes:
    """A certificate to trust."""
    return struct.pack(">I", 2) + _text(alias) + bytes(8) + _certificate(of, version)


def key_entry(alias: str, password: str, of: Pair, *more: Pair) -> bytes:
    """A protected key, and its chain."""
    protected = _der(0x30, PROTECTOR + _der(0x04, _protected(of.pkcs8, password)))
    chain = [of, *more]
    certificates = struct.pack(">I", len(chain)) + b"".join(_certificate(one, 2) for one in chain)
    return struct.pack(">I", 1) + _text(alias) + bytes(8) + struct.pack(">I", len(protected)) + protected + certificates


def _protected(clear: bytes, password: str) -> bytes:
    wide, stream, block = password.encode("utf-16-be"), b"", SALT
    while len(stream) < len(clear):
        block = hashlib.sha1(wide + block).digest()
        stream += block
    secret = bytes(a ^ b for a, b in zip(clear, stream, strict=False))
    return SALT + secret + hashlib.sha1(wide + clear).digest()


def _certificate(of: Pair, version: int) -> bytes:
    kind = _text("X.509") if version == 2 else b""
    return kind + struct.pack(">I", len(of.der)) + of.der


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    width = (size.bit_length() + 7) // 8
    return bytes([tag]) + (bytes([size]) if size < 128 else bytes([0x80 | width]) + size.to_bytes(width)) + content
