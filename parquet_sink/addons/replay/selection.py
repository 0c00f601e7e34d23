"""Which records a replay is to send: as an operator chose them, and as spans of offsets by what is known; pure."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.addons.replay.copies import Copy, Span, since
from parquet_sink.addons.replay.plan import Held, Past, Survey
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.history.records import UploadRecord
from parquet_sink.model.partitions import PartitionKey

MOST_OFFSET: Final = 2**63 - 2
MOST_NAMED: Final = 5


@dataclass(frozen=True)
class Selection:
    """None: whichever. first, last: offsets, both included. since_ms, until_ms: Kafka's timestamps, until excluded.

    newest: the last so many files of the history. files: those of these names. Of offsets, times, newest and files at
    most one way is used. skip_missing: what Kafka no longer has is left out; else nothing is sent.
    """

    topic: str | None = None
    partition: int | None = None
    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    newest: int | None = None
    files: tuple[str, ...] = ()
    skip_missing: bool = False

    @property
    def by_offsets(self) -> bool:
        return self.first is not None or self.last is not None

    @property
    def by_time(self) -> bool:
        return self.since_ms is not None or self.until_ms is not None

    @property
    def by_files(self) -> bool:
        """Whether the history alone knows what is meant."""
        return self.newest is not None or bool(self.files)

    @property
    def named(self) -> bool:
        """Whether its begin was named, so that what is missing from there on is missing from what was asked for."""
        return self.first is not None or self.by_files

    def has(self, topic: str, partition: int) -> bool:
        """Whether a topic-partition is meant."""
        return self.topic in (None, topic) and self.partition in (None, partition)


def problems(one: Selection) -> list[str]:
    """What is wrong with a selection by itself, each with its cure."""
    found = [*_numbers(one), *_orders(one)]
    ways = [
        name
        for name, given in (
            ("--from and --to", one.by_offsets),
            ("--since and --until", one.by_time),
            ("--last", one.newest is not None),
            ("--file", bool(one.files)),
        )
        if given
    ]
    if len(ways) > 1:
        found.append(f"Invalid [{ways[-1]}]. Records are chosen by {' and by '.join(ways)}; keep one of them.")
    if one.files and (one.topic is not None or one.partition is not None):
        found.append("Invalid [--file]. A file's name has its topic-partition; remove --topic and --partition.")
    return found


def _numbers(one: Selection) -> list[str]:
    limits = (
        ("--partition", one.partition, 0, 2**31 - 1),
        ("--from", one.first, 0, MOST_OFFSET),
        ("--to", one.last, 0, MOST_OFFSET),
        ("--last", one.newest, 1, 1_000_000),
    )
    return [
        f"Invalid [{name}]. {number} is not between {least} and {most}; give a number that is."
        for name, number, least, most in limits
        if number is not None and not least <= number <= most
    ]


def _orders(one: Selection) -> list[str]:
    found = []
    if one.first is not None and one.last is not None and one.first > one.last:
        found.append(f"Invalid [--to]. {one.last} is below --from, {one.first}; both are included, exchange them.")
    if one.since_ms is not None and one.until_ms is not None and one.since_ms >= one.until_ms:
        found.append("Invalid [--until]. It is not after --since; exchange them.")
    return found


def chosen(
    selection: Selection,
    found: Survey,
    past: Mapping[PartitionKey, Past],
    *,
    elsewhere: bool,
    copies: Mapping[PartitionKey, Sequence[Copy]] | None = None,
) -> dict[PartitionKey, list[Span]]:
    """Spans of offsets of each topic-partition. elsewhere: whether they go to another target than the connector's.

    Without an end that was chosen it is where the consumer group stands; elsewhere, or without a group, all that Kafka
    holds. Without a begin, it is that of the copies, files of an archive, else of what Kafka holds. Raises
    InvalidConfiguration for what cannot be meant, with what is there.
    """
    copies = copies or {}
    if selection.by_files:
        return _of_files(selection, past, copies)
    if selection.by_offsets:
        _one_partition(selection, found)
    spans: dict[PartitionKey, list[Span]] = {}
    for key, held in found.held.items():
        end = held.high if elsewhere else min(found.delivered.get(key, held.high), held.high)
        mine = copies.get(key, ())
        low = min([held.low, *(one.first for one in mine)])
        begin = low if selection.since_ms is None else _offset_at(selection.since_ms, found.since, mine, key, held)
        last = end if selection.last is None else selection.last + 1
        until = last if selection.until_ms is None else _offset_at(selection.until_ms, found.until, mine, key, held)
        spans[key] = [(begin if selection.first is None else selection.first, min(last, until))]
        if selection.by_offsets:
            _within(selection, key, low, held.high)
    return {key: [span for span in mine if span[0] < span[1]] for key, mine in spans.items()}


def _offset_at(
    at_ms: int, offsets: Mapping[PartitionKey, int], copies: Sequence[Copy], key: PartitionKey, held: Held
) -> int:
    """Where a time is: what Kafka says, unless all that it holds is later; then the copies may have earlier records."""
    offset = offsets.get(key, held.low)
    return since(copies, at_ms, held.low) if offset == held.low else offset


def _one_partition(selection: Selection, found: Survey) -> None:
    """Offsets mean nothing without their topic-partition."""
    if len(found.held) == 1:
        return
    keys = list(found.held)
    missing = "--topic" if len({topic for topic, _ in keys}) > 1 and selection.topic is None else "--partition"
    some = ", ".join(f"{topic} {partition}" for topic, partition in keys[:MOST_NAMED])
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    raise InvalidConfiguration(
        [f"Invalid [{missing}]. It is missing; offsets need one topic-partition of these: {some}{more}."]
    )


def _within(selection: Selection, key: PartitionKey, low: int, high: int) -> None:
    where, holds = f"Topic {key[0]}, topic-partition {key[1]}", f"it holds {low} to {high - 1}"
    if low == high:
        raise InvalidConfiguration([f"Invalid [--from]. {where} holds no record now: its next offset is {high}."])
    if selection.first is not None and selection.first >= high:
        raise InvalidConfiguration([f"Invalid [--from]. {where}: there is no offset {selection.first} yet; {holds}."])
    if selection.last is not None and selection.last >= high:
        raise InvalidConfiguration([f"Invalid [--to]. {where}: there is no offset {selection.last} yet; {holds}."])
    if selection.last is not None and selection.last < low:
        raise InvalidConfiguration([f"Invalid [--to]. {where}: Kafka deleted offset {selection.last}; {holds}."])


def _of_files(
    selection: Selection, past: Mapping[PartitionKey, Past], copies: Mapping[PartitionKey, Sequence[Copy]]
) -> dict[PartitionKey, list[Span]]:
    there = {one.file_name: one for mine in past.values() for one in mine.files}
    if selection.newest is not None:
        if not there:
            raise InvalidConfiguration(
                ["Invalid [--last]. The history has no file of what was chosen; choose by --from and --to, or by time."]
            )
        latest = sorted(there.values(), key=lambda one: (one.at_ms, one.last_offset))[-selection.newest :]
        return _spans(latest)
    kept = {one.name: one for mine in copies.values() for one in mine if one.name not in there}
    unknown = [name for name in selection.files if name not in there and name not in kept]
    if unknown:
        raise InvalidConfiguration([_unknown(name, list(there)) for name in unknown])
    spans = _spans([there[name] for name in selection.files if name in there])
    for one in (kept[name] for name in selection.files if name in kept):
        spans.setdefault((one.topic, one.partition), []).append(one.span)
    return spans


def _spans(files: Sequence[UploadRecord]) -> dict[PartitionKey, list[Span]]:
    spans: dict[PartitionKey, list[Span]] = {}
    for one in files:
        spans.setdefault((one.topic, one.partition), []).append((one.first_offset, one.last_offset + 1))
    return spans


def _unknown(name: str, known: Sequence[str]) -> str:
    """What to do about a name that the history does not have."""
    cure = "parquet-sink history has the names"
    if (parts := naming.parts_of(name)) is not None:
        offsets = f"--from {parts.first_offset} --to {parts.last_offset}"
        cure = f"its records: --topic {parts.topic} --partition {parts.partition} {offsets}"
    near = difflib.get_close_matches(name, known[:1000], n=1, cutoff=0.8)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"Invalid [--file]. The history of this connector has no file {name}; {cure}.{meant}"
