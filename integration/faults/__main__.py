"""`python -m integration.faults`: what is run is chosen by the environment variables FAULTS and ONLY.

Ends with 0 when every fault that was run held, with 1 otherwise, with 2 when a variable makes no sense.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from integration.certificates import make
from integration.faults import http, report
from integration.faults.act import Act
from integration.faults.rows import BROKE, Outcome
from integration.faults.scenes import SCENES
from integration.faults.stage import Stage
from integration.faults.world import World
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess

PARTS = (*http.PARTS, *SCENES)
MOST_SMALL, MOST_LARGE = 24, 8
"""Connectors of one program."""


def main() -> int:
    """Runs, prints, and returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all that was started is ended
    parts, only = chosen(os.environ.get("FAULTS", "")), os.environ.get("ONLY", "").lower()
    began, outcomes = time.monotonic(), list[Outcome]()
    print(f"faults: {', '.join(part for part in PARTS if part in parts)}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="parquet-sink-faults-") as folder,
        Broker(properties={"log.cleaner.backoff.ms": "500"}, retention_check_ms=500) as broker,
        TargetProcess(Path(folder) / "target", deleted_column="__deleted") as target,
    ):
        certificates = Path(folder) / "certificates"
        certificates.mkdir()
        world = World(broker, target, Path(folder), make(certificates))
        for number, acts in enumerate(stages(world, parts, only)):
            play(acts, world.folder / f"stage-{number}")
            outcomes += (new := [act.outcome for act in acts])
            print("\n".join(report.lines(new)), flush=True)
            keep(new)
            target.client.reset()
    if not outcomes:
        print(f"ONLY={only}: no row of {', '.join(sorted(parts))} has this in its name", file=sys.stderr)
        return 2
    print(f"\nAll rows, after {time.monotonic() - began:.0f} s:", *report.lines(outcomes), sep="\n")
    print(report.summary(outcomes))
    return 0 if report.passed(outcomes) else 1


def chosen(given: str) -> set[str]:
    """Parts by name, all when none is given. Ends the program when one is unknown."""
    parts = {name.strip() for name in given.split(",")} - {""}
    if unknown := parts - set(PARTS):
        print(f"FAULTS={given}: unknown {', '.join(sorted(unknown))}; known are {', '.join(PARTS)}", file=sys.stderr)
        sys.exit(2)
    return parts or set(PARTS)


def stages(world: World, parts: set[str], only: str) -> Iterator[list[Act]]:
    """Acts that run side by side in one program. only: parts of rows' names, with semicolons between."""

    def wanted(acts: Iterable[Act]) -> list[Act]:
        return [act for act in acts if any(part.strip() in str(act.row).lower() for part in only.split(";"))]

    for part, scenes in SCENES.items():
        if part in parts:
            acts = wanted(scenes(world))
            shared = [act for act in acts if not act.own_sink]
            yield from ([act] for act in acts if act.own_sink)
            if shared:
                yield shared
    for acts in http.acts(world, parts):
        left = wanted(acts)
        most = MOST_LARGE if any(http.LARGE in act.row.how for act in left) else MOST_SMALL
        yield from (left[start : start + most] for start in range(0, len(left), most))


def play(acts: list[Act], folder: Path) -> None:
    """One stage; what goes wrong with the stage itself is a trouble of all its rows."""
    try:
        Stage(acts, folder).run()
    except Exception as error:  # noqa: BLE001 - the other stages are still to be run
        for act in acts:
            act.outcome.status = BROKE
            act.outcome.troubles = [*act.troubles, f"{type(error).__name__}: {error}"]


def keep(outcomes: Sequence[Outcome]) -> None:
    """Adds results to the file that FAULTS_RESULTS names, one JSON object a line."""
    if path := os.environ.get("FAULTS_RESULTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(report.result(one))}\n" for one in outcomes)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
