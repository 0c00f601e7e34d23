"""What a replay takes from the connector that it runs beside: passes alone, and beside one without an end, in turn."""

import contextlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
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
TIMES: Final = 1_000_000
"""More often than a pass has time for."""
BEGIN_S: Final = 60.0
STOP_S: Final = 60.0
INTERRUPTED: Final = 130


def run(stand: Stand) -> dict[str, Any]:
    """Records a second of the connector, and of the replay at the rate that it has unless told otherwise."""
    work = stand.orders(PARTITIONS)
    name, share = f"{work.name}-replayed", stand.sizes.per_partition(work.records, PARTITIONS)
    work = replace(work, name=name)
    flush = {**stand.flush, "commit.records": stand.sizes.per_file(share)}
    alone, beside, replayed = list[float](), list[float](), list[float]()
    report(f"a replay beside the connector: {share * PARTITIONS:,} records a pass")
    with stand.part_folder(name) as folder, stand.topic(name, PARTITIONS):
        path = connector_file(folder, name, name, stand.target.endpoint(), flush, work.keys)
        load.fill(stand.servers, name, PARTITIONS, share, work.values, work.record)
        before = stand.rows()
        with SinkProcess([path], stand.servers, folder) as sink, Sampler(sink.pid) as memory:
            patience_s = stand.patience_s(work.records)
            sink.wait("the first pass delivered", lambda: stand.rows() - before >= work.rows(share), patience_s)
            for _ in range(stand.sizes.passes):
                alone.append(measure(stand, sink, memory, work, share)[0].records_per_second)
                with _replay(stand, path, share, folder):
                    rows, began = _replayed(stand), time.monotonic()
                    beside.append(measure(stand, sink, memory, work, share)[0].records_per_second)
                    replayed.append((_replayed(stand) - rows) / (time.monotonic() - began))
    slower = 1 - statistics.median(beside) / statistics.median(alone)
    rows_told = [["the connector alone", alone], ["the connector beside a replay", beside], ["the replay", replayed]]
    report(figures.table(["records/s", "median (least to most)"], [[who, figures.spread(of)] for who, of in rows_told]))
    report(f"  the connector was {100 * slower:.0f} % slower beside it\n")
    found = {"alone": alone, "beside": beside, "replay": replayed}
    return {**{who: round(statistics.median(of)) for who, of in found.items()}, "slower": round(slower, 3)}


@contextmanager
def _replay(stand: Stand, connector: Path, share: int, folder: Path) -> Iterator[None]:
    """The records of the first pass are sent again and again; from its first file on."""
    words = ["replay", "--connector", str(connector), "--bootstrap-servers", stand.servers]
    words += ["--from", "0", "--to", str(share - 1), "--times", str(TIMES)]
    before, log = stand.client.statistics()["repeated_files"], folder / "replay.log"
    with log.open("wb") as said:
        replay = subprocess.Popen(
            [sys.executable, "-m", "parquet_sink", *words], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        deadline = time.monotonic() + BEGIN_S
        while stand.client.statistics()["repeated_files"] == before:
            if replay.poll() is not None or time.monotonic() > deadline:
                raise SetupError(f"The replay sent nothing. It said:\n{log.read_text(errors='replace')}")
            time.sleep(0.1)
        yield
        replay.send_signal(signal.SIGINT)
        if (status := replay.wait(STOP_S)) != INTERRUPTED:
            raise SetupError(f"The replay ended with {status}. It said:\n{log.read_text(errors='replace')}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            replay.kill()
        replay.wait()


def _replayed(stand: Stand) -> int:
    return int(stand.client.statistics()["repeated_rows"])
