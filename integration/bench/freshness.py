"""Freshness: a trickle at the shortest commit interval, from each record's timestamp to its acceptance."""

import time
from typing import Any

from integration.bench import figures, load
from integration.bench.parts import Stand, report
from integration.bench.running import SinkProcess, accepted, connector_file

PARTITIONS = 4
WARM_UP_S = 10.0
INTERVAL_MS = 1_000


def run(stand: Stand) -> dict[str, Any]:
    """Prints and returns percentiles, in seconds. Records of the first WARM_UP_S are not counted."""
    name, sizes = "bench-trickle", stand.sizes
    flush = {**stand.flush, "commit.interval.ms": INTERVAL_MS}
    with stand.part_folder(name) as folder, stand.topic(name, PARTITIONS):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, stand.keys)
        load.fill(stand.servers, name, PARTITIONS, 1_000, stand.values)
        before = stand.rows()
        with SinkProcess([path], stand.servers, folder) as sink:
            sink.wait("the first records delivered", lambda: stand.rows() - before >= 4_000, stand.patience_s(0))
            began = time.time()
            stamps = load.trickle(
                stand.servers, name, PARTITIONS, sizes.trickle_per_second, sizes.trickle_s, stand.values
            )
            wanted = 1_000 * PARTITIONS + sizes.trickle_per_second * sizes.trickle_s
            sink.wait("the trickle delivered", lambda: stand.rows() - before >= wanted, 60.0)
        files = accepted(stand.client, name)
    ages = figures.ages(stamps, files, began + WARM_UP_S)
    found = {f"p{share}": round(figures.percentile(ages, share / 100), 2) for share in (50, 90, 99)}
    found["max"] = round(max(ages), 2)
    report(
        f"\nfreshness: {sizes.trickle_per_second} records/s for {sizes.trickle_s} s on {PARTITIONS} topic-partitions, "
        f"commit.interval.ms={INTERVAL_MS}; seconds from record timestamp to acceptance, {len(ages):,} records"
    )
    report(figures.table(list(found), [[f"{value:.2f}" for value in found.values()]]))
    report()
    return found
