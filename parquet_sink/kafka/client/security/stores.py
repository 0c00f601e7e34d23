"""Stores of certificates and keys, whose content librdkafka gets as text in memory: nothing of it is written anywhere.

Which of Java's forms a file has is seen from its first bytes, as Java itself does it: a store of type JKS may be a
PKCS#12 file, which is what `keytool` has made since Java 9, and the other way round.
"""

import base64
import logging
import os
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, TypeVar

from parquet_sink.kafka.client.security import jks
from parquet_sink.net import tls

log = logging.getLogger(__name__)

CERTIFICATE: Final = "CERTIFICATE"
KEY: Final = "PRIVATE KEY"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]++)-----((?:(?!-----BEGIN ).)*?)-----END \1-----", re.DOTALL)
MOST_BYTES: Final = 64 << 20
"""No store of certificates is larger."""
_DER: Final = b"\x30"
_PEM: Final = b"-----BEGIN"
CONVERT: Final = "convert it with `keytool -importkeystore -deststoretype PKCS12`"
T = TypeVar("T")


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
    """A block in lines of 64; one with headers of its own (keys encrypted in OpenSSL's old way) keeps its lines."""
    inner = body.strip() if ":" in body else "\n".join(textwrap.wrap(re.sub(r"\s+", "", body), 64))
    return f"-----BEGIN {label}-----\n{inner}\n-----END {label}-----\n"


class StoreUnusable(Exception):
    """Why a store cannot be used.

    setting: what to correct (location, type, password, key.password). reason: a sentence.
    """

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(setting, reason)
        self.setting, self.reason = setting, reason


@dataclass(frozen=True)
class OwnKey:
    """A private key and the certificates that vouch for it, its own first, in PEM form. `key` is a secret."""

    key: str
    chain: str

    def __repr__(self) -> str:
        return "OwnKey(*****)"


class _Good(Generic[T]):
    """What was read last: a store that is being renewed may be torn for a moment, and clients are made meanwhile."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, ...], T] = {}
        self._reported: set[str] = set()

    def last_good(self, key: tuple[str | None, ...], read: Callable[[], T]) -> T:
        """What is read now, else what was read before. Raises StoreUnusable when nothing was."""
        try:
            self._found[key] = read()
        except StoreUnusable as error:
            if key not in self._found:
                raise
            if error.reason not in self._reported:
                self._reported.add(error.reason)
                log.warning(
                    "A store was renewed and cannot be read; what it held before stays in use. %s", error.reason
                )
        return self._found[key]


_TRUSTED: Final = _Good[str]()


_OWN_KEYS: Final = _Good[OwnKey]()


def trusted(path: str, password: str | None) -> str:
    """The certificates of a JKS or PKCS#12 trust store in PEM form. Raises StoreUnusable."""
    return _TRUSTED.last_good((path, password), lambda: _trusted(path, _version(path), password))


def own_key(path: str, password: str, key_password: str | None) -> OwnKey:
    """The one key of a JKS or PKCS#12 key store. key_password: None where it is the store's. Raises StoreUnusable."""
    whole = (path, password, key_password)
    return _OWN_KEYS.last_good(whole, lambda: _own_key(path, _version(path), password, key_password))


def pem_key_store(path: str) -> OwnKey:
    """Key and certificates of a PEM file; the key may be encrypted still. Raises StoreUnusable."""
    data = _read(path)
    if data[:1] == _DER or data[:4] in (jks.JKS, jks.JCEKS):
        raise StoreUnusable("type", f"{path} is not a PEM file; set it to JKS or PKCS12.")
    return own_key_of_text(data.decode(errors="replace"), path)


def pem_certificates(path: str) -> str:
    """The certificates of a PEM file. Raises StoreUnusable."""
    found = certificates(_read(path).decode(errors="replace"))
    if not found:
        raise StoreUnusable("location", f"{path} has no certificate in PEM form; name a file that has.")
    return "".join(found)


def own_key_of_text(text: str, source: str) -> OwnKey:
    """Likewise of a text. source: what messages call it. Raises StoreUnusable."""
    keys, chain = private_keys(text), certificates(text)
    if len(keys) != 1 or not chain:
        found = f"{len(keys)} private key{'' if len(keys) == 1 else 's'} and {len(chain)} certificates"
        raise StoreUnusable("location", f"{source} has {found} in PEM form; it must have one key, and its certificate.")
    return OwnKey(keys[0], "".join(chain))


def _version(path: str) -> tuple[int, ...]:
    """Changes when a file does, so that a store that was renewed is read again."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


@lru_cache(maxsize=32)
def _trusted(path: str, version: tuple[int, ...], password: str | None) -> str:
    data = _read(path)
    found = _of_java(path, data, password) if _is_java(path, data) else None
    certificates = (
        [*found.trusted, *(entry.chain[0] for entry in found.keys if entry.chain)]
        if found is not None
        else _of_pkcs12(path, data, password)[1]
    )
    if not certificates:
        raise StoreUnusable("location", f"{path} has no certificate in it; name a store that has.")
    return "".join(map(certificate_of, dict.fromkeys(certificates)))


@lru_cache(maxsize=32)
def _own_key(path: str, version: tuple[int, ...], password: str, key_password: str | None) -> OwnKey:
    data = _read(path)
    if _is_java(path, data):
        return _key_of_java(path, data, password, key_password)
    key, certificates = _of_pkcs12(path, data, password)
    if key is None or not certificates:
        raise StoreUnusable("location", f"{path} has no private key with a certificate in it; name a store that has.")
    return OwnKey(key_of(key), "".join(map(certificate_of, certificates)))


def _key_of_java(path: str, data: bytes, password: str, key_password: str | None) -> OwnKey:
    if data[:4] == jks.JCEKS:
        raise StoreUnusable("location", f"{path} is a JCEKS store, whose keys only Java can read; {CONVERT}.")
    keys = [entry for entry in _of_java(path, data, password).keys if entry.chain]
    if len(keys) != 1:
        named = ", ".join(entry.alias for entry in keys[:8])
        count = f"{len(keys)} private keys ({named})" if keys else "no private key"
        raise StoreUnusable("location", f"{path} has {count} in it; it must have one.")
    try:
        key = jks.unlock(keys[0], key_password or password)
    except jks.WrongPassword:
        reason = f"It does not open the key {keys[0].alias} in {path}; correct it."
        raise StoreUnusable("key.password", reason) from None
    except jks.DamagedStore as error:
        raise StoreUnusable("location", f"{path} cannot be used: {error}; {CONVERT}.") from None
    return OwnKey(key_of(key), "".join(map(certificate_of, keys[0].chain)))


def _is_java(path: str, data: bytes) -> bool:
    """Whether a file is JKS or JCEKS; False: it looks like PKCS#12. Raises StoreUnusable when it is neither."""
    if _PEM in data[:4096]:
        raise StoreUnusable("type", f"{path} is a PEM file; set it to PEM.")
    if data[:4] in (jks.JKS, jks.JCEKS):
        return True
    if data[:1] != _DER:
        raise StoreUnusable("location", f"{path} is neither a JKS nor a PKCS#12 store; name one.")
    return False


def _of_java(path: str, data: bytes, password: str | None) -> jks.JavaStore:
    try:
        return jks.parse(data, password)
    except jks.WrongPassword:
        raise _wrong_password(path) from None
    except jks.DamagedStore as error:
        raise StoreUnusable("location", f"{path} cannot be used: {error}; {CONVERT}.") from None


def _of_pkcs12(path: str, data: bytes, password: str | None) -> tuple[bytes | None, list[bytes]]:
    """The private key (PKCS#8) and all certificates in DER, the key's own first."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
        key = found.key and found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        all_of_it = [*([found.cert] if found.cert else []), *found.additional_certs]
        return key or None, [one.certificate.public_bytes(Encoding.DER) for one in all_of_it]
    except ValueError as error:
        if "password" in str(error).lower():
            raise _wrong_password(path) from None
        raise StoreUnusable("location", f"{path} is no PKCS#12 store, or it is damaged; correct it.") from None
    except Exception as error:  # noqa: BLE001 - of the library: what it does not know of the form
        kind = type(error).__name__
        raise StoreUnusable("location", f"{path} holds what cannot be read ({kind}); {CONVERT}.") from None


def _wrong_password(path: str) -> StoreUnusable:
    return StoreUnusable("password", f"It is missing or does not open {path}, or the file was changed; correct it.")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(data) > MOST_BYTES:
        raise StoreUnusable("location", f"{path} is larger than any store; name another file.")
    return data


def _unreadable(path: str, error: OSError) -> StoreUnusable:
    reason = tls.describe(error, "a store")
    return StoreUnusable("location", f"{path} cannot be used: {reason}. Name a file that can be read.")
