"""What the program itself does with a connector's group after its query ended: commit what was accepted, and look."""

import logging
from collections.abc import Sequence

from parquet_sink.errors import ConnectorError
from parquet_sink.kafka.group_offsets import GroupOffsets, Key, Plan
from parquet_sink.model.progress import Accepted
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.runtime.restarts import Standing
from parquet_sink.spark.handoff import Handoff
from parquet_sink.state.store import StateStore

log = logging.getLogger(__name__)


def commit_accepted(given: Handoff, state: StateStore) -> None:
    """What the target accepted in the micro-batch that ended early is committed; nothing else is."""
    accepted = state.accepted()
    if not accepted:
        return
    group = GroupOffsets(given.settings.kafka, given.instance)
    try:
        _advance(group, accepted)
    except ConnectorError as error:
        log.warning("connector %s: %s The files after it are sent again.", given.settings.name, error)
    finally:
        group.close()


def _advance(group: GroupOffsets, accepted: Sequence[Accepted]) -> None:
    group.advance(
        {(one.topic, one.partition): one.next_offset for one in accepted},
        {
            (one.topic, one.partition): Plan(one.start, one.end, one.reason)
            for one in accepted
            if one.next_offset < one.end
        },
    )


def standing(given: Handoff, state: StateStore) -> Standing:
    """Where the connector stands: as its group says, else as it was last seen."""
    seen = positions(state)
    if not seen:
        return Standing()
    group = GroupOffsets(given.settings.kafka, given.instance)
    try:
        found = group.read(list(seen))
    except ConnectorError:  # a broker that is away; it will be told where it matters
        return Standing(seen)
    finally:
        group.close()
    committed = {key: max(one.offset, seen[key]) for key, one in found.items()}
    unfinished = [key for key, one in found.items() if one.plan is not None and committed[key] < one.plan.end]
    return Standing({**seen, **committed}, unfinished)


def positions(state: StateStore) -> dict[Key, int]:
    """The next offset of each topic-partition to be delivered."""
    accepted = {(one.topic, one.partition): one.next_offset for one in state.accepted()}
    return {
        (watch.topic, watch.partition): max(watch.start, accepted.get((watch.topic, watch.partition), 0))
        for watch in state.progress()
    }


def waiting(state: StateStore) -> dict[Key, tuple[int, int]]:
    """Topic-partitions with records that are not delivered: the first of them, and how many, as last seen."""
    reached = positions(state)
    ends = {(watch.topic, watch.partition): watch.end for watch in state.progress()}
    return {key: (at, ends[key] - at) for key, at in reached.items() if ends[key] > at}


def told(settings: SinkSettings, behind: dict[Key, tuple[int, int]], most: int = 10) -> str:
    """What waits in Kafka when a connector has stopped, for the log."""
    records = sum(count for _, count in behind.values())
    places = [f"{topic} {partition} from offset {at}" for (topic, partition), (at, _) in sorted(behind.items())]
    rest = [f"and {len(places) - most} more"] if len(places) > most else []
    where = ", ".join([*places[:most], *rest])
    return f"connector {settings.name}: stopped with lag {records:,} ({where}); the next start goes on there"
