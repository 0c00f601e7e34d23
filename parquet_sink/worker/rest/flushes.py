"""`/connectors/{name}/flush`: what waits goes out now, whatever the thresholds say."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from parquet_sink.config.report import quoted
from parquet_sink.worker.herder.errors import UnknownConnector, UnknownFlush
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.herder.values import PARTITION, TOPIC, FlushReport, FlushState
from parquet_sink.worker.rest import renderings
from parquet_sink.worker.rest.call import (
    NO_BODY,
    ONE,
    Call,
    Parameter,
    Reply,
    RestError,
    as_rest_errors,
    endpoint,
    known_fields,
    object_of,
    read,
    unreadable,
)
from parquet_sink.worker_config.rest.roles import Role

MOST_WAIT_S: Final = 60.0
"""Less than another worker waits that sends the request on."""
LOOK_S: Final = 0.2
MOST_NAMED: Final = 10_000
_WAIT: Final = Parameter(
    "wait", "number", f"Seconds to wait until all of it is committed, at most {MOST_WAIT_S:g}.", default=0
)
_FLUSHED: Final = {200: "Flush", 202: "Flush", 400: "Error", 404: "Error", 409: "Error"}
_PATH: Final = f"{ONE}/flush"


class Flushes:
    """The endpoints, each a method that may be called from any thread. clock: monotonic seconds."""

    def __init__(
        self,
        herder: Herder,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._herder, self._clock, self._sleep = herder, clock, sleep

    @endpoint(
        "POST",
        _PATH,
        "Flush now",
        _FLUSHED,
        role=Role.OPERATOR,
        takes="NewFlush",
        query=(_WAIT,),
        pool="waits",
        may_be_empty=True,
    )
    def flush(self, call: Call) -> Reply:
        """202 with where the flush may be followed; 200 once it is done, where the request waits for that."""
        wait_s, partitions = _seconds(call.query.get("wait")), _partitions(call.body)
        with as_rest_errors():
            report = self._herder.flush(call.connector, partitions)
            if wait_s > 0:
                report = self._followed(report, wait_s)
        if report.state is FlushState.DONE:
            return Reply(renderings.flush(report))
        return Reply(renderings.flush(report), 202, {"Location": f"{call.location(call.connector)}/flush/{report.id}"})

    def _followed(self, report: FlushReport, wait_s: float) -> FlushReport:
        """The last that was known of it where the connector is started again, or moves, meanwhile."""
        deadline = self._clock() + wait_s
        while True:
            try:
                report = self._herder.flushed(report.connector, report.id)
            except (UnknownFlush, UnknownConnector) as error:
                return replace(report, state=FlushState.LOST, waits_for=str(error))
            left_s = deadline - self._clock()
            if report.state is not FlushState.WAITING or left_s <= 0:
                return report
            self._sleep(min(LOOK_S, left_s))

    @read(f"{_PATH}/{{flush}}", "How far a flush got", "Flush")
    def flushed(self, call: Call) -> Reply:
        with as_rest_errors():
            return Reply(renderings.flush(self._herder.flushed(call.connector, call.path["flush"])))


def _seconds(text: str | None) -> float:
    """Raises RestError."""
    if text is None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_WAIT_S:
        raise RestError(400, f"{quoted(text[:50])} is not a number of seconds; write one from 0 to {MOST_WAIT_S:g}.")
    return seconds


def _partitions(body: Any) -> tuple[tuple[str, int | None], ...]:
    """Topic-partitions of the body, () for all. Raises RestError."""
    if body is NO_BODY:
        return ()
    found = object_of(body, "partitions")
    known_fields(found, ("partitions",))
    listed = found.get("partitions")
    if listed is None:
        return ()
    if not isinstance(listed, list) or not listed:
        raise unreadable('"partitions" is not a JSON list, or an empty one; leave it out to flush all')
    if len(listed) > MOST_NAMED:
        raise unreadable(f'"partitions" has more than {MOST_NAMED:,} entries; leave it out to flush all')
    return tuple(map(_partition, listed))


def _partition(entry: Any) -> tuple[str, int | None]:
    if not isinstance(entry, dict):
        raise unreadable(f"an entry of partitions is not a JSON object; send {TOPIC} and {PARTITION} in one")
    known_fields(entry, (TOPIC, PARTITION))
    topic, number = entry.get(TOPIC), entry.get(PARTITION)
    if not isinstance(topic, str) or not topic:
        raise unreadable(f'"{TOPIC}" of an entry is not text; name a topic')
    if number is None:
        return topic, None
    if not (isinstance(number, str) and number.isascii() and number.isdigit() and len(number) <= 10):
        raise unreadable(f'"{PARTITION}" of an entry is not a whole number from 0; leave it out for all of the topic')
    return topic, int(number)
