"""`python -m integration.soak`: sizes by the environment variables MINUTES, SEED and RATE.

MINUTES of mixed faults in one life of the sink, 60 unless given; some more for the peak, for the kills that
end a life, and for the judgement. RATE: records a second; half of the peak, which is measured first, unless given.
Ends with 0 when every record arrived unaltered, nothing else did, and nothing that the sink takes grew; with 1
otherwise, with 130 after Ctrl-C.
"""

import os
import random
import sys
import tempfile
import traceback
from pathlib import Path

from integration.oracle.trial import Failed
from integration.sink_process import LOG
from integration.sizes import size
from integration.soak.report import Plan, Report
from integration.soak.run import Soak
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

MINUTES = 60


def main() -> int:
    """Runs, prints, and returns the exit status."""
    per_second = size("RATE", 0) if os.environ.get("RATE") else None
    plan = Plan(size("MINUTES", MINUTES), size("SEED", random.randrange(1, 1_000_000)), per_second)
    rate = "half of the peak" if per_second is None else f"{per_second} records a second"
    print(f"{plan.minutes} minutes of mixed faults at {rate}, SEED={plan.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-soak-") as folder,
        Broker() as broker,
        TargetProcess(Path(folder) / "target", deleted_column="__deleted") as target,
    ):
        try:
            report = soak(plan, broker, target, Path(folder))
        except KeyboardInterrupt:
            print("\nsoak: interrupted; nothing was judged", file=sys.stderr)
            return 130
    for line in report.lines():
        print(line)
    print(report.summary())
    return 0 if report.passed else 1


def soak(plan: Plan, broker: Broker, target: TargetProcess, folder: Path) -> Report:
    """One run; what goes wrong with the run itself is a trouble of its report."""
    run = Soak(plan, broker, target, folder)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the run has failed, and its figures are still told
        run.trial.nothing_judged(str(error) if isinstance(error, Failed) else traceback.format_exc())
    finally:
        run.trial.close()
    kept = Path(tempfile.mkdtemp(prefix="parquet-sink-soak-kept-"))
    run.measures.write(kept / "samples.csv")
    print(f"what was measured is kept in {kept / 'samples.csv'}")
    if not run.report.passed:
        (kept / LOG).write_bytes((folder / LOG).read_bytes())
        run.report.troubles.append(f"the sink's log is kept as {kept / LOG}")
    return run.report


if __name__ == "__main__":
    sys.exit(main())
