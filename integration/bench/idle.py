"""What a further idle connector costs: the same program with one connector, and with some more."""

import time
from pathlib import Path
from typing import Any

from integration.bench import figures, load, processes
from integration.bench.parts import Stand, say
from integration.bench.running import SinkProcess, connector_file

LOOK_S = 5.0
LOOKS = 12
STEADY = 0.01


def run(stand: Stand) -> dict[str, Any]:
    """Each connector delivers one record and then idles, so that all of its processes exist. Prints and returns."""
    more = stand.sizes.idle_connectors
    few, few_cpu = _measure(stand, "alone", 1)
    many, many_cpu = _measure(stand, "several", 1 + more)
    each, cpu = (many - few) / more / 1e6, 100 * (many_cpu - few_cpu) / more
    say(
        f"\nidle connectors: one {figures.megabytes(few)} MB, {1 + more} {figures.megabytes(many)} MB: "
        f"{each:.0f} MB and {cpu:.2f} % of a core for each further one\n"
    )
    return {
        "idle_connector_mb": round(each),
        "idle_connector_core_percent": round(cpu, 2),
        "idle_one_mb": round(few / 1e6),
    }


def _measure(stand: Stand, name: str, count: int) -> tuple[float, float]:
    """Memory in bytes of a program with `count` idle connectors, and the share of a core that it takes."""
    names = [f"bench-idle-{name}-{number}" for number in range(count)]
    with stand.part_folder(f"idle-{name}") as folder:
        files = [_connector(stand, folder, one) for one in names]
        before = stand.rows()
        with SinkProcess(files, stand.servers, folder) as sink:
            sink.wait("one record of each", lambda: stand.rows() - before >= count, 120.0 + 15.0 * count)
            return _settled(sink)


def _connector(stand: Stand, folder: Path, name: str) -> Path:
    stand.broker.create_topic(name, 1)
    load.fill(stand.servers, name, 1, 1, stand.values)
    return connector_file(folder, name, name, stand.target.endpoint(), stand.flush, {})


def _settled(sink: SinkProcess) -> tuple[float, float]:
    """Waits until memory hardly changes from look to look, for a bounded time."""
    last = 0.0
    for _ in range(LOOKS):
        before = processes.usage(sink.pid)
        time.sleep(LOOK_S)
        spent = sum(processes.between(before, processes.usage(sink.pid)).values())
        size = float(sum(processes.memory_bytes(process.pid) for process in processes.tree(sink.pid)))
        if abs(size - last) <= STEADY * size:
            break
        last = size
    return size, spent / LOOK_S
