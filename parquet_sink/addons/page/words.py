"""Numbers, times and states in words, as the page shows them; filters of its templates."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from parquet_sink.worker.herder.values import ConnectorProgress, LiveWarning, State, WarningKind

STATES: Final[Mapping[str, str]] = {
    "failed": "Failed",
    "retrying": "Trying again",
    "late": "Late",
    "starting": "Starting",
    "running": "Running",
    "paused": "Paused",
    "stopped": "Stopped",
}
"""What connectors are grouped by, in the order in which somebody must look at them, and in words."""
MEANS: Final[Mapping[str, str]] = {
    "failed": "They have stopped by themselves and wait for you.",
    "retrying": "Something is unavailable; they go on by themselves once it is back.",
    "late": "They deliver, and later than their interval says.",
    "starting": "They are about to run.",
    "running": "They deliver in time.",
    "paused": "They keep their place and take no records.",
    "stopped": "They run nothing; their offsets can be moved.",
}
REASONS: Final[Mapping[str, str]] = {
    "records": "enough records",
    "size": "large enough",
    "interval": "old enough",
    "schema": "another schema",
    "end_of_input": "end of the input",
    "end_of_range": "end of a range",
    "stop": "a stop",
    "request": "on request",
    "schedule": "by the clock",
    "batch": "end of a batch",
}
NOTHING: Final = "\N{EN DASH}"
_SCALES: Final = (("G", 1e9), ("M", 1e6), ("k", 1e3))
_STATE: Final[Mapping[State, str]] = {
    State.FAILED: "failed",
    State.RESTARTING: "retrying",
    State.UNASSIGNED: "starting",
    State.PAUSED: "paused",
    State.STOPPED: "stopped",
    State.RUNNING: "running",
}


def state_of(one: ConnectorProgress) -> str:
    """Which of STATES a connector is in; one whose tasks failed has failed."""
    found = _STATE[one.status.state]
    if any(task.state is State.FAILED for task in one.status.tasks):
        return "failed"
    troubled = one.last_error is not None and one.last_error.healed_s is None
    if found == "starting" and troubled and one.status.waits_for:
        return "retrying"
    if found != "running":
        return found
    if one.status.waits_for:
        return "retrying"
    return "late" if late(one) else found


def late(one: ConnectorProgress) -> str:
    """What is said of a flush interval that is exceeded; empty when it is kept."""
    return next((_sentence(found) for found in one.live_warnings if _is_late(found)), "")


def other_warnings(one: ConnectorProgress) -> list[str]:
    """All else that it is warned of."""
    return [*one.warnings, *(_sentence(found) for found in one.live_warnings if not _is_late(found))]


def _is_late(found: LiveWarning) -> bool:
    return found.kind is WarningKind.FLUSH_INTERVAL_EXCEEDED


def _sentence(found: LiveWarning) -> str:
    return found.message[:1].upper() + found.message[1:]


def number(value: float | None, digits: int = 0) -> str:
    """With separators of thousands."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def short(value: float | None) -> str:
    """A count that fits a column: 12.3k; exact below 10,000."""
    if value is None:
        return NOTHING
    for unit, scale in _SCALES:
        if value >= scale * (10 if unit == "k" else 1):
            return f"{value / scale:.1f}{unit}" if value < 100 * scale else f"{value / scale:,.0f}{unit}"
    return f"{value:,.0f}"


def rate(value: float) -> str:
    """Records a second: with a decimal while they are few."""
    return f"{value:.1f}" if 0 < value < 10 else short(value)


def size(value: float | None) -> str:
    """Bytes in a unit that fits, 1,000 by 1,000."""
    if value is None:
        return NOTHING
    for unit, scale in _SCALES:
        if value >= scale:
            return f"{value / scale:,.1f} {unit}B"
    return f"{value:,.0f} B"


def age(seconds: float | None) -> str:
    """A duration in one or two units."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    for unit, length, below, rest in (("min", 60, 5_400, "s"), ("h", 3_600, 172_800, "min"), ("d", 86_400, 1e12, "h")):
        if seconds < below:
            whole, left = divmod(seconds, length)
            part = int(left / {"s": 1, "min": 60, "h": 3_600}[rest])
            return f"{whole:.0f} {unit} {part} {rest}" if part and whole < 10 else f"{whole:.0f} {unit}"
    return NOTHING


def instant(at_ms: float | None) -> str:
    """Date and time, UTC."""
    return NOTHING if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def clock(at_ms: float | None) -> str:
    """Time of the day, UTC."""
    return NOTHING if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}"


def reason(name: str) -> str:
    """Why a file was closed."""
    return REASONS.get(name, name.replace("_", " "))


def counted(count: int, one: str, many: str = "") -> str:
    """`1 file`, `2,000 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cause_and_cure(message: str) -> tuple[str, str]:
    """A message's first sentence, and the rest, which has the cure: our messages are written so."""
    first, *more = message.strip().splitlines() or [""]
    head, stop, tail = first.partition(". ")
    if head.startswith("Invalid [") and stop:  # `Invalid [key]. reason; cure.`
        reason_, semicolon, cure = tail.partition("; ")
        head, stop, tail = f"{head}. {reason_}", ".", cure[:1].upper() + cure[1:] if semicolon else ""
    return head.rstrip(".") + ("." if stop or first.endswith(".") else ""), "\n".join(filter(None, [tail, *more]))


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": number,
    "short": short,
    "rate": rate,
    "bytes": size,
    "age": age,
    "instant": instant,
    "clock": clock,
    "reason": reason,
    "counted": counted,
}
