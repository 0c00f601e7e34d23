"""Memory does not grow with the backlog: one long pass, and the peak in each tenth of it."""

from typing import Any

from integration.bench import figures, load
from integration.bench.figures import Pass
from integration.bench.parts import Stand, report
from integration.bench.running import SinkProcess, accepted, connector_file
from integration.bench.sampler import Sampler

PARTITIONS = 4


def run(stand: Stand) -> dict[str, Any]:
    """A fresh sink works off BACKLOG records; prints the peaks, returns them as JSON figures."""
    name, share = "bench-backlog", stand.sizes.per_partition(stand.sizes.backlog, PARTITIONS)
    records = share * PARTITIONS
    flush = {**stand.flush, "commit.records": stand.sizes.per_file(share)}
    with stand.part_folder(name) as folder, stand.topic(name, PARTITIONS):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, stand.keys)
        load.fill(stand.servers, name, PARTITIONS, share, stand.values)
        before = stand.rows()
        with SinkProcess([path], stand.servers, folder) as sink, Sampler(sink.pid) as memory:
            sink.wait("the backlog delivered", lambda: stand.rows() - before >= records, stand.patience_s(records))
        files = accepted(stand.client, name)
    reached = [(sink.started_at, 0)]
    for file in files:
        reached.append((file.at, reached[-1][1] + file.rows))
    samples = [(sample.at, sample.total_bytes) for sample in memory.samples]
    peaks = [figures.megabytes(peak) for peak in figures.deciles(samples, reached, records)]
    rate = Pass(records, sink.started_at, tuple(files), 0.0, 0).sustained_per_second or 0.0
    report(f"\nbacklog of {records:,} records on {PARTITIONS} topic-partitions, from a cold start: peak memory, MB")
    rows = [[f"{10 * tenth} to {10 * tenth + 10} %", str(peak)] for tenth, peak in enumerate(peaks)]
    report(figures.table(["of the backlog", "MB"], rows))
    report(f"  {rate:,.0f} records/s after each topic-partition's first file\n")
    return {"records": records, "peak_mb_by_tenth": peaks, "peak_rss_mb": max(peaks), "records_per_second": round(rate)}
