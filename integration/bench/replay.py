"""What a replay takes from the connector that it runs beside: passes alone, and beside one without an end, in turn."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from integration.bench import figures, load
from integration.bench.parts import Stand, report
from integration.bench.running import SinkProcess, connector_file
from integration.bench.sampler import Sampler
from integration.bench.throughput import measure
from parquet_sink.errors import SetupError

PARTITIONS: Final = 4
TIMES: Final = 1_000
"""The most that a replay takes, and more than a pass has time for."""
TOLD: Final = {"alone": "the connector alone", "beside": "the connector beside a replay", "replay": "the replay"}
BEGIN_S: Final = 60.0
STOP_S: Final = 60.0
INTERRUPTED: Final = 130


def run(stand: Stand) -> dict[str, Any]:
    """Records a second of the connector, and of the replay at the rate that it has unless told otherwise."""
    orders = stand.orders(PARTITIONS)
    work = replace(orders, name=f"{orders.name}-replayed")
    name, share = work.name, stand.sizes.per_partition(work.records, PARTITIONS)
    flush = {**stand.flush, "commit.records": stand.sizes.per_file(share)}
    report(f"a replay beside the connector: {share * PARTITIONS:,} records a pass")
    with stand.part_folder(name) as folder, stand.topic(name, PARTITIONS):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, work.keys)
        load.fill(stand.servers, name, PARTITIONS, share, work.values, work.record)
        before, patience_s = stand.rows(), stand.patience_s(work.records)
        with SinkProcess([path], stand.servers, folder) as sink, Sampler(sink.pid) as memory:
            sink.wait("the first pass delivered", lambda: stand.rows() - before >= work.rows(share), patience_s)

            def rate() -> float:
                return measure(stand, sink, memory, work, share)[0].records_per_second

            for _ in range(stand.sizes.warm_up_passes - 1):
                rate()
            found: dict[str, list[float]] = {who: [] for who in TOLD}
            for _ in range(stand.sizes.passes):
                found["alone"].append(rate())
                with _replay(stand, path, folder):
                    rows, began = _replayed(stand), time.monotonic()
                    found["beside"].append(rate())
                    found["replay"].append((_replayed(stand) - rows) / (time.monotonic() - began))
    return _figures(found)


def _figures(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Prints them, and gives what the last line has."""
    medians = {who: round(statistics.median(rates)) for who, rates in found.items()}
    slower = 1 - medians["beside"] / medians["alone"]
    rows = [[TOLD[who], figures.spread(rates)] for who, rates in found.items()]
    report(figures.table(["records/s", "median (least to most)"], rows))
    report(f"  the connector was {100 * slower:.0f} % slower beside it\n")
    return {**medians, "slower": round(slower, 3)}


@contextmanager
def _replay(stand: Stand, connector: Path, folder: Path) -> Iterator[None]:
    """All that was delivered is sent again and again; from its first file on."""
    words = ["replay", "--connector", str(connector), "--bootstrap-servers", stand.servers]
    words += ["--times", str(TIMES)]
    before, log = stand.client.statistics()["repeated"], folder / "replay.log"
    with log.open("wb") as said:
        replay = subprocess.Popen(
            [sys.executable, "-m", "parquet_sink", *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        deadline = time.monotonic() + BEGIN_S
        while stand.client.statistics()["repeated"] == before:
            if replay.poll() is not None or time.monotonic() > deadline:
                raise SetupError(f"The replay sent nothing. It said:\n{log.read_text(errors='replace')}")
            time.sleep(0.1)
        yield
        replay.terminate()
        if (status := replay.wait(STOP_S)) != INTERRUPTED:
            raise SetupError(f"The replay ended with {status}. It said:\n{log.read_text(errors='replace')}")
    finally:
        replay.kill()
        replay.wait()


def _replayed(stand: Stand) -> int:
    return int(stand.client.statistics()["repeated_rows"])
