"""What transforms cost: each alone, and all that are named one after the other, in this process on the same records.

CPU time of all threads of this process per record, the least of some rounds. The first figure is of the transform
itself; the second of everything from bytes to columns that is dearer with it, because there are more columns to shape,
or because records do not stay columns.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from integration.bench import figures
from integration.bench.named_transforms import keys_of, record_of
from integration.bench.parts import Stand, Work, report
from integration.bench.running import connector_file
from parquet_sink.connectors.check import check_files
from parquet_sink.convert.decoded import Decoded, LearningDecoder, Reading
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.transform.building import chain_for
from parquet_sink.transform.chain import TransformChain

ROUNDS: Final = 7
BLOCK: Final = 10_000
TOGETHER: Final = "together"
_NONE: Final = "none"
_MILLIS: Final = "1795000000123"
Task: TypeAlias = Callable[[], None]


def run(stand: Stand, work: Work) -> dict[str, Any]:
    """Prints the table; the same figures for JSON, µs per record."""
    names = stand.sizes.transforms
    count = min(stand.sizes.stage_records, work.records)
    chosen: dict[str, Sequence[str]] = {_NONE: (), **{name: (name,) for name in names}}
    if len(names) > 1:
        chosen[TOGETHER] = names
    with stand.part_folder(f"{work.name}-transforms") as folder:
        settings = {title: _settings(stand, work, folder, some) for title, some in chosen.items()}
    decoded = _decoded(settings[_NONE], _blocks(work, (), count))
    found = _least({title: _tasks(settings[title], _blocks(work, chosen[title], count), decoded) for title in chosen})
    costs = {
        title: {"transform": (mine - found[_NONE][0]) / count, "to_rows": (rows - found[_NONE][1]) / count}
        for title, (mine, rows) in found.items()
        if title != _NONE
    }
    _print(count, found[_NONE][1] / count, costs)
    return {title: {name: round(us, 3) for name, us in cost.items()} for title, cost in costs.items()}


def _print(count: int, without: float, costs: Mapping[str, Mapping[str, float]]) -> None:
    report(f"\ntransforms in one process, {count:,} records, µs CPU per record (least of {ROUNDS - 1} rounds)")
    rows = [[_NONE, "", f"({without:.2f})"]]
    rows += [[title, f"{one['transform']:.2f}", f"{one['to_rows']:.2f}"] for title, one in costs.items()]
    report(figures.table(["transform", "by itself", "from bytes to columns"], rows))
    report("  none: what all from bytes to columns takes without a transform; the others: what is added\n")


def _settings(stand: Stand, work: Work, folder: Path, names: Sequence[str]) -> SinkSettings:
    keys = {**{key: text for key, text in work.keys.items() if not key.startswith("transforms")}, **keys_of(names)}
    path = connector_file(folder, work.name, work.name, stand.target.endpoint(), stand.flush, keys)
    (settings,) = check_files([str(path)], None, bootstrap_servers=stand.servers).require()
    return settings


def _blocks(work: Work, names: Sequence[str], count: int) -> list[RecordBatch]:
    record = record_of(names)
    found = []
    for first in range(0, count, BLOCK):
        offsets = range(first, min(first + BLOCK, count))
        values = [work.values[at % len(work.values)] for at in offsets]
        keys = [record["key"]] * len(values) if "key" in record else [None] * len(values)
        headers = [record.get("headers", ())] * len(values)
        stamps = [int(_MILLIS)] * len(values)
        found.append(RecordBatch.of(work.name, 0, offsets, stamps, values, keys, headers))
    return found


def _decoded(settings: SinkSettings, blocks: Sequence[RecordBatch]) -> list[Decoded]:
    """The values of all blocks, with what a first one teaches known."""
    decoder = decoder_for(settings.value)
    if isinstance(decoder, LearningDecoder):
        decoder = decoder.for_topic(Reading(any_tree=True), None)
    decoder.decode(blocks[0].values)
    return [decoder.decode(block.values) for block in blocks]


class _Before:
    """A decoder that gives what another one gave before."""

    def __init__(self, found: Decoded) -> None:
        self._found = found

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return self._found


def _tasks(settings: SinkSettings, blocks: Sequence[RecordBatch], decoded: Sequence[Decoded]) -> tuple[Task, Task]:
    """Transforming, with the decoding of keys and headers; all from bytes to columns."""
    chain = chain_for(settings.transforms, settings.key)
    alone = chain if chain is not None else TransformChain(())
    taught = RowBuilder(settings.shape, None, decoder_for(settings.value), chain)
    list(taught.shape(blocks[0]))

    def transform() -> None:
        for block, found in zip(blocks, decoded, strict=True):
            alone.apply(block, _Before(found))

    def to_rows() -> None:
        shaper = RowBuilder(settings.shape, taught.known, decoder_for(settings.value), chain)
        for block in blocks:
            assert all(isinstance(one, Run) for one in shaper.shape(block)), "a record has no row"

    return transform, to_rows


def _least(tasks: Mapping[str, tuple[Task, Task]]) -> dict[str, tuple[float, float]]:
    """µs of CPU time, the least of the rounds after the first; all tasks by turns, because machines change."""
    times: dict[str, list[tuple[float, float]]] = {title: [] for title in tasks}
    for _ in range(ROUNDS):
        for title, (one, other) in tasks.items():
            times[title].append((_cpu_us(one), _cpu_us(other)))
    return {
        title: (min(one for one, _ in found[1:]), min(other for _, other in found[1:]))
        for title, found in times.items()
    }


def _cpu_us(work: Task) -> float:
    began = time.process_time()
    work()
    return 1e6 * (time.process_time() - began)
