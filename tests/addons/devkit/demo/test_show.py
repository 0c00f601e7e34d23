"""What the demo prints."""

import argparse
import io
from dataclasses import replace

import pytest
from rich.console import Console

from parquet_sink.addons.devkit.demo import command
from parquet_sink.addons.devkit.demo.proof import Check
from parquet_sink.addons.devkit.demo.show import Show, Snapshot
from tests.factories import Clock
from tests.messages import assert_says


def shown(*, terminal: bool = False) -> tuple[Show, io.StringIO, Clock]:
    """A show that writes to text."""
    text, clock = io.StringIO(), Clock()
    console = Console(file=text, force_terminal=terminal, color_system=None, width=80, highlight=False)
    return Show(console, clock), text, clock


RUNNING = Snapshot(produced=900, delivered=500, total=1_000, files=2, rows=490, reasons="records 1, interval 1")


def test_without_a_terminal_progress_is_a_line_every_two_seconds() -> None:
    """Looks in between write nothing."""
    show, text, clock = shown()
    with show.progress(1_000):
        for more in range(9):
            show.snapshot(replace(RUNNING, produced=900 + more))
            clock.seconds += 0.5
    lines = text.getvalue().splitlines()
    assert [line[:10].strip() for line in lines] == ["0.0 s", "2.0 s", "4.0 s"]
    assert_says(lines[0], "produced 900 of 1,000", "delivered 500", "lag 400", "490 rows in 2 files")
    assert_says(lines[0], "(records 1, interval 1)")


def test_a_line_that_says_nothing_new_comes_every_ten_seconds() -> None:
    """While the sink starts, the log stays short."""
    show, text, clock = shown()
    for _ in range(50):
        show.snapshot(RUNNING)
        clock.seconds += 0.5
    lines = text.getvalue().splitlines()
    assert [line[:10].strip() for line in lines] == ["0.0 s", "10.0 s", "20.0 s"]


def test_while_nothing_came_the_sink_is_starting() -> None:
    """Then there is nothing to count."""
    show, text, _ = shown()
    show.snapshot(Snapshot(800, 0, 1_000, 0, 0, ""))
    assert_says(text.getvalue(), "produced 800 of 1,000", "delivered 0", "lag 800", "is starting")


def test_on_a_terminal_progress_is_two_bars() -> None:
    """Produced and delivered, with the same figures."""
    show, text, _ = shown(terminal=True)
    with show.progress(1_000):
        show.snapshot(RUNNING)
    assert "900 of 1,000 records" in text.getvalue()
    assert "500, lag 400" in text.getvalue()


def test_a_check_is_ok_or_failed_with_its_details() -> None:
    """The verdict stands first, the details below; square brackets are text."""
    show, text, _ = shown()
    checks = [Check("lag is 0", True, "lag 0", ("topic-partition 0: [x]",)), Check("rows", False, "1 of 2")]
    for check in checks:
        show.check(check)
    show.verdict(checks)
    *told, verdict = text.getvalue().splitlines()
    assert told == ["  OK      lag is 0: lag 0", "            topic-partition 0: [x]", "  FAILED  rows: 1 of 2"]
    assert_says(verdict, "FAILED", "1 of 2 checks")


def test_when_all_checks_hold_the_last_line_says_so() -> None:
    """A stranger needs one line."""
    show, text, _ = shown()
    show.verdict([Check("a", True, "")])
    (verdict,) = text.getvalue().splitlines()
    assert_says(verdict, "PROVEN", "all 1 checks")


@pytest.mark.parametrize(
    "words", [["--records", "99"], ["--records", "-1"], ["--duration", "x"], ["--duration", "nan"]]
)
def test_sizes_out_of_bounds_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the bounds in the message."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert "must be a number" in capsys.readouterr().err


def test_the_defaults_are_a_minutes_work() -> None:
    """200,000 records, twelve seconds of orders at the end, everything ended afterwards."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args([])
    assert (args.records, args.duration, args.seed, args.keep) == (200_000, 12.0, 1, False)
