"""A short job: `run --until-caught-up` of a few records, from its start to its exit."""

import statistics
import time
from typing import Any, Final

from integration.bench import figures, load
from integration.bench.parts import Stand, describe_machine, report
from integration.bench.running import SinkProcess, connector_file
from parquet_sink.errors import SetupError

TIMEOUT_S: Final = 180.0


def run(stand: Stand) -> dict[str, Any]:
    """Run the job `PASSES` times, each on a topic of its own; print and return the figures. Raise SetupError."""
    machine = describe_machine()
    took = [_run_once(stand, f"bench-job-{number}") for number in range(stand.sizes.passes)]
    records = stand.sizes.job_records
    report(f"\njob of {records:,} records, from start to exit: {figures.spread(took, 2)} s; {machine}\n")
    return {"records": records, "seconds": round(statistics.median(took), 2), "most_seconds": round(max(took), 2)}


def _run_once(stand: Stand, name: str) -> float:
    """Return the seconds of one job. Raise SetupError if it fails or leaves records behind."""
    records, before = stand.sizes.job_records, stand.rows()
    with stand.part_folder(name) as folder, stand.topic(name, 1):
        path = connector_file(folder, name, name, stand.target.endpoint(), stand.flush, stand.keys)
        load.fill(stand.servers, name, 1, records, stand.values)
        began = time.monotonic()
        with SinkProcess([path], stand.servers, folder, options=["--until-caught-up"]) as sink:
            sink.wait_for_exit(TIMEOUT_S)
            took = time.monotonic() - began
    if (rows := stand.rows() - before) != records:
        raise SetupError(f"The job ended with {rows} of {records} records delivered.")
    return took
