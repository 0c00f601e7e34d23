"""What invalid records cost: each format with one invalid record in a hundred, set aside, beside the clean run.

Everything is checked on the way: each valid record is in exactly one file, each invalid one exactly once in the
dead-letter topic, or parked, and nothing else is.
"""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from confluent_kafka import Consumer, Message, TopicPartition

from integration.bench import figures, load, throughput
from integration.bench.formats import FORMATS, REGISTRY_URL
from integration.bench.parts import Stand, Work, report
from integration.bench.running import SinkProcess, accepted
from integration.registry import RegistryServer
from parquet_sink.errors import SetupError

PARTITIONS: Final = 4
ONE_IN: Final = 100
USUAL: Final = ("json", "avro", "json_envelope", "json_schema", "protobuf")
MOST_BYTES: Final = 400_000_000
_TOLERANT: Final = {"errors.tolerance": "all"}
_OFFSET_HEADER: Final = "__connect.errors.offset"
_PARTITION_HEADER: Final = "__connect.errors.partition"
_READ_S: Final = 60.0
_POLL_S: Final = 0.5

Places = dict[int, list[int]]
"""Offsets in increasing order, by topic-partition."""


def run(stand: Stand) -> dict[str, Any]:
    """Measures the formats that are named, or all usual ones; figures by format, as the last line has them."""
    found = {}
    with ExitStack() as stack:
        names = stand.sizes.formats or USUAL
        url = stack.enter_context(RegistryServer()).url if any(FORMATS[one].uses_registry for one in names) else ""
        for name in names:
            found[name] = _format(stand, name, url)
    rows = [[name, *(f"{one[way]:.2f}" for way in ("clean", "parked", "dead_letters"))] for name, one in found.items()]
    report("\n1 % invalid records, µs CPU per record of all processes of the sink")
    report(figures.table(["format", "clean", "parked", "dead letters"], rows))
    return found


def _format(stand: Stand, name: str, url: str) -> dict[str, float]:
    one = FORMATS[name]
    values = one.values(url, load.POOL)
    size = sum(map(len, values)) / len(values)
    keys = {**one.keys, REGISTRY_URL: url} if one.uses_registry else one.keys
    records = min(stand.sizes.records, int(MOST_BYTES / size))
    work = Work(f"bench-{name.replace('_', '-')}-clean", PARTITIONS, records, values, keys)
    report(f"format {name}, clean: {size:.0f} bytes a record")
    found = {"clean": _cpu(throughput.run(stand, work))}
    which = frozenset(range(ONE_IN // 2, len(values), ONE_IN))
    damaged = [value[:-1] if at in which else value for at, value in enumerate(values)]
    for way in ("parked", "dead_letters"):
        title = f"bench-{name}-{way}".replace("_", "-")
        report(f"format {name}, 1 % invalid records: {way.replace('_', ' ')}")
        found[way] = _cpu(_set_aside(stand, replace(work, name=title, values=damaged, invalid=which), way))
    return found


def _cpu(measured: Mapping[str, Any]) -> float:
    return float(measured["cpu_us_per_record"])


def _set_aside(stand: Stand, work: Work, way: str) -> dict[str, Any]:
    """One run in which invalid records are set aside, and the check of what became of each."""
    letters, folder = f"{work.name}-letters", stand.folder / f"{work.name}-parked"
    keys = {**work.keys, **_TOLERANT}
    if way == "dead_letters":
        keys["errors.deadletterqueue.topic.name"] = letters
        keys["errors.deadletterqueue.topic.replication.factor"] = "1"
        keys["errors.deadletterqueue.context.headers.enable"] = "true"
    else:
        keys["connect.ems.parked.dir"] = str(folder)

    def look(sink: SinkProcess) -> None:
        aside = _letters(stand, letters) if way == "dead_letters" else _parked(folder)
        _check(work, stand, aside)

    measured = throughput.run(stand, replace(work, keys=keys), look)
    if way == "dead_letters":
        stand.broker.delete_topic(letters)
    return measured


def _check(work: Work, stand: Stand, aside: Places) -> None:
    """Raises SetupError when a record is missing, twice, or where it does not belong."""
    invalid = {work.values[at] for at in work.invalid}
    valid: Places = {partition: [] for partition in range(work.partitions)}
    expected: Places = {partition: [] for partition in range(work.partitions)}
    for message in _read(stand, work.name, work.partitions):
        places = expected if message.value() in invalid else valid
        places[message.partition()].append(message.offset())  # type: ignore[arg-type, index]
    if aside != expected:
        counts = ", ".join(f"{sum(map(len, one.values())):,}" for one in (aside, expected))
        raise SetupError(f"{work.name}: what was set aside is not what is invalid (records, expected): {counts}")
    for partition, offsets in valid.items():
        _check_files(
            work.name, partition, offsets, [f for f in accepted(stand.client, work.name) if f.partition == partition]
        )
    total = sum(map(len, valid.values()))
    report(
        f"  checked: {total:,} rows and {sum(map(len, aside.values())):,} records set aside, none missing, none twice"
    )


def _check_files(name: str, partition: int, offsets: Sequence[int], files: Sequence[figures.Accepted]) -> None:
    """Files follow each other, and each has as many rows as there are valid records between its offsets."""
    rows, after = 0, -1
    for file in sorted(files, key=lambda one: one.first_offset):
        within = bisect_left(offsets, file.last_offset + 1) - bisect_left(offsets, file.first_offset)
        if file.first_offset <= after or within != file.rows:
            raise SetupError(f"{name}: {file} follows offset {after}, and has {within} valid records")
        rows, after = rows + file.rows, file.last_offset
    if rows != len(offsets):
        raise SetupError(f"{name}: topic-partition {partition} has {len(offsets)} valid records, its files {rows} rows")


def _letters(stand: Stand, topic: str) -> Places:
    found: Places = {partition: [] for partition in range(PARTITIONS)}
    for message in _read(stand, topic, 1):
        headers = dict(message.headers() or ())
        found[int(headers[_PARTITION_HEADER])].append(int(headers[_OFFSET_HEADER]))  # type: ignore[arg-type]
    return {partition: sorted(offsets) for partition, offsets in found.items()}


def _parked(folder: Path) -> Places:
    found: Places = {partition: [] for partition in range(PARTITIONS)}
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path, columns=["partition", "offset"])
        for partition, offset in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found[partition].append(offset)
    return {partition: sorted(offsets) for partition, offsets in found.items()}


def _read(stand: Stand, topic: str, partitions: int) -> Iterator[Message]:
    """All committed records of a topic."""
    options: dict[str, Any] = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": stand.servers, "group.id": "bench-check", **options})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    left, deadline = partitions, time.monotonic() + _READ_S
    try:
        while left:
            messages = consumer.consume(10_000, _POLL_S)  # which waits for so many, or for so long
            if messages:
                deadline = time.monotonic() + _READ_S
            elif time.monotonic() > deadline:
                raise SetupError(f"Topic {topic}: nothing came for {_READ_S:.0f} s.")
            for message in messages:
                if message.error() is None:
                    yield message
                else:
                    left -= 1
    finally:
        consumer.close()
