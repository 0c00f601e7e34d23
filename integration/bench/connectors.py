"""What many connectors in one worker cost: until all have delivered, idle and busy, beside Kafka Connect's."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from integration.bench import figures, load, processes
from integration.bench.connect_workers import ConnectWorker, run_kafka_connect, run_our_worker
from integration.bench.figures import Accepted
from integration.bench.parts import Stand, describe_machine, report
from integration.bench.running import accepted
from integration.bench.sampler import Sampler
from integration.bench.throughput import read_others_cpu_s

IDLE: Final = {"commit.records": 1}
"""A connector's only record fills a file, so that no interval is waited for."""
BUSY_INTERVAL_MS: Final = 2_000
BUSY_PARTITIONS: Final = 5
"""Topic-partitions of each busy connector."""
BUSY_PER_SECOND: Final = 3
"""Records of each topic-partition."""
SETTLE_S: Final = 10
"""Of the busy load before anything is measured."""
ANSWERS: Final = 20
"""How often each address is asked for."""


def run(stand: Stand) -> dict[str, Any]:
    """Measure all sizes, print and return their figures. Raise SetupError, KafkaFailed."""
    sizes = stand.sizes
    found: dict[str, Any] = {}
    for count in sizes.connectors:
        found[f"{count}"] = _measure_idle(
            stand, f"bench-connectors-{count}", count, lambda folder: run_our_worker(stand, folder, IDLE)
        )
    if count := sizes.kafka_connect:
        found[f"kafka_connect_{count}"] = _measure_idle(
            stand, f"bench-kafka-connect-{count}", count, lambda folder: run_kafka_connect(stand, folder), page=""
        )
    if count := sizes.busy_connectors:
        found[f"busy_{count}"] = _measure_busy(stand, f"bench-busy-{count}", count)
    return found


def _measure_idle(
    stand: Stand,
    name: str,
    count: int,
    start: Callable[[Path], AbstractContextManager[ConnectWorker]],
    page: str = "/ui",
) -> dict[str, Any]:
    """Measure a worker whose connectors deliver one record each and then idle. page: its address, "" for none."""
    sizes, machine = stand.sizes, describe_machine()
    topics = _fill_topics(stand, name, count, 1)
    with stand.part_folder(name) as folder, start(folder) as worker:
        delivered_s = worker.create_connectors(topics, stand.patience_s(0) + 3 * count)
        report(
            f"{name}: all delivered after {delivered_s:.1f} s ({machine}); "
            f"measured after {sizes.settle_s} s without records"
        )
        time.sleep(sizes.settle_s)
        memory, alive = processes.memory_by_group(worker.pid), len(processes.tree(worker.pid))
        cpu = _measure_cpu(stand, worker, lambda: time.sleep(sizes.look_s))
        result: dict[str, Any] = {
            "cpu_percent": round(100 * sum(cpu.values()), 1),
            "pss_mb": figures.megabytes(sum(memory.values())),
            "processes": alive,
            "delivered_s": round(delivered_s, 1),
        }
        result |= _measure_answers(worker, topics, page)
    rows = [
        [group, f"{memory.get(group, 0) / 1e6:,.0f}", f"{100 * cpu.get(group, 0.0):.1f}"]
        for group in sorted({*memory, *cpu}, key=lambda group: -memory.get(group, 0))
    ]
    report(figures.table(["processes", "MB", "% of a core"], rows))
    report(f"  {result}\n")
    return result


def _measure_busy(stand: Stand, name: str, count: int) -> dict[str, Any]:
    """Measure a worker whose connectors flush all their topic-partitions at every interval."""
    sizes, machine = stand.sizes, describe_machine()
    topics = _fill_topics(stand, name, count, BUSY_PARTITIONS)
    partitions = count * BUSY_PARTITIONS
    per_second, before = partitions * BUSY_PER_SECOND, stand.rows()
    flush = {"commit.interval.ms": BUSY_INTERVAL_MS}
    stamps: dict[str, dict[tuple[int, int], float]] = {}

    def produce(seconds: int) -> None:
        stamps.update(load.trickle_all(stand.servers, topics, BUSY_PARTITIONS, per_second, seconds, stand.values))

    def wait_for_rows(rows: int) -> None:
        deadline = time.monotonic() + stand.patience_s(0) + 3 * count
        worker.wait(f"{rows} records delivered", lambda: stand.rows() - before >= rows, deadline)

    with stand.part_folder(name) as folder, run_our_worker(stand, folder, flush) as worker:
        worker.create_connectors(topics, stand.patience_s(0) + 3 * count)
        wait_for_rows(partitions)
        produce(SETTLE_S)
        cpu = _measure_cpu(stand, worker, lambda: produce(sizes.trickle_s))
        wait_for_rows(partitions + per_second * (SETTLE_S + sizes.trickle_s))
        memory, alive = processes.memory_by_group(worker.pid), len(processes.tree(worker.pid))
        files = {topic: accepted(stand.client, topic) for topic in topics}
    ages = [age for topic in topics for age in find_file_ages(files[topic], stamps[topic])]
    result = {
        "cores": round(sum(cpu.values()), 2),
        "interval_s": BUSY_INTERVAL_MS / 1_000,
        **{f"age_p{share}_s": round(figures.percentile(ages, share / 100), 2) for share in (50, 95, 99)},
        "age_max_s": round(max(ages), 2),
        "files_per_second": round(len(ages) / sizes.trickle_s, 1),
        "pss_mb": figures.megabytes(sum(memory.values())),
        "processes": alive,
    }
    report(
        f"{name}: {per_second} records/s on {partitions} topic-partitions for {sizes.trickle_s} s, "
        f"{machine}; age: of a file's oldest record at its acceptance"
    )
    report(figures.table(["processes", "cores"], [[group, f"{share:.2f}"] for group, share in cpu.items()]))
    report(f"  {result}\n")
    return result


def find_file_ages(files: list[Accepted], stamps: Mapping[tuple[int, int], float]) -> list[float]:
    """Return for each file the age of its oldest record at acceptance, in s. Leave out files from before the stamps."""
    return [
        file.at - stamps[file.partition, file.first_offset]
        for file in files
        if (file.partition, file.first_offset) in stamps
    ]


def _fill_topics(stand: Stand, name: str, count: int, partitions: int) -> list[str]:
    """Create the topics, which go with the broker, and write one record to each topic-partition."""
    topics = [f"{name}-{number}" for number in range(count)]
    for topic in topics:
        stand.broker.create_topic(topic, partitions)
    load.fill_each(stand.servers, topics, partitions, stand.values)
    return topics


def _measure_cpu(stand: Stand, worker: ConnectWorker, work: Callable[[], None]) -> dict[str, float]:
    """Return the cores that the worker's processes use while the work is done, by group of processes."""
    with Sampler(worker.pid, memory=False) as sampler:
        before, others, began = sampler.usage(), _read_others(stand), time.monotonic()
        work()
        spent, seconds = processes.between(before, sampler.usage()), time.monotonic() - began
        cores = {name: (cpu_s - others[name]) / seconds for name, cpu_s in _read_others(stand).items()}
    report(f"cores: {', '.join(f'{name} {value:.2f}' for name, value in cores.items())}")
    return {group: cpu_s / seconds for group, cpu_s in spent.items()}


def _read_others(stand: Stand) -> dict[str, float]:
    """Return CPU seconds so far of the whole machine, and of what is not the worker."""
    machine_s = processes.read_machine_cpu_s()
    return {"whole machine": machine_s, **read_others_cpu_s(stand), "benchmark": time.process_time()}


def _measure_answers(worker: ConnectWorker, topics: list[str], page: str) -> dict[str, dict[str, float]]:
    """Return how long the REST API and the page take to answer, in ms."""
    asked = [topics[number * len(topics) // ANSWERS] for number in range(ANSWERS)]
    paths = [*(f"/connectors/{topic}/status" for topic in asked), *["/connectors?expand=status"] * ANSWERS]
    answers = {"rest_ms": paths, **({"page_ms": [page] * ANSWERS} if page else {})}
    return {name: _summarize([worker.measure_answer_ms(path) for path in paths]) for name, paths in answers.items()}


def _summarize(times_ms: list[float]) -> dict[str, float]:
    return {"p95": round(figures.percentile(times_ms, 0.95), 1), "max": round(max(times_ms), 1)}
