"""Checks of single values that keys of several rooms share: each says why a value is wrong and the cure, or None."""

from typing import Final

from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted

ABSENT: Final = "must be absent"


def printable_text(value: Value) -> str | None:
    """Why a text cannot stand in a header or a log line; None when it can."""
    if not str(value).isprintable():
        return f"{quoted(str(value))} holds control characters; remove them."
    return None


def only(wanted: bool, why: str) -> Check:
    """A flag of which one value is possible here."""
    word = str(wanted).lower()
    reason = f"It is {str(not wanted).lower()}, but {why}; set {word} or remove the key."
    return Check(f"only {word}", lambda value: None if value is wanted else reason)


def refused(reason: str) -> Check:
    """A key that cannot be set at all."""
    return Check(ABSENT, lambda value: reason)


PRINTABLE: Final = Check("printable characters", printable_text)
