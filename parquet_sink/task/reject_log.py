"""A log line for each rejected record, as Kafka Connect writes it, as far as there are not too many of them."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.report import printable
from parquet_sink.kafka.dead_letter_headers import TASK, class_name, stage_name
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.task.reject_policy import RejectPolicy, SetAside, Stop

log = logging.getLogger(__name__)

AT_ONCE: Final = 100
PER_S: Final = 10.0
TELL_S: Final = 10.0
"""How often it is told, while records go on being rejected, how many lines were left out."""
LONGEST: Final = 1_000
"""Characters of a key, a value or a header's value."""
MOST_HEADERS: Final = 20


class LineLimit:
    """So many lines at once, and so many a second after these. clock: seconds that never jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._room, self._at = clock, float(AT_ONCE), clock()
        self._left_out, self._told_at = 0, clock()

    def allows(self) -> bool:
        """Whether a line may be written now; one that may not is counted."""
        now = self._clock()
        self._room = min(AT_ONCE, self._room + (now - self._at) * PER_S)
        self._at = now
        if self._room < 1:
            self._left_out += 1
            return False
        self._room -= 1
        return True

    def left_out(self) -> int:
        """How many lines were left out since this was asked last."""
        found, self._left_out, self._told_at = self._left_out, 0, self._clock()
        return found

    @property
    def is_due(self) -> bool:
        """Whether it is time again to tell how many."""
        return self._clock() - self._told_at >= TELL_S


_limits: dict[str, LineLimit] = {}
"""By connector; a process works for few."""


@dataclass(frozen=True)
class LoggedRejects:
    """A `RejectPolicy` that logs each record that it asks another one about.

    connector: its name. content: whether lines have key, value and headers. classes: what carries out a stage.
    """

    inner: RejectPolicy
    connector: str
    content: bool
    classes: Mapping[Stage, str]

    @property
    def sets_aside(self) -> bool:
        return self.inner.sets_aside

    @property
    def needs(self) -> RecordParts:
        return self.inner.needs | RecordParts(single=True)

    def decide(self, rejected: Rejected) -> Stop | SetAside:
        """As the other one."""
        limit = _limits.setdefault(self.connector, LineLimit())
        if limit.is_due:
            self._log_left_out(limit)
        if limit.allows():
            log.error("%s", line(rejected, self.connector, self.classes, content=self.content))
        return self.inner.decide(rejected)

    def flush(self, planned: PlannedRange) -> None:
        """As the other one."""
        self.inner.flush(planned)

    def close(self) -> None:
        """As the other one; tells how many lines were left out."""
        if self.connector in _limits:
            self._log_left_out(_limits[self.connector])
        self.inner.close()

    def _log_left_out(self, limit: LineLimit) -> None:
        if count := limit.left_out():
            log.error("connector %s: %d more records are rejected, without a log line for each", self.connector, count)


def line(rejected: Rejected, connector: str, classes: Mapping[Stage, str], *, content: bool) -> str:
    """Kafka Connect's words, then the reason."""
    more = _content(rejected) if content else ""
    return (
        f"Error encountered in task {connector}-{TASK}. Executing stage '{stage_name(rejected.stage)}' with class "
        f"'{class_name(rejected, classes)}', where consumed record is {{topic='{rejected.topic}', "
        f"partition={rejected.partition}, offset={rejected.offset}, timestamp={rejected.timestamp_ms}, "
        f"timestampType={rejected.timestamp_type}{more}}}. {rejected.reason}"
    )


def _content(rejected: Rejected) -> str:
    headers = rejected.headers or ()
    pairs = [(name.encode("utf-8", "surrogatepass"), value) for name, value in headers[:MOST_HEADERS]]
    shown = ", ".join(f"{_shown(name)}={_shown(value)}" for name, value in pairs)
    more = f", and {len(headers) - MOST_HEADERS} more" if len(headers) > MOST_HEADERS else ""
    return f", key={_shown(rejected.key)}, value={_shown(rejected.value)}, headers=[{shown}{more}]"


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = printable(data[: 4 * LONGEST].decode("utf-8", "backslashreplace"))
    return f"'{text[:LONGEST]}...'" if len(text) > LONGEST or len(data) > 4 * LONGEST else f"'{text}'"
