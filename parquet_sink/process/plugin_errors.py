"""Errors of plug-ins, reported without their text: that may quote a record (`int("...")` does)."""

import logging
from collections.abc import Iterable

from parquet_sink.errors import code_place

log = logging.getLogger(__name__)


class WrongAnswer(ValueError):
    """It raised nothing, and what it gave cannot be; the text is ours, and has nothing of a record."""


def reported(error: Exception, secrets: Iterable[str] = ()) -> str:
    """What kind of error, and the line of the user's code; the text is in the log at DEBUG, without these secrets."""
    kind = type(error).__name__
    if isinstance(error, WrongAnswer):
        return f"{kind}: {error}"
    log.debug("%s: %s", kind, without(str(error), secrets))
    return f"{code_place(error)} (PARQUET_SINK_LOG_LEVEL=DEBUG shows its text, which may quote a record)"


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with stars in place of secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "*****")
    return text
