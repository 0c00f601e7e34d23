"""What the program itself does with a connector's group after its query ended: commit what was accepted, and look."""

import logging
from contextlib import closing
from typing import Final

from parquet_sink.errors import ConnectorError
from parquet_sink.kafka.group.committed import RangePlan
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Accepted
from parquet_sink.process.logs import concerning
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.worker.loop.restarts import Positions

_MOST_NAMED: Final = 10

log = logging.getLogger(__name__)


def commit_accepted(settings: TopicSettings, instance: Instance, state: SqliteStore) -> None:
    """Commits what the target accepted in the micro-batch that ended early, and nothing else. Failures are logged."""
    accepted = state.accepted()
    if not accepted:
        return
    reached = {(one.topic, one.partition): one.next_offset for one in accepted}
    left = {(one.topic, one.partition): plan for one in accepted if one.next_offset < (plan := _plan(one)).end}
    with concerning(settings.name), closing(GroupOffsets(settings.kafka, instance)) as group:
        try:
            group.advance(reached, left)
            state.advance_delivered(reached)
        except ConnectorError as error:
            log.warning("connector %s: %s What comes after it is delivered again.", settings.name, error)


def _plan(one: Accepted) -> RangePlan:
    """What is left of a range, as it is to come again."""
    start, end = (one.again and one.again.span) or (one.start, one.end)
    return RangePlan(start, end, one.reason)


def positions(settings: TopicSettings, instance: Instance, state: SqliteStore) -> Positions:
    """Where the connector stands: as its group says, else as it was last seen."""
    with concerning(settings.name):
        return _positions(settings, instance, next_offsets(state))


def _positions(settings: TopicSettings, instance: Instance, seen: dict[PartitionKey, int]) -> Positions:
    if not seen:
        return Positions()
    with closing(GroupOffsets(settings.kafka, instance)) as group:
        try:
            group.take_over()  # ends what a planner that died left open, which would hide its offsets
            found = group.read(list(seen))
        except ConnectorError:  # no broker answers, which the next start of the query reports
            return Positions(seen)
    committed = {key: max(one.offset, seen[key]) for key, one in found.items()}
    in_flight = [key for key, one in found.items() if one.plan is not None and committed[key] < one.plan.end]
    return Positions({**seen, **committed}, in_flight)


def next_offsets(state: SqliteStore) -> dict[PartitionKey, int]:
    """The next offset to be delivered of each topic-partition, as last seen."""
    accepted = {(one.topic, one.partition): one.next_offset for one in state.accepted()}
    return {
        (one.topic, one.partition): max(one.start, accepted.get((one.topic, one.partition), 0))
        for one in state.progress()
    }


def undelivered(state: SqliteStore) -> dict[PartitionKey, tuple[int, int]]:
    """Topic-partitions with records that are not delivered: the first of them, and how many, as last seen."""
    reached = next_offsets(state)
    ends = {(one.topic, one.partition): one.end for one in state.progress()}
    return {key: (at, ends[key] - at) for key, at in reached.items() if ends[key] > at}


def stopped_message(behind: dict[PartitionKey, tuple[int, int]]) -> str:
    """What a connector leaves undelivered when it stops, for the log. behind: as `undelivered` gives it."""
    records = sum(count for _, count in behind.values())
    places = [f"{topic} {partition} from offset {at}" for (topic, partition), (at, _) in sorted(behind.items())]
    rest = [f"and {len(places) - _MOST_NAMED} more"] if len(places) > _MOST_NAMED else []
    where = ", ".join([*places[:_MOST_NAMED], *rest])
    return f"stopped with lag {records:,} ({where}); the next start goes on there"
