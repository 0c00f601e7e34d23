"""The thread that starts queries, and tidies up behind them."""

import threading
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from parquet_sink.spark.query import SPREAD, Launcher, period_ms, start


def test_acts_are_done_in_order() -> None:
    """One after the other; what one raises is its own."""
    done: list[int] = []
    launch = Launcher()
    results = [launch(lambda number=number: done.append(number)) for number in range(10)]  # type: ignore[misc]
    failed = launch(lambda: 1 // 0)
    assert launch(lambda: "last").result() == "last"
    assert done == list(range(10))
    assert all(result.done() for result in results)
    with pytest.raises(ZeroDivisionError):
        failed.result()


def test_it_tidies_up_until_nothing_is_left() -> None:
    """After something was done, in the same thread, and again while more is to come; then not before the next act."""
    answers = chain([True, True], repeat(False))
    threads: list[threading.Thread] = []
    tidied = threading.Semaphore(0)

    def tidy() -> bool:
        threads.append(threading.current_thread())
        tidied.release()
        return next(answers)

    launch = Launcher(tidy, tidy_s=0.001)
    thread = launch(threading.current_thread).result()
    for _ in range(3):
        assert tidied.acquire(timeout=30)
    assert launch(lambda: len(threads)).result() == 3
    assert tidied.acquire(timeout=30)
    assert threads == [thread] * 4


def test_it_tidies_up_between_acts_that_never_end() -> None:
    """Connectors that start again and again, without a pause, are when it is needed most."""
    tidied = threading.Event()

    def tidy() -> bool:
        tidied.set()
        return False

    launch = Launcher(tidy, tidy_s=0.001)
    while not tidied.is_set():
        launch(lambda: None).result()


def test_a_checkpoint_is_new_and_has_its_folders(tmp_path: Path) -> None:
    """Nothing of an earlier query is in it, and Java finds what it would make by a program for each folder."""
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").touch()
    start(MagicMock(), "one", tmp_path, ("from", "to"), 500)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == [
        *("checkpoint", "checkpoint/commits", "checkpoint/offsets")
    ]


@pytest.mark.parametrize("every_ms", [250, 1_000])
def test_connectors_look_at_moments_of_their_own(every_ms: int) -> None:
    """Periods of a hundred connectors differ, by a tenth at most; that of one is always the same."""
    periods = [period_ms(f"orders-{number}", every_ms) for number in range(100)]
    assert periods == [period_ms(f"orders-{number}", every_ms) for number in range(100)]
    assert len(set(periods)) > SPREAD * every_ms / 2
    assert every_ms * (1 - SPREAD) <= min(periods) <= max(periods) <= every_ms
