"""Throughput, CPU time and memory: one sink process, a backlog as warm-up, then measured passes.

The records of a measured pass are written beforehand, in a transaction: the sink reads committed records only, so it
idles until the transaction is committed. That moment is the start of the pass, and the producer is quiet by then.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from integration.bench import figures, load, processes
from integration.bench.figures import Pass
from integration.bench.parts import Stand, Work, report
from integration.bench.running import SinkProcess, accepted, connector_file
from integration.bench.sampler import Sampler

SETTLE_S = 1.0
"""CPU time is read so long after the last file, so that the commit of its offsets counts."""

LEAST_LOOKS = 3


@dataclass(frozen=True)
class Measured:
    """One topic, by one sink. first_file_s, peak_bytes: since the start of its process."""

    passes: list[Pass]
    first_file_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Around:
    """CPU seconds of one pass: of the sink by group, and of those that are not the sink."""

    sink: Mapping[str, float]
    others: Mapping[str, float]


def run(stand: Stand, work: Work, look: Callable[[SinkProcess], None] | None = None) -> dict[str, Any]:
    """As `measured`; the JSON figures of the topic."""
    found = measured(stand, work, look)
    return figures.of_passes(found.passes, found.first_file_s, found.peak_bytes)


def measured(stand: Stand, work: Work, look: Callable[[SinkProcess], None] | None = None) -> Measured:
    """Measures one topic, and prints what a person wants to know.

    look: is called when all is delivered and committed, and the topic still there.
    """
    name, partitions = work.name, work.partitions
    share = stand.sizes.per_partition(work.records, partitions)
    flush = {**stand.flush, "commit.records": stand.sizes.per_file(share)}
    with stand.part_folder(name) as folder, stand.topic(name, partitions):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, work.keys)
        load.fill(stand.servers, name, partitions, share, work.values, work.record)
        before, expected = stand.rows(), work.rows(share)
        with SinkProcess([path], stand.servers, folder) as sink, Sampler(sink.pid) as memory:
            sink.wait("the first pass delivered", lambda: stand.rows() - before >= expected, _patience(stand))
            first_file_s = min(file.at for file in accepted(stand.client, name)) - sink.started_at
            for _ in range(stand.sizes.warm_up_passes - 1):
                measure(stand, sink, memory, work, share)
            found = [measure(stand, sink, memory, work, share) for _ in range(stand.sizes.passes)]
            if look is not None:
                sink.until_committed(f"connect-{name}", name, partitions, _patience(stand))
                look(sink)
    passes = [one for one, _ in found]
    _print(partitions, share * partitions, passes, [around for _, around in found], first_file_s, memory)
    return Measured(passes, first_file_s, memory.peak_bytes())


def _patience(stand: Stand) -> float:
    return stand.patience_s(stand.sizes.records)


def measure(stand: Stand, sink: SinkProcess, memory: Sampler, work: Work, share: int) -> tuple[Pass, Around]:
    """One pass of a sink that runs and has delivered everything. share: records for each topic-partition."""
    name, partitions = work.name, work.partitions
    records, expected = share * partitions, work.rows(share)
    with load.held_back(stand.servers, name, partitions, share, work.values, work.record) as producer:
        sink.until_committed(f"connect-{name}", name, partitions, _patience(stand))
        rows, known = stand.rows(), len(accepted(stand.client, name))
        before, others = memory.usage(), read_others_cpu_s(stand)
        began = time.time()
        producer.commit_transaction(load.PATIENCE_S)
        sink.wait("the pass delivered", lambda: stand.rows() - rows >= expected, _patience(stand))
        time.sleep(SETTLE_S)
    sink_seconds = processes.between(before, memory.usage())
    other_seconds = {who: spent - others[who] for who, spent in read_others_cpu_s(stand).items()}
    files = tuple(accepted(stand.client, name)[known:])
    one = Pass(records, began, files, sum(sink_seconds.values()), memory.peak_bytes(began))
    report(
        f"  pass: {one.records_per_second:,.0f} records/s, {one.cpu_us_per_record:.2f} µs CPU per record, "
        f"{len(files)} files in {one.seconds:.2f} s, the first after {min(f.at for f in files) - began:.2f} s"
    )
    return one, Around(sink_seconds, other_seconds)


def read_others_cpu_s(stand: Stand) -> dict[str, float]:
    """CPU seconds so far of what the sink talks to."""
    pids = {"broker (not counted)": stand.broker.pid, "target (not counted)": stand.target.pid}
    usages = {who: processes.usage(pid) for who, pid in pids.items() if pid is not None}
    return {who: sum(one.own + one.reaped for one in found.values()) for who, found in usages.items()}


def _print(
    partitions: int,
    records: int,
    passes: list[Pass],
    around: list[Around],
    first_file_s: float,
    memory: Sampler,
) -> None:
    files = passes[-1].files
    sustained = [one.sustained_per_second for one in passes if one.sustained_per_second is not None]
    report(
        f"\n{partitions} topic-partition{'s' if partitions > 1 else ''}, {records:,} records a pass, "
        f"{len(passes)} measured: median (least to most)"
    )
    rows = [
        ["records/s, from visible to last accepted", figures.spread([p.records_per_second for p in passes])],
        ["records/s after each topic-partition's first file", figures.spread(sustained) if sustained else "-"],
        ["µs CPU per record, all processes", figures.spread([p.cpu_us_per_record for p in passes], 2)],
        ["peak memory of all processes together, MB", figures.spread([p.peak_bytes / 1e6 for p in passes])],
        ["the same since the start, warm-up included, MB", f"{figures.megabytes(memory.peak_bytes()):,}"],
        ["first file after start of the process, s", f"{first_file_s:.1f}"],
        ["files a pass; bytes per row", f"{len(files)}; {sum(f.size_bytes for f in files) / records:.1f}"],
    ]
    report(figures.table(["", "value"], rows))
    report("\nwhere CPU time goes, µs per record")
    report(figures.table(["processes and threads", "µs"], _shares(passes, around)))
    report("\npeak memory of single processes (not at one moment), MB")
    report(figures.table(["process", "MB"], _peaks(memory)))
    report(f"  looking took {100 * memory.cost:.1f} % of a core away from everything else\n")


def _shares(passes: list[Pass], around: list[Around]) -> list[list[str]]:
    """Mean over all passes, dearest first; those that are not the sink after them."""
    records = sum(one.records for one in passes)
    rows: list[list[str]] = []
    for parts in ([one.sink for one in around], [one.others for one in around]):
        sums: dict[str, float] = defaultdict(float)
        for part in parts:
            for group, seconds in part.items():
                sums[group] += seconds
        rows += [
            [group, f"{1e6 * seconds / records:.2f}"] for group, seconds in sorted(sums.items(), key=lambda i: -i[1])
        ]
    return rows


def _peaks(memory: Sampler) -> list[list[str]]:
    """Several processes of one kind in one line, without those that hardly lived."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for peak in memory.peaks.values():
        if peak.looks >= LEAST_LOOKS:
            kinds[peak.group].append(peak.most)
    ordered = sorted(kinds.items(), key=lambda item: -max(item[1]))
    return [
        [kind, ", ".join(str(figures.megabytes(s)) for s in sorted(sizes, reverse=True))] for kind, sizes in ordered
    ]
