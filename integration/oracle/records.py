"""The records of a run under faults: each carries its own identity, and a row can be turned back into it. Pure.

A record's value holds an id of its own, the key, a nested field, a field that only some records have, and a checksum
of all of them. From the columns of a row the very bytes of the value are made again, so that a digest of key and value
can be compared with the one that was noted when the record was produced.
"""

import hashlib
import random
import string
import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

KEYS: Final = 500
TOMBSTONE_EVERY: Final = 29
NOTE_EVERY: Final = 5
BAD_EVERY: Final = 31
DROP_EVERY: Final = 37
DIGEST_BYTES: Final = 16
DROP: Final = "drop"
"""A header: who has it is dropped by a transform."""
NEW_FIELDS: Final = "since_"
_LETTERS: Final = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=200_000))


def key_of(number: int) -> bytes:
    """The key of the record with this number; keys come again and again."""
    return b"key-%d" % (number * 7919 % KEYS)


def value_of(number: int) -> bytes | None:
    """The value of the record with this number, None for a tombstone. With each power of two a new field comes."""
    return _value(number, f"größe {number * 2654435761 % 2**32:08x}")


def large_value_of(number: int) -> bytes | None:
    """The same with a text of up to 8 KB that hardly compresses."""
    start, length = number * 7919 % 190_000, number * 104_729 % 8_000
    return _value(number, _LETTERS[start : start + length])


def _value(number: int, payload: str) -> bytes | None:
    if number % TOMBSTONE_EVERY == TOMBSTONE_EVERY - 1:
        return None
    fields: dict[str, Any] = {
        "id": number,
        "key": key_of(number).decode(),
        "amount": number / 8 + 0.1,
        "payload": payload,
        "place": {"street": f"street {number % 1000}"},
    }
    if number % NOTE_EVERY == 0:
        fields["note"] = f"note {number}"
    fields[f"{NEW_FIELDS}{number.bit_length()}"] = number
    return _sealed(fields)


def spoilt(number: int, value: bytes | None) -> bytes | None:
    """The value as it is produced: now and then cut short, so that the record has no row."""
    return value[:-1] if value is not None and number % BAD_EVERY == BAD_EVERY - 1 else value


def is_dropped(number: int) -> bool:
    """Whether the record with this number has the header; tombstones too, but none that is spoilt."""
    return number % DROP_EVERY == DROP_EVERY - 1 and number % BAD_EVERY != BAD_EVERY - 1


def is_spoilt(value: bytes | None) -> bool:
    """Whether a value was cut short."""
    return value is not None and not value.endswith(b"}")


def value_again(
    number: int | None,
    key: str,
    amount: float | None,
    payload: str | None,
    street: str | None,
    note: str | None,
    since: Mapping[str, Any],
    crc: int | None,
) -> bytes:
    """The value that a row stands for, byte for byte if nothing of it was altered; the row's own checksum is used."""
    fields: dict[str, Any] = {"id": number, "key": key, "amount": amount, "payload": payload}
    fields["place"] = {"street": street}
    if note is not None:
        fields["note"] = note
    return orjson.dumps({**fields, **since, "crc": crc})


def digest(key: bytes, value: bytes | None) -> bytes:
    """16 bytes that identify a record's key and value; None is a tombstone."""
    told = b"-" if value is None else b"+" + value
    return hashlib.blake2b(len(key).to_bytes(4, "big") + key + told, digest_size=DIGEST_BYTES).digest()


def _sealed(fields: Mapping[str, Any]) -> bytes:
    return orjson.dumps({**fields, "crc": zlib.crc32(orjson.dumps(fields))})
