"""Certificates and keys as text in PEM form: taken out of other text, and written line by line, as OpenSSL wants it.

In a properties file they often stand in one line, and Java takes them so.
"""

import base64
import re
import textwrap
from typing import Final

CERTIFICATE: Final = "CERTIFICATE"
KEY: Final = "PRIVATE KEY"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]++)-----((?:(?!-----BEGIN ).)*?)-----END \1-----", re.DOTALL)


def certificates(text: str) -> list[str]:
    """Every certificate in a text."""
    return [_lines(label, body) for label, body in _BLOCK.findall(text) if label == CERTIFICATE]


def private_keys(text: str) -> list[str]:
    """Every private key in a text, of whatever kind, encrypted ones included."""
    return [_lines(label, body) for label, body in _BLOCK.findall(text) if label.endswith(KEY)]


def certificate_of(der: bytes) -> str:
    """A certificate as text."""
    return _lines(CERTIFICATE, base64.b64encode(der).decode())


def key_of(pkcs8: bytes) -> str:
    """A private key that is not encrypted."""
    return _lines(KEY, base64.b64encode(pkcs8).decode())


def _lines(label: str, body: str) -> str:
    """A block anew; one with headers of its own (keys encrypted in OpenSSL's old way) keeps its lines."""
    inner = body.strip() if ":" in body else "\n".join(textwrap.wrap(re.sub(r"\s+", "", body), 64))
    return f"-----BEGIN {label}-----\n{inner}\n-----END {label}-----\n"
