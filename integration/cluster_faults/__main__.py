"""`python -m integration.cluster_faults`: sizes by the environment.

MINUTES of faults (5), SEED, CONNECTORS (8) of PARTITIONS (5) topic-partitions each, RATE: records a second of each
connector (5), SESSION_MS: session.timeout.ms of the workers (6000), INTERVAL_MS: commit.interval.ms of the
connectors (2000), CLIENTS that change connectors by REST meanwhile (3), each at least every PAUSE_S seconds (2); what
they change starts again, which takes half a second of CPU. LOGS: a folder for the workers' logs.
Two more connectors leave files, notices, parked records and memory of a file at each worker (`leavings.py`).
Ends with 0 when nothing was lost, altered or invented, no offset went back, no connector had two owners, and what
clients were told by REST is of one order (`rest_history.py`), with 1 otherwise, with 130 after Ctrl-C.
"""

import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from integration.cluster_faults.link import Link
from integration.cluster_faults.report import Plan, Report
from integration.cluster_faults.run import ClusterFaults
from integration.cluster_faults.workers import linked_broker
from integration.oracle.trial import Failed
from integration.sizes import size
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess


def main() -> int:
    """Runs, prints, and returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all that was started is ended
    plan = Plan(
        minutes=size("MINUTES", 5),
        seed=size("SEED", random.randrange(1, 1_000_000)),
        connectors=size("CONNECTORS", 8),
        partitions=size("PARTITIONS", 5),
        per_second=size("RATE", 5),
        session_ms=size("SESSION_MS", 6_000),
        interval_ms=size("INTERVAL_MS", 2_000),
        clients=size("CLIENTS", 3, least=0),
        pause_s=size("PAUSE_S", 2),
    )
    print(
        f"{plan.minutes} minutes of faults, {plan.connectors} connectors of {plan.partitions} topic-partitions at "
        f"{plan.per_second} records/s each, session.timeout.ms={plan.session_ms}, "
        f"commit.interval.ms={plan.interval_ms}, {plan.clients} clients of the REST API, SEED={plan.seed}",
        flush=True,
    )
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-cluster-faults-") as folder,
        linked_broker() as (broker, links),
        TargetProcess(Path(folder) / "target", deleted_column="__deleted") as target,
    ):
        report = cluster_faults(plan, broker, links, target, Path(folder))
    for line in report.lines():
        print(line)
    print(report.summary())
    return 0 if report.passed else 1


def cluster_faults(plan: Plan, broker: Broker, links: Sequence[Link], target: TargetProcess, folder: Path) -> Report:
    """One run; what goes wrong with the run itself is a trouble of its report."""
    run = ClusterFaults(plan, broker, links, target, folder)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed, and its figures are still told
        told = isinstance(error, Failed | AssertionError | TimeoutError)
        run.report.troubles.append(str(error) if told else traceback.format_exc())
    finally:
        run.close()
    if not run.report.passed or os.environ.get("LOGS"):
        kept = Path(os.environ.get("LOGS") or tempfile.mkdtemp(prefix="parquet-sink-cluster-faults-kept-"))
        kept.mkdir(parents=True, exist_ok=True)
        run.workers.keep(kept)
        print(f"the workers' logs are kept in {kept}")
    return run.report


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
