"""`make bench`: throughput, CPU time, memory and freshness of the sink; see docs/explanation/benchmark.md.

Everything is printed as it is found; the last line is one JSON object.
"""

import os
import platform
import signal
import sys
import time
from importlib.metadata import version
from typing import Any, Final

from integration.bench import (
    backlog,
    by_format,
    connectors,
    figures,
    freshness,
    idle,
    invalid,
    job,
    replay,
    stages,
    start,
    throughput,
    trickle,
    wide,
)
from integration.bench.parts import Stand, report, stand
from integration.bench.sizes import Sizes, from_environment
from parquet_sink import __version__
from parquet_sink.errors import SinkError

UNDER_ITS_NAME: Final = {
    "backlog": backlog.run,
    "invalid": invalid.run,
    "replay": replay.run,
    "wide": wide.run,
    "trickle": trickle.run,
    "connectors": connectors.run,
    "job": job.run,
}
"""Parts whose figures stand in the last line by their names."""


def main() -> int:
    """Runs the parts that are asked for; the exit status."""
    signal.signal(signal.SIGTERM, _interrupted)
    began = time.monotonic()
    try:
        sizes = from_environment()
        report(machine())
        report(str(sizes))
        with stand(sizes) as ready:
            found = measure(ready, sizes)
    except SinkError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("bench: interrupted, nothing is left running", file=sys.stderr)
        return 130
    report(f"took {time.monotonic() - began:.0f} s")
    print(figures.last_line(found))
    return 0


def measure(ready: Stand, sizes: Sizes) -> dict[str, Any]:
    """The figures of each part that is asked for, as the last line has them."""
    by_itself = sizes.formats and "invalid" not in sizes.parts
    found: dict[str, Any] = by_format.run(ready) if by_itself else {}
    for part in sizes.parts:
        if part == "start":
            found.update(start.run(ready))
        elif part in ("4", "1"):
            report(f"throughput, {part} topic-partition{'s' if part != '1' else ''}")
            found[part] = throughput.run(ready, ready.orders(int(part)))
        elif part == "freshness":
            found["freshness_s"] = freshness.run(ready)
        elif part == "idle":
            found.update(idle.run(ready))
        elif part == "stages":
            found["stages_us"] = stages.run(ready, ready.orders(1))
        else:
            found[part] = UNDER_ITS_NAME[part](ready)
    return found


def machine() -> str:
    """What the figures were taken on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "pyarrow", "confluent-kafka", "requests"))
    load_1min = os.getloadavg()[0]
    return (
        f"parquet-sink {__version__} on {os.cpu_count()} cores ({platform.machine()}, {platform.system()} "
        f"{platform.release()}), Python {platform.python_version()}, {packages}; load average {load_1min:.1f}"
    )


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
