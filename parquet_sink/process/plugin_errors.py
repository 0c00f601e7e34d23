"""Errors of plug-ins, reported without their text: that may quote a record (`int("...")` does)."""

import logging
import traceback
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

log = logging.getLogger(__name__)

_OURS: Final = PurePath(__file__).parent.parent


class WrongAnswer(ValueError):
    """It raised nothing, and what it gave cannot be; the text is ours, and has nothing of a record."""


def reported(error: Exception, secrets: Iterable[str] = ()) -> str:
    """What kind of error, and the line of the user's code; the text is in the log at DEBUG, without these secrets."""
    kind = type(error).__name__
    if isinstance(error, WrongAnswer):
        return f"{kind}: {error}"
    log.debug("%s: %s", kind, without(str(error), secrets))
    return f"{place(error)} (PARQUET_SINK_LOG_LEVEL=DEBUG shows its text, which may quote a record)"


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with stars in place of secrets."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "*****")
    return text


def place(error: Exception) -> str:
    """What kind of error, and the line of the user's code; its text is nowhere."""
    return f"{type(error).__name__}{_where(error)}"


def _where(error: Exception) -> str:
    """The deepest line in the file that ours called."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    foreign = [(name, line) for name, line in places if not PurePath(name).is_relative_to(_OURS)]
    if not foreign:
        return ""
    name, line = [one for one in foreign if one[0] == foreign[0][0]][-1]
    return f" in {PurePath(name).name}, line {line}"
