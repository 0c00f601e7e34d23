"""`python -m integration.tune`: predicted against measured, five loads; see docs/explanation/tuning.md.

DURATION_S: how long each group of loads runs (120). RUNS: how often (1). The last line is one JSON object.
"""

import json
import os
import signal
import sys
from dataclasses import asdict

from integration.tune.compare import TOLERANCE, Compared, table
from integration.tune.loads import GROUPS
from integration.tune.run import Stand, compare, stand
from parquet_sink.errors import SinkError


def _run(ready: Stand, number: int, seconds: float) -> list[Compared]:
    """All groups, one after the other; printed as they end."""
    found = []
    for loads in GROUPS:
        compared, took, batches = compare(ready, seconds, loads)
        print(f"\nrun {number}: {seconds:.0f} s, {batches} micro-batches, {took}")
        print(f"\npredicted / measured\n\n{table(compared)}", flush=True)
        found += compared
    return found


def main() -> int:
    """0 when every figure is within TOLERANCE in every run, 1 when not; 2 when it could not be measured."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seconds, runs = float(os.environ.get("DURATION_S", "120")), int(os.environ.get("RUNS", "1"))
    try:
        with stand() as ready:
            found = [_run(ready, number, seconds) for number in range(1, runs + 1)]
    except SinkError as error:
        print(f"tune: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("tune: interrupted, nothing is left running", file=sys.stderr)
        return 130
    worst = max(one.worst for compared in found for one in compared)
    print(json.dumps({"tolerance": TOLERANCE, "worst": worst, "runs": [[asdict(one) for one in run] for run in found]}))
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
