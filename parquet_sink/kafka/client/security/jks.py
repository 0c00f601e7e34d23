"""Java's own key stores (JKS): trusted certificates, and private keys with their certificates.

The form, all numbers big-endian: 0xFEEDFEED, version, count of entries; each a tag (1 private key, 2 certificate), an
alias, a time in milliseconds, and what it holds; at the end a SHA-1 digest that the password goes into. Private keys
are protected by a keystream of SHA-1 digests (the JDK's `sun.security.provider.KeyProtector`). JCEKS, its younger
relative, has the same form and another way to protect keys, so only its certificates are read.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Final

JKS: Final = b"\xfe\xed\xfe\xed"
JCEKS: Final = b"\xce\xce\xce\xce"
DIGEST_BYTES: Final = 20
MOST_ENTRIES: Final = 100_000
_SALTED: Final = b"Mighty Aphrodite"
_PROTECTION: Final = bytes.fromhex("060a2b060104012a02110101")
"""The object id 1.3.6.1.4.1.42.2.17.1.1 of Sun's key protector, in DER."""
_OCTETS: Final = 0x04
_SEQUENCE: Final = 0x30


class DamagedStore(ValueError):
    """It is no store of this form, or a torn one; the message is the begin of a sentence."""


class WrongPassword(ValueError):
    """The password does not fit."""


@dataclass(frozen=True)
class KeyEntry:
    """A private key, still protected, and its certificates in DER, its own first."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True)
class JavaStore:
    """trusted: certificates in DER."""

    trusted: tuple[bytes, ...]
    keys: tuple[KeyEntry, ...]


def parse(data: bytes, password: str | None) -> JavaStore:
    """The content of a store; without a password it is not checked whether somebody changed it, as in Java.

    Raises DamagedStore, WrongPassword.
    """
    if data[:4] not in (JKS, JCEKS):
        raise DamagedStore("it is no JKS store")
    if password is not None:
        said = hashlib.sha1(_wide(password) + _SALTED + data[:-DIGEST_BYTES]).digest()  # noqa: S324 - the form's own
        if not hmac.compare_digest(said, data[-DIGEST_BYTES:]):
            raise WrongPassword
    return _Reader(data[4:-DIGEST_BYTES]).store()


def unlock(entry: KeyEntry, password: str) -> bytes:
    """A private key in the clear, as PKCS#8 in DER. Raises DamagedStore, WrongPassword."""
    info, _ = _element(entry.protected, 0, _SEQUENCE)
    algorithm, after = _element(info, 0, _SEQUENCE)
    if not algorithm.startswith(_PROTECTION):
        raise DamagedStore("its private key is protected in a way that is not JKS's own")
    octets, _ = _element(info, after, _OCTETS)
    salt, secret, check = octets[:DIGEST_BYTES], octets[DIGEST_BYTES:-DIGEST_BYTES], octets[-DIGEST_BYTES:]
    clear = bytes(a ^ b for a, b in zip(secret, _keystream(password, salt, len(secret)), strict=True))
    if not hmac.compare_digest(hashlib.sha1(_wide(password) + clear).digest(), check):  # noqa: S324 - the form's own
        raise WrongPassword
    return clear


def _keystream(password: str, salt: bytes, size: int) -> bytes:
    stream, last, wide = bytearray(), salt, _wide(password)
    while len(stream) < size:
        last = hashlib.sha1(wide + last).digest()  # noqa: S324 - the form's own
        stream += last
    return bytes(stream[:size])


def _wide(password: str) -> bytes:
    """As Java's characters: two bytes each."""
    return password.encode("utf-16-be")


def _element(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    """The content of a DER element at a place, and the place after it."""
    if len(data) < at + 2 or data[at] != tag:
        raise DamagedStore("its private key is damaged")
    size, start = data[at + 1], at + 2
    if size & 0x80:
        width = size & 0x7F
        size, start = int.from_bytes(data[start : start + width], "big"), start + width
    if len(data) < start + size:
        raise DamagedStore("its private key is damaged")
    return data[start : start + size], start + size


class _Reader:
    """Reads a store from what is between its first word and its digest."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def store(self) -> JavaStore:
        version, count = self._number(), self._number()
        if version not in (1, 2) or count > MOST_ENTRIES:
            raise DamagedStore("it is a JKS store of an unknown version, or damaged")
        trusted: list[bytes] = []
        keys: list[KeyEntry] = []
        for _ in range(count):
            tag, alias = self._number(), self._text()
            self._take(8)
            if tag == 1:
                protected = self._take(self._number())
                chain = tuple(self._certificate(version) for _ in range(min(self._number(), MOST_ENTRIES)))
                keys.append(KeyEntry(alias, protected, chain))
            elif tag == 2:
                trusted.append(self._certificate(version))
            else:
                raise DamagedStore("it holds a secret key, which only Java can read")
        return JavaStore(tuple(trusted), tuple(keys))

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._text()  # "X.509"
        return self._take(self._number())

    def _number(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def _text(self) -> str:
        (size,) = struct.unpack(">H", self._take(2))
        return self._take(size).decode(errors="replace")

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise DamagedStore("it is damaged: it ends too early")
        self._at += size
        return taken
