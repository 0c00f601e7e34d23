"""The view on a terminal, drawn from made-up state to text."""

import contextlib
import fcntl
import io
import logging
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from parquet_sink.errors import failure_named
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorWaiting,
    FileAccepted,
    FileFailed,
    RecordsDelivered,
    RecordsSetAside,
    TopicsMissing,
)
from parquet_sink.model.ranges import Accepted, PartitionProgress
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.worker.loop import live_view, totals
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.events import EventDispatcher
from parquet_sink.worker.loop.live_view import STARTING, LiveView
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker.loop.totals import FileTotals, PartitionView
from tests.messages import assert_line_says, assert_says
from tests.thorough import examples

NOW_S = 1_000_000.0


def receipt(first: int = 0, last: int = 4_999, *, partition: int = 0, **changes: object) -> Receipt:
    """An accepted file of the topic orders."""
    name = f"topic-orders_partition-{partition}_firstOffset-{first}_lastOffset-{last}_bytes-1200_rows-5000.parquet"
    count = last + 1 - first
    given = {"rows": count, "records": count, "size_bytes": 1_200_000, "reason": "interval", "accepted_at": NOW_S - 1}
    return Receipt("orders", "orders", partition, name, first, last, last + 1, **(given | changes))  # type: ignore[arg-type]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStore]:
    """A connector's state, empty."""
    opened = SqliteStore(tmp_path / "state.db")
    yield opened
    opened.close()


def connector(
    state: SqliteStore | None,
    status: Status = Status.RUNNING,
    failure: Failure | None = None,
    name: str = "orders",
    paused: bool = False,
) -> Connector:
    """What the view reads of a connector."""
    if state is not None:
        state.append_events([ConnectorRunning(name, 0.0)])
    settings = SimpleNamespace(name=name, of_files=True)
    made = SimpleNamespace(settings=settings, status=status, failure=failure, state=state, paused=paused, news=list)
    return cast(Connector, made)


class Terminal:
    """A console whose text can be read. height: lines. width: characters."""

    def __init__(self, height: int = 40, width: int = 120) -> None:
        self.written = io.StringIO()
        self.console = Console(
            file=self.written, force_terminal=True, color_system=None, width=width, height=height, highlight=False
        )

    @property
    def text(self) -> str:
        return self.written.getvalue()

    def last_drawing(self) -> str:
        return self.text.rpartition("\x1b[2K")[2]


def view(terminal: Terminal, *failed: Connector) -> EventDispatcher:
    """A view of this terminal, at a time that stands still, that was told of connectors that failed."""
    dispatcher = EventDispatcher([LiveView(terminal.console, clock=lambda: NOW_S)])
    for one in failed:
        assert one.failure is not None
        dispatcher.emit(ConnectorFailed(one.settings.name, NOW_S, one.failure))
    return dispatcher


def accept(state: SqliteStore, *receipts: Receipt) -> None:
    """The target accepted these files."""
    state.append_events([FileAccepted("orders", NOW_S, one.topic, one.partition, one) for one in receipts])


def test_a_line_tells_lag_age_rate_last_file_and_reason(state: SqliteStore) -> None:
    """Each topic-partition has its lag, the age of its oldest unflushed record, its last file, reason and rate."""
    state.record_progress(
        [
            PartitionProgress("orders", 0, 5_000, 6_200, int((NOW_S - 2.5) * 1000)),
            PartitionProgress("orders", 1, 0, 0, None),
        ]
    )
    accept(state, receipt())
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state)])
    lines = terminal.last_drawing().splitlines()
    first = next(line for line in lines if "orders 0" in line)
    assert first.split() == [
        "orders", "0", "1,200", "2.5", "s", "5,000", "interval", "0-4999"
    ]  # fmt: skip
    second = next(line for line in lines if "orders 1" in line)
    assert second.split() == ["orders", "1", "0", "-", "0", "-", "-"]
    shown.close([])


def test_the_heading_tells_status_and_sums(state: SqliteStore) -> None:
    """A connector's line has its name, its status, and the sum of its files with their reasons."""
    accept(state, receipt(), receipt(5_000, 9_999, reason="records"), receipt(10_000, 14_999))
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state)])
    sums = ("0 records/s", "3 files", "interval 2", "records 1", "15,000 rows", "3.6 MB")
    assert_line_says(terminal.last_drawing(), "orders  running", *sums)
    shown.close([])


def test_a_connector_that_was_paused_is_shown_so(state: SqliteStore) -> None:
    """As long as it is."""
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state, paused=True)])
    assert "orders  paused" in terminal.last_drawing()
    shown.poll([connector(state)])
    assert "orders  running" in terminal.last_drawing()
    shown.close([])


def test_receipts_count_once_however_often_the_view_looks(state: SqliteStore) -> None:
    """Each look takes in only what is new."""
    accept(state, receipt())
    terminal = Terminal()
    shown = view(terminal)
    for _ in range(3):
        shown.poll([connector(state)])
    accept(state, receipt(5_000, 5_009))
    shown.close([connector(state, Status.DONE)])
    assert "2 files (interval 2), 5,010 rows" in terminal.text.splitlines()[-1]


def test_records_that_are_set_aside_are_counted(state: SqliteStore) -> None:
    """In the heading and in the summary, also where no file was sent."""
    terminal = Terminal()
    events = view(terminal)
    aside = RecordsSetAside("orders", NOW_S, "orders", 0, 1_500, 5, 9, {"VALUE_CONVERTER": 1_500}, "no JSON")
    state.append_events([aside, replace(aside, first=10, last=20)])
    events.poll([connector(state)])
    events.close([connector(state)])
    assert "no file yet, 3,000 diverted" in terminal.text.replace("\n", " ")


def test_of_a_record_sink_records_are_counted(state: SqliteStore) -> None:
    """In the view and in the summary; it has no files."""
    terminal = Terminal()
    shown, one = view(terminal), connector(state)
    cast(Any, one.settings).of_files = False
    state.append_events([RecordsDelivered("orders", NOW_S, "orders", 0, 1_200, 0, 1_199, "file /out")])
    shown.poll([one])
    assert "1,200 records" in terminal.last_drawing()
    shown.close([one])
    assert "; 1,200 records" in terminal.text
    assert "file" not in terminal.text.rpartition("connector orders:")[2]


def test_a_failure_is_shown_first_and_in_the_summary(state: SqliteStore) -> None:
    """A failed connector stands above the others with its reason, and the summary repeats it."""
    failed = connector(
        None, Status.FAILED, failure_named("UploadRefused", "Target said 403. Check the key."), name="late"
    )
    terminal = Terminal()
    shown = view(terminal, failed)
    shown.poll([connector(state), failed])
    drawing = terminal.last_drawing()
    assert drawing.index("late  failed") < drawing.index("Target said 403. Check the key.") < drawing.index("orders")
    shown.close([failed])
    *_, summary, reason = terminal.text.splitlines()
    assert_says(summary, "connector late", "failed", "no file sent")
    assert reason == "  Target said 403. Check the key."


def test_markup_in_names_and_messages_is_text(state: SqliteStore) -> None:
    """Square brackets, as in 'Invalid [key]', are shown as they are."""
    failed = connector(None, Status.FAILED, failure_named("Defect", "Invalid [bold]. [/x] no"), name="[red]")
    terminal = Terminal()
    shown = view(terminal, failed)
    shown.poll([failed])
    shown.close([failed])
    assert "[red]  failed" in terminal.text
    assert "  Invalid [bold]. [/x] no\n" in terminal.last_drawing()


def test_the_summary_counts_lag_from_what_was_accepted_last(state: SqliteStore) -> None:
    """The watch of an ended query may be old; accepted offsets are not."""
    state.record_progress([PartitionProgress("orders", 0, 0, 5_000, 1)])
    accept(state, receipt())
    state.record_accepted([Accepted("orders", 0, 5_000, 0, 5_000, "interval")])
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state)])
    shown.close([connector(state, Status.DONE)])
    (summary,) = terminal.last_drawing().splitlines()
    assert_says(summary, "connector orders: done", "1 file", "interval 1", "5,000 rows", "1.2 MB", "lag 0")


def test_log_records_go_above_the_view_while_it_stands(state: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root logger's handler writes through the console, and to its own stream again afterwards."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger()
    monkeypatch.setattr(logger, "handlers", [handler])
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state)])
    logger.warning("Kafka is [away]: %s", 7)
    assert "Kafka is [away]: 7" in terminal.text
    assert terminal.text.index("Kafka is [away]: 7") < terminal.text.rindex("orders  running")
    shown.close([])
    logger.warning("afterwards")
    assert stream.getvalue() == "afterwards\n"
    assert handler.stream is stream


def test_closing_without_a_look_leaves_only_the_summary() -> None:
    """Spark may fail before there is anything to see."""
    terminal = Terminal()
    view(terminal).close([])
    assert terminal.text.strip() == STARTING


def test_more_topic_partitions_than_lines_are_summed_up(state: SqliteStore) -> None:
    """Those furthest behind are shown; the others share a line, so that the view fits the terminal."""
    state.record_progress([PartitionProgress("orders", number, 0, number * 10, None) for number in range(50)])
    terminal = Terminal(height=15)
    shown = view(terminal)
    shown.poll([connector(state)])
    drawing = terminal.last_drawing()
    assert "orders 49" in drawing
    assert "orders 0 " not in drawing
    assert "and 41 more" in drawing
    assert len(drawing.splitlines()) <= 15
    shown.close([])


def partition_view(lag: int, partition: int = 0) -> PartitionView:
    """A topic-partition of which only the lag matters."""
    return PartitionView("orders", partition, lag, None, None, 0.0)


@given(st.lists(st.integers(0, 1_000)), st.integers(1, 20))
def test_splitting_loses_no_topic_partition(lags: list[int], most: int) -> None:
    """Shown and rest are all of them, with a line left for the rest."""
    views = [partition_view(lag, number) for number, lag in enumerate(lags)]
    shown, rest = live_view.split(views, most)
    assert sorted(shown + rest, key=lambda one: one.partition) == views
    assert len(shown) + bool(rest) <= most
    if shown and rest:
        assert min(one.lag for one in shown) >= max(one.lag for one in rest)


def test_the_rate_is_over_the_last_ten_seconds_or_since_the_start() -> None:
    """Old files drop out; a young view divides by its own age."""
    totals_of = FileTotals(since_s=100.0)
    totals_of.add(receipt(0, 999, accepted_at=104.0))
    assert totals_of.rate(("orders", 0), 105.0) == pytest.approx(200.0)
    assert totals_of.rate(("orders", 0), 112.0) == pytest.approx(100.0)
    assert totals_of.rate(("orders", 0), 115.0) == 0.0
    assert totals_of.rate(("orders", 1), 115.0) == 0.0


def test_a_file_that_failed_does_not_count(state: SqliteStore) -> None:
    """Only accepted files are summed up."""
    refused = receipt(failure=failure_named("UploadRefused", "403"))
    state.append_events([FileFailed("orders", NOW_S, "orders", 0, refused)])
    terminal = Terminal()
    shown = view(terminal)
    shown.poll([connector(state)])
    assert "no file yet" in terminal.last_drawing()
    shown.close([])


def test_what_a_connector_waits_for_is_shown_until_it_goes_on(state: SqliteStore) -> None:
    """While no broker answers the cause stands below its name; when one does it is gone."""
    terminal = Terminal()
    shown = view(terminal)
    one = connector(state)
    shown.emit(ConnectorStarting("orders", NOW_S))
    state.append_events([ConnectorWaiting("orders", NOW_S, "No answer from host:1 yet.")])
    shown.poll([one])
    assert "No answer from host:1 yet." in terminal.last_drawing()
    state.append_events([ConnectorRunning("orders", NOW_S)])
    shown.poll([one])
    assert "No answer" not in terminal.last_drawing()
    assert "orders  running" in terminal.last_drawing()
    shown.close([])


def test_topics_that_are_missing_are_shown(state: SqliteStore) -> None:
    """Below its name, until they are there."""
    terminal = Terminal()
    shown = view(terminal)
    one = connector(state)
    shown.emit(ConnectorStarting("orders", NOW_S))
    told = [TopicsMissing("orders", NOW_S, ("items",)), ConnectorRunning("orders", NOW_S)]
    for events, line in [
        (told, "Not there: items."),
        ([TopicsMissing("orders", NOW_S, (), "x.*")], "No topic matches"),
    ]:
        state.append_events(events)
        shown.poll([one])
        assert line in terminal.last_drawing()
    state.append_events([TopicsMissing("orders", NOW_S + 1)])
    shown.poll([one])
    assert "No topic matches" not in terminal.last_drawing()
    shown.close([])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.04, "0.0 s"), (99.94, "99.9 s"), (100, "2 min"), (5_999, "100 min"), (7_300, "2 h")],
)
def test_ages_stay_short(seconds: float | None, text: str) -> None:
    """Seconds, then minutes, then hours."""
    assert totals.format_age(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1.0 kB"), (2_500_000, "2.5 MB"), (3e9, "3.0 GB")],
)
def test_sizes_have_a_unit_that_fits(size_bytes: int, text: str) -> None:
    """Steps of a thousand."""
    assert totals.format_size(int(size_bytes)) == text


def drawn(seen: list[live_view.ConnectorView], width: int, height: int) -> list[str]:
    """The lines of a drawing on a terminal of that size."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=height)
    with console.capture() as captured:
        console.print(live_view.render(seen, width, height))
    return captured.get().splitlines()


def seen(partitions: int, failure: str | None = None, name: str = "orders") -> live_view.ConnectorView:
    """A connector with so many topic-partitions, as the view sees it."""
    status = "running" if failure is None else "failed"
    return live_view.ConnectorView(
        name, status, "no file yet", failure, [partition_view(one, one) for one in range(partitions)]
    )


SIZES = st.one_of(st.integers(1, 12), st.integers(1, 200))


@settings(deadline=None, max_examples=examples(300))
@given(
    width=SIZES,
    height=st.one_of(st.integers(1, 12), st.integers(1, 60)),
    connectors=st.lists(
        st.builds(seen, st.one_of(st.integers(0, 6), st.integers(0, 300)), st.none() | st.text(max_size=300)),
        max_size=8,
    ),
    many=st.integers(0, 300),
)
def test_a_drawing_fits_any_terminal(
    width: int, height: int, connectors: list[live_view.ConnectorView], many: int
) -> None:
    """From 1x1 to 200x60, with no connector or hundreds: it is drawn, and from 8 lines on it fits."""
    one_line = [replace(one, failure=one.failure.replace("\n", "") if one.failure else None) for one in connectors]
    lines = drawn(one_line + [seen(number % 3, name=f"c{number}") for number in range(many)], width, height)
    assert height < 8 or width < 80 or any(one.failure for one in connectors) or len(lines) <= height


@pytest.mark.parametrize(("connectors", "height"), [(6, 24), (1, 6), (1, 4), (40, 24), (300, 10)])
def test_small_terminals_show_the_connectors_before_their_topic_partitions(connectors: int, height: int) -> None:
    """Where there is no room for tables the connectors are listed, and those that are left out are counted."""
    lines = drawn([seen(4, name=f"c{number}") for number in range(connectors)], 80, height)
    headings = sum("running" in line for line in lines)
    more = next((int(line.split()[1]) for line in lines if line.startswith("and ")), 0)
    assert headings >= 1
    assert headings + more == connectors
    assert len(lines) <= height


def test_failed_connectors_are_the_last_to_be_left_out() -> None:
    """On a small terminal the one that failed is there, with its message."""
    running = [seen(4, name=f"c{number}") for number in range(50)]
    lines = drawn([*running, seen(4, "the target said 403", "late")], 80, 12)
    assert any("late  failed" in line for line in lines)
    assert any("the target said 403" in line for line in lines)


RESIZED = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker.loop.live_view import STARTING, LiveView
from parquet_sink.model.ranges import PartitionProgress
from parquet_sink.state.sqlite import SqliteStore

state = SqliteStore(Path(sys.argv[1]))
state.record_progress([PartitionProgress("orders", number, 0, number * 10, None) for number in range(30)])
made = [
    SimpleNamespace(
        settings=SimpleNamespace(name=f"c{number}", of_files=True),
        status=Status.RUNNING, failure=None, state=state, paused=False,
    )
    for number in range(6)
]
view = LiveView()
for line in sys.stdin:
    view.refresh(made)
    os.write(1, b"looked\\n")
view.close(made)
"""


def test_a_window_may_change_its_size_while_it_is_drawn(tmp_path: Path) -> None:
    """On a real terminal, made smaller and larger between looks: each look is drawn, and the end has its summary."""
    ours, theirs = pty.openpty()
    words = [sys.executable, "-c", RESIZED, str(tmp_path / "state.db")]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, env={**environment, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        text: list[bytes] = []
        reading = threading.Thread(target=_read_all, args=(ours, text))
        reading.start()
        assert process.stdin is not None
        assert process.stdout is not None
        for rows, columns in [(40, 120), (24, 80), (6, 80), (1, 1), (2, 200), (60, 20), (3, 3), (24, 80)]:
            fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            process.stdin.write(b"look\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"looked\n", b"".join(text)[-3000:]
        process.stdin.close()
        status = process.wait(60)
        reading.join(60)
    os.close(ours)
    said = b"".join(text).decode()
    assert status == 0, said[-3000:]
    assert said.count("no file sent") == 6


def _read_all(descriptor: int, into: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while data := os.read(descriptor, 65_536):
            into.append(data)
