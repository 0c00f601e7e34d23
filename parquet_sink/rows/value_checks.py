"""The checks of single values of the keys of rows: each says why a value is wrong and the cure, or None."""

from typing import Final

from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret

SHORTEST_HMAC_KEY: Final = 16
"""Bytes."""


def _column_names(value: Value) -> str | None:
    for name in value if isinstance(value, tuple) else ():
        if not _is_name(name):
            return (
                f"{quoted(name)} cannot be a primary key's name; it must begin with a letter or _ and go on with "
                "letters, digits and _ (names are those after flattening)."
            )
    return None


def _column_name(value: Value) -> str | None:
    if _is_name(str(value)):
        return None
    return f"{quoted(str(value))} cannot be a column's name; begin with a letter or _, then letters, digits and _."


def _is_name(name: str) -> bool:
    plain = name.replace("_", "a")
    return plain[0].isalpha() and plain.isalnum()


def _paths(value: Value) -> str | None:
    names = value if isinstance(value, tuple) else ()
    if not names:
        return "It names no field; name the fields to obfuscate, or remove the key."
    split = {name: tuple(name.split(".")) for name in names}
    for name, steps in split.items():
        if not all(steps):
            return f"{quoted(name)} has a step without a name; write names with single full stops between."
    for name, steps in split.items():
        for other, more in split.items():
            if name != other and more[: len(steps)] == steps:
                return f"{quoted(name)} and {quoted(other)} overlap; keep one of them."
    return None


def _hmac_key(value: Value) -> str | None:
    size = len(value.reveal().encode()) if isinstance(value, Secret) else 0
    if size >= SHORTEST_HMAC_KEY:
        return None
    return f"It has {size} bytes, which is too short to be safe; give a secret of {SHORTEST_HMAC_KEY} bytes or more."


COLUMN_NAMES: Final = Check("each a letter or `_`, then letters, digits, `_`", _column_names)
COLUMN_NAME: Final = Check("a letter or `_`, then letters, digits, `_`", _column_name)
PATHS: Final = Check("paths that do not overlap", _paths)
HMAC_KEY: Final = Check(f"{SHORTEST_HMAC_KEY} bytes or more", _hmac_key)
