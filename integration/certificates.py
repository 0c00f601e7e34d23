"""Certificates for tests of TLS, made by openssl."""

import ssl
import subprocess
from pathlib import Path


def make(folder: Path) -> Path:
    """Fills the folder with a CA, and certificates of it: good, expired, for another host; each with its key."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder, timeout=60)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=Test CA")
    for name, subject, days in (
        ("good", "127.0.0.1", "30"),
        ("expired", "127.0.0.1", "-1"),
        ("other", "10.9.8.7", "30"),
    ):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / f"{name}.ext").write_text(f"subjectAltName=IP:{subject}\n")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days]
        openssl("x509", "-req", "-in", f"{name}.csr", *signing, "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        (folder / f"{name}.pem").write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return folder


def server_context(folder: Path, name: str) -> ssl.SSLContext:
    """What a server shows as its certificate: `good`, `expired` or `other`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem")
    return context
