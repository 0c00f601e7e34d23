"""What many topic-partitions cost that trickle: freshness of 300, and CPU time of 100 beside 9,900 idle ones."""

import time
from dataclasses import dataclass
from typing import Any, Final

from integration.bench import figures, load, processes
from integration.bench.parts import Stand, report
from integration.bench.running import SinkProcess, accepted, connector_file
from integration.bench.sampler import Sampler

INTERVAL_MS: Final = 3_000
TRICKLING: Final = 300
BUSY: Final = 100
IDLE_TOPICS: Final = 50
IDLE_EACH: Final = 198
SETTLE_S: Final = 20
"""Of the load before anything is measured: workers and compiled code are there, and idle ones are known as that."""


@dataclass(frozen=True)
class Trickle:
    """ages: seconds from each record's timestamp to its acceptance. cpu: shares of a core, by group of processes."""

    ages: list[float]
    cpu: dict[str, float]

    @property
    def core(self) -> float:
        """The share of a core of all processes."""
        return sum(self.cpu.values())

    @property
    def figures(self) -> dict[str, float]:
        """As the last line has them."""
        shares = {f"p{share}_s": round(figures.percentile(self.ages, share / 100), 2) for share in (50, 90, 99)}
        return {**shares, "max_s": round(max(self.ages), 2), "core_percent": round(100 * self.core, 1)}


def run(stand: Stand) -> dict[str, Any]:
    """Measures all three, prints and returns their figures. Raises KafkaFailed, SetupError."""
    found = {
        f"{TRICKLING}": _measure(stand, "bench-trickle-many", TRICKLING, 0),
        f"{BUSY}": _measure(stand, "bench-trickle-busy", BUSY, 0),
        f"{BUSY}_beside_idle": _measure(stand, "bench-trickle-beside", BUSY, IDLE_TOPICS),
    }
    sizes = stand.sizes
    report(
        f"\ntrickle: {sizes.trickle_per_second} records/s for {sizes.trickle_s} s after {SETTLE_S} s of the same, "
        f"commit.interval.ms={INTERVAL_MS}; seconds from record timestamp to acceptance, and CPU in % of a core"
    )
    heads = ["topic-partitions", *next(iter(found.values())).figures]
    report(figures.table(heads, [[name, *map(str, one.figures.values())] for name, one in found.items()]))
    groups = sorted({group for one in found.values() for group in one.cpu})
    rows = [[group, *(f"{100 * one.cpu.get(group, 0.0):.1f}" for one in found.values())] for group in groups]
    report(figures.table(["% of a core", *found], rows))
    ratio = round(found[f"{BUSY}_beside_idle"].core / found[f"{BUSY}"].core, 2)
    report(f"  {BUSY} beside {IDLE_TOPICS * IDLE_EACH:,} idle ones: {ratio} times the CPU time of {BUSY} alone\n")
    return {"cpu_ratio_beside_idle": ratio, **{name: one.figures for name, one in found.items()}}


def _measure(stand: Stand, name: str, partitions: int, idle_topics: int) -> Trickle:
    """A trickle on one topic, whose connector has so many idle topics beside."""
    sizes = stand.sizes
    idle = [f"{name}-idle-{number}" for number in range(idle_topics)]
    flush = {**stand.flush, "commit.interval.ms": INTERVAL_MS}
    for topic in idle:  # which hold no records, and go with the broker: deleting them takes minutes
        stand.broker.create_topic(topic, IDLE_EACH)
    with stand.part_folder(name) as folder, stand.topic(name, partitions):
        keys = {**stand.keys, "topics": ",".join([name, *idle])}
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, keys)
        load.fill(stand.servers, name, partitions, 1, stand.values)
        before = stand.rows()
        with SinkProcess([path], stand.servers, folder) as sink, Sampler(sink.pid) as sampler:
            sink.wait("the first records delivered", lambda: stand.rows() - before >= partitions, stand.patience_s(0))
            load.trickle(stand.servers, name, partitions, sizes.trickle_per_second, SETTLE_S, stand.values)
            began, used = time.monotonic(), sampler.usage()
            stamps = load.trickle(
                stand.servers, name, partitions, sizes.trickle_per_second, sizes.trickle_s, stand.values
            )
            spent, seconds = processes.between(used, sampler.usage()), time.monotonic() - began
            wanted = partitions + sizes.trickle_per_second * (SETTLE_S + sizes.trickle_s)
            sink.wait("the trickle delivered", lambda: stand.rows() - before >= wanted, 60.0)
        ages = figures.ages(stamps, accepted(stand.client, name), 0.0)
    return Trickle(ages, {group: cpu / seconds for group, cpu in spent.items()})
