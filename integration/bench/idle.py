"""What a further idle connector costs: the same program with one connector, and with some more.

Each connector delivers one record first, so that all of its processes exist. Spark ends workers that had no task for a
minute, so there are two answers: right after work, and after that minute.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.bench import figures, load, processes
from integration.bench.parts import Stand, report
from integration.bench.running import SinkProcess, connector_file

AFTER_WORK_S = 10.0
IDLE_S = 80.0
LOOK_S = 10.0


@dataclass(frozen=True)
class Idling:
    """Bytes by group of processes right after work and after a minute; then the share of a core."""

    warm: Mapping[str, int]
    cold: Mapping[str, int]
    core: float


def run(stand: Stand) -> dict[str, Any]:
    """Prints memory by group; returns what each further connector takes."""
    more = stand.sizes.idle_connectors
    few, many = _measure(stand, "alone", 1), _measure(stand, "several", 1 + more)
    warm, cold = _total(many.warm) - _total(few.warm), _total(many.cold) - _total(few.cold)
    core = 100 * (many.core - few.core) / more
    report(f"\nidle connectors: memory of all processes, MB; right after work, and {IDLE_S:.0f} s later")
    report(figures.table(["processes", "1", f"{1 + more}", "1, later", f"{1 + more}, later"], _rows(few, many)))
    report(
        f"  each further one: {warm / more / 1e6:.0f} MB right after work, {cold / more / 1e6:.0f} MB later, "
        f"{core:.2f} % of a core\n"
    )
    return {
        "idle_connector_mb": figures.megabytes(cold / more),
        "idle_connector_after_work_mb": figures.megabytes(warm / more),
        "idle_connector_core_percent": round(core, 2),
        "idle_one_mb": figures.megabytes(_total(few.cold)),
    }


def _rows(few: Idling, many: Idling) -> list[list[str]]:
    columns = (few.warm, many.warm, few.cold, many.cold)
    groups = sorted({group for column in columns for group in column}, key=lambda group: -many.warm.get(group, 0))
    rows = [[group, *(f"{column.get(group, 0) / 1e6:,.0f}" for column in columns)] for group in groups]
    return [*rows, ["all", *(f"{_total(column) / 1e6:,.0f}" for column in columns)]]


def _total(column: Mapping[str, int]) -> int:
    return sum(column.values())


def _measure(stand: Stand, name: str, count: int) -> Idling:
    names = [f"bench-idle-{name}-{number}" for number in range(count)]
    with stand.part_folder(f"idle-{name}") as folder:
        files = [_connector(stand, folder, one) for one in names]
        before = stand.rows()
        with SinkProcess(files, stand.servers, folder) as sink:
            sink.wait("one record of each", lambda: stand.rows() - before >= count, 120.0 + 15.0 * count)
            time.sleep(AFTER_WORK_S)
            warm = processes.memory_by_group(sink.pid)
            time.sleep(IDLE_S)
            cold = processes.memory_by_group(sink.pid)
            return Idling(warm, cold, _core(sink))


def _connector(stand: Stand, folder: Path, name: str) -> Path:
    stand.broker.create_topic(name, 1)
    load.fill(stand.servers, name, 1, 1, stand.values)
    return connector_file(folder, name, name, stand.target.endpoint(), stand.flush, stand.keys)


def _core(sink: SinkProcess) -> float:
    """The share of one core that the sink takes now."""
    before, began = processes.usage(sink.pid), time.monotonic()
    time.sleep(LOOK_S)
    spent = sum(processes.between(before, processes.usage(sink.pid)).values())
    return spent / (time.monotonic() - began)
