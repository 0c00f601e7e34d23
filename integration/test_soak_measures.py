"""What a soak measures, and that its slopes tell a leak from noise."""

import math
import os
import random
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from integration.soak.measures import LIVE_HEAP, QUANTITIES, WARM_UP_S, Measures, Sample
from integration.soak.report import Report, table
from integration.soak.slopes import BLOCKS, Point, Slope, Tolerance, slope
from parquet_sink.files.naming import STATE_FILE
from parquet_sink.model.events import ConnectorFailed
from parquet_sink.model.receipts import Failure
from parquet_sink.state.sqlite import SqliteStore

MB = 1_000_000
HOUR, EVERY_S = 3_600, 10
TOLERANCE = Tolerance(0.05, 48 * MB)
LEVEL = 900 * MB


def series(grown: float, noise: float = 0.0, seconds: int = HOUR, seed: int = 1) -> list[Point]:
    """A level that grows by so much over the time, with noise and a heap's saw teeth of 100 s."""
    chance = random.Random(seed)
    return [
        (at, LEVEL + grown * at / seconds + noise * chance.gauss(0, 1) + noise * (at % 100) / 100)
        for at in range(0, seconds, EVERY_S)
    ]


def told(points: list[Point], tolerance: Tolerance = TOLERANCE) -> Slope:
    """The slope of points that are enough to tell."""
    found = slope(points, tolerance)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_flat(seed: int) -> None:
    """Saw teeth and noise of 10 % are no growth, and the interval holds 0."""
    found = told(series(0, noise=90 * MB, seed=seed))
    assert found.flat
    assert found.low < 60 * MB
    assert found.high > -60 * MB


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_is_found(seed: int) -> None:
    """150 MB in an hour are told from noise of 50 MB, whatever the chance."""
    found = told(series(150 * MB, noise=50 * MB, seed=seed))
    assert not found.flat
    assert found.grown == pytest.approx(150 * MB, rel=0.25)


def test_what_is_within_the_tolerance_is_flat() -> None:
    """A growth below 5 % of the level in an hour, or below the least amount in a short time, passes."""
    assert told(series(47 * MB)).flat
    assert not told(series(50 * MB)).flat
    assert told(series(47 * MB, seconds=300)).flat
    assert not told(series(50 * MB, seconds=300)).flat
    assert told(series(2 * 47 * MB, seconds=4 * HOUR)).flat
    assert not told(series(4 * 50 * MB, seconds=4 * HOUR)).flat


def test_shrinking_is_flat() -> None:
    """What becomes less is no leak."""
    assert told(series(-300 * MB)).flat


def test_an_outage_does_not_count() -> None:
    """A block's median leaves out what lasts less than half of it: files that pile up while the target is away."""
    points = series(0)
    for index in (100, 101, 300, 301):
        points[index] = (points[index][0], 50 * LEVEL)
    assert told(points).grown == 0


def test_a_growth_is_told_as_an_hours() -> None:
    """So runs of different length can be compared."""
    found = told(series(30 * MB, seconds=HOUR // 2))
    assert found.hourly(found.grown) == pytest.approx(60 * MB, rel=0.02)
    assert math.isclose(found.hours, 0.5, rel_tol=0.01)


def test_too_few_points_tell_nothing() -> None:
    """Neither flat nor growing is claimed."""
    assert slope([], TOLERANCE) is None
    assert slope([(float(at), 1.0) for at in range(BLOCKS - 1)], TOLERANCE) is None
    assert slope([(1.0, 1.0)] * 100, TOLERANCE) is None


def measures(tmp_path: Path) -> Measures:
    """Looks each time that it is asked."""
    return Measures(tmp_path, tmp_path / "none", 0.0, 0.0)


def test_only_the_last_life_counts_without_its_warm_up(tmp_path: Path) -> None:
    """Of a life of an hour the first ten minutes are left out, of one of two minutes the first."""
    taken = measures(tmp_path)
    for root, began, seconds in ((1, 0, 500), (2, 1_000, 3_600)):
        taken.samples += [Sample(float(at), root, {}) for at in range(began, began + seconds + 1, 10)]
    assert taken.measured()[0].at == 1_000 + WARM_UP_S[1]
    assert {one.root for one in taken.measured()} == {2}
    taken.samples += [Sample(float(at), 3, {}) for at in range(5_000, 5_121, 10)]
    assert taken.measured()[0].at == 5_000 + WARM_UP_S[0]


HOLDER = """
import sys
memory, held = bytearray(30_000_000), []
for line in sys.stdin:
    held += [open(sys.executable, "rb") for _ in range(int(line))]
    print(len(held), flush=True)
"""


def test_a_process_is_seen_with_its_files(tmp_path: Path) -> None:
    """Memory, descriptors, threads, and files by what they are; each quantity is in the table and in the CSV."""
    (tmp_path / "a.parquet.part").write_bytes(bytes(3_000))
    (tmp_path / ".history.db").write_bytes(bytes(700))
    (tmp_path / ".history.db-wal").write_bytes(bytes(500))
    (tmp_path / "other").write_bytes(bytes(20))
    taken = measures(tmp_path)
    # A process of its own, in which no library of another test opens or closes anything.
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=PIPE, stdout=PIPE, text=True) as holder:
        seen = [_descriptors_with(more, holder, taken) for more in (0, 50)]
        assert holder.stdin is not None
        holder.stdin.close()
    assert seen[1] == seen[0] + 50
    values = taken.samples[-1].values
    assert values["memory, MB"] == values["memory of the program, MB"] > 30 * MB
    assert values["threads"] == values["processes"] == 1
    assert (values["unsent Parquet, MB"], values["temporary files"]) == (3_000, 4)
    assert (values["state, MB"], values["journals of state, MB"]) == (700, 500)
    assert values["temporary files, MB"] == 20
    assert values.keys() == {each.name for each in QUANTITIES} - {LIVE_HEAP}
    taken.write(tmp_path / "samples.csv")
    lines = (tmp_path / "samples.csv").read_text().splitlines()
    assert len(lines) == 1 + len(taken.samples)
    assert all(each.name in lines[0] for each in QUANTITIES)


def test_events_that_a_state_keeps_are_told_apart(tmp_path: Path) -> None:
    """They grow to their bound in every life; what the state takes beside them is the same with many."""
    store, taken = SqliteStore(tmp_path / STATE_FILE), measures(tmp_path)
    states = []
    for several in (1, 1_000):
        failure = Failure("UploadRefused", "no " * 200)
        store.append_events([ConnectorFailed("orders", float(several + at), failure) for at in range(several)])
        taken.look(os.getpid())
        states.append(taken.samples[-1].values["state, MB"])
    store.close()
    assert taken.samples[-1].values["events in state"] == 1_001
    assert abs(states[1] - states[0]) < 0.1 * MB


def _descriptors_with(more: int, holder: "subprocess.Popen[str]", taken: Measures) -> float:
    """What is measured once the holder has opened so many files more."""
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write(f"{more}\n")
    holder.stdin.flush()
    holder.stdout.readline()
    taken.look(holder.pid)
    return taken.samples[-1].values["file descriptors"]


def test_a_run_that_tells_nothing_does_not_pass() -> None:
    """Nor does one in which anything grows, however clean the oracle's findings are."""
    flat, grows = told(series(0)), told(series(100 * MB))
    assert Report([], slopes={"threads": flat, "state, MB": None}).passed
    assert not Report([], slopes={"threads": flat, "state, MB": grows}).passed
    assert not Report([], slopes={"threads": None}).passed
    lines = "\n".join(table({"threads": flat, "memory, MB": grows}, 3_000.0))
    assert "50.0 minutes" in lines
    assert [word for line in lines.splitlines() for word in line.split() if word in ("flat", "GROWS")] == [
        "GROWS",
        "flat",
    ]
