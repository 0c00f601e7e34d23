"""Text made unreadable: the methods of `connect.ems.obfuscation.method`.

    fix            `*****`, also for empty text
    sha1           SHA-1 of the SHA-1 digest, as the Celonis connector has always stored it: unsalted, so guessable
    sha512         SHA-512 of the SHA-512 digest of salt and text, every value salted
    sha256         SHA-256
    hmac-sha256    keyed, the one to choose

All but the first give hexadecimal digits in lower case; null stays null. Pure, but for a fresh salt for each value,
where that is asked for: a random UUID, unless the caller passes another function.

CPU per value of 19 bytes, with hashlib on OpenSSL 3.0, one core; what repeats is hashed once and costs 0.02 µs:

    fix 0.004 µs, sha256 0.4, sha1 0.6, hmac-sha256 0.95, sha512 1.05 (with a fresh salt 3.2)

Most of it is hashlib making, copying and freeing OpenSSL's state. A prepared state, copied, is no faster for the bare
hashes; for HMAC it takes 40 % of the time of `hmac.digest`.
"""

import hashlib
import hmac
import uuid
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.secret import Secret
from parquet_sink.convert.invalid import NotObfuscated
from parquet_sink.rows.settings import ObfuscationSettings

STARS = "*****"

FreshSalt = Callable[[], str]
_Digests = Callable[[Sequence[bytes]], list[bytes]]

_MOST_BYTES = 2**31 - 1
"""What one Arrow array of text holds."""


def fresh_uuid() -> str:
    """A random salt."""
    return str(uuid.uuid4())


class TextObfuscator:
    """One method with its salt or key."""

    def __init__(self, settings: ObfuscationSettings, fresh_salt: FreshSalt = fresh_uuid) -> None:
        """fresh_salt: called once for each value with sha512 and a random salt, else never."""
        self._digests = _digests(settings, fresh_salt)
        self._repeatable = not (settings.method == "sha512" and settings.random_salt)

    def text(self, value: str) -> str:
        """What leaves instead of `value`."""
        return STARS if self._digests is None else self._digests([value.encode()])[0].hex()

    def array(self, texts: pa.StringArray) -> pa.StringArray:
        """The same for each text; nulls stay. Raises NotObfuscated when the result is beyond 2 GiB."""
        if self._digests is None:
            return pc.if_else(texts.is_valid(), pa.scalar(STARS), pa.scalar(None, pa.string()))
        if not self._repeatable:
            hashed = _hexadecimal(self._digests(texts.drop_null().cast(pa.binary()).to_pylist()))
            return pc.replace_with_mask(texts, texts.is_valid(), hashed)
        encoded = texts.dictionary_encode()
        hashed = _hexadecimal(self._digests(encoded.dictionary.cast(pa.binary()).to_pylist()))
        if len(hashed) == len(texts):
            return hashed
        if len(hashed):
            _limit_bytes(len(texts) * len(hashed[0].as_py()))
        return hashed.take(encoded.indices)


def _digests(settings: ObfuscationSettings, fresh_salt: FreshSalt) -> _Digests | None:
    """The method as digests of many texts in UTF-8; None for `fix`."""
    match settings.method:
        case "fix":
            return None
        case "sha1":
            return _sha1
        case "sha256":
            return _sha256
        case "hmac-sha256":
            return _keyed(_revealed(settings.hmac_key))
        case "sha512" if settings.random_salt:
            return _freshly_salted(fresh_salt)
        case "sha512":
            return _salted(_revealed(settings.salt))


def _revealed(secret: Secret | None) -> bytes:
    assert secret is not None, "the configuration has a salt or key where the method needs one"
    return secret.reveal().encode()


def _sha1(values: Sequence[bytes]) -> list[bytes]:
    sha1 = hashlib.sha1
    return [sha1(sha1(value).digest()).digest() for value in values]


def _sha256(values: Sequence[bytes]) -> list[bytes]:
    sha256 = hashlib.sha256
    return [sha256(value).digest() for value in values]


def _keyed(key: bytes) -> _Digests:
    prepared = hmac.new(key, digestmod="sha256")

    def digests(values: Sequence[bytes]) -> list[bytes]:
        found = []
        for value in values:
            copy = prepared.copy()
            copy.update(value)
            found.append(copy.digest())
        return found

    return digests


def _salted(salt: bytes) -> _Digests:
    sha512 = hashlib.sha512

    def digests(values: Sequence[bytes]) -> list[bytes]:
        return [sha512(sha512(salt + value).digest()).digest() for value in values]

    return digests


def _freshly_salted(fresh_salt: FreshSalt) -> _Digests:
    sha512 = hashlib.sha512

    def digests(values: Sequence[bytes]) -> list[bytes]:
        return [sha512(sha512(fresh_salt().encode() + value).digest()).digest() for value in values]

    return digests


def _hexadecimal(digests: list[bytes]) -> pa.StringArray:
    """One text for each digest, made of one buffer."""
    if not digests:
        return pa.array([], pa.string())
    digits = b"".join(digests).hex().encode()
    width = len(digits) // len(digests)
    _limit_bytes(len(digits))
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(digests), [None, pa.py_buffer(digits)])
    return fixed.cast(pa.string())


def _limit_bytes(size: int) -> None:
    if size > _MOST_BYTES:
        raise NotObfuscated("it has more text to obfuscate than fits into 2 GiB")
