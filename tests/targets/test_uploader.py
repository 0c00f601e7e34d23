"""Order, parallelism and failure of uploads; receipts; targets by their settings."""

import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.errors import ConnectorError, UploadExhausted, UploadPostponed, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name, file_name
from parquet_sink.files.rotation import Reason
from parquet_sink.model.ranges import Again, Attempt, AttemptCount, Tries
from parquet_sink.model.receipts import Receipt
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.uploader import Deliverer, OrderedUploader, Upload, target_for
from tests.factories import Clock
from tests.messages import assert_says, saying

SETTINGS = RetrySettings(max_retries=3, retry_interval_ms=1)
EARLIER = Attempt(1_000, 0.5, "retriable", 503, "busy")


def finished(folder: Path, number: int = 0, partition: int = 0) -> FinishedFile:
    """The `number`-th file of ten records of a topic-partition, on disk."""
    path = folder / attempt_name("ab" * 16, number + 1000 * partition)
    path.write_bytes(b"content")
    first = number * 10
    name = file_name("orders", partition, first, first + 9, 7, 10)
    return FinishedFile(
        str(path), name, "orders", partition, first, first + 9, 10, 10, 7, Reason.RECORDS, 1.0, 0.25, 1234, digest="d1"
    )


class Target:
    """A fake client: outcomes in turn, accepted once they are used up."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.sent: list[str] = []

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        self.sent.append(file.name)
        return self.outcomes.pop(0) if self.outcomes else Outcome(Verdict.ACCEPTED, "", "", 200, None, "id1")


def deliverer(target: Target, **more: object) -> Deliverer:
    """With a clock that stands still."""
    return Deliverer("sink", target, SETTINGS, now=lambda: 99.0, monotonic=lambda: 5.0, **more)  # type: ignore[arg-type]


def test_an_accepted_file_has_a_receipt_and_is_gone(tmp_path: Path) -> None:
    """The receipt says all about the file, and the file is removed."""
    file = finished(tmp_path, 1)
    receipt = deliverer(Target(Outcome(Verdict.UNKNOWN, "x" * 999, "", 503))).deliver(file)
    assert receipt == Receipt(
        connector="sink",
        topic="orders",
        partition=0,
        file_name=file.name,
        first_offset=10,
        last_offset=19,
        next_offset=20,
        rows=10,
        records=10,
        size_bytes=7,
        reason="records",
        attempts=2,
        seconds={"write": 0.25, "upload": 0.0},
        status=200,
        answer_id="id1",
        accepted_at=99.0,
        oldest_ms=1234,
        digest="d1",
        tried=(Attempt(99_000, 0.0, "unknown", 503, "x" * 300), Attempt(99_000, 0.0, "accepted", 200)),
        answers=(AttemptCount("unknown", 503, 1), AttemptCount("accepted", 200, 1)),
    )
    assert receipt.accepted
    assert receipt.bytes_per_row == 0.7
    assert not Path(file.path).exists()


def test_answers_are_counted_of_this_task_alone(tmp_path: Path) -> None:
    """Each attempt is counted once, however many there are, and none that an earlier task made."""
    policy = RetrySettings(max_retries=99, retry_interval_ms=0)
    waits = Deliverer("sink", Target(*[Outcome(Verdict.RETRIABLE, "busy", "", 429)] * 40), policy, sleep=lambda s: None)
    earlier = Tries(7, 1.0, log=(Attempt(1, 0.5, "unknown", 503),))
    receipt = waits.deliver(finished(tmp_path), earlier)
    assert receipt.attempts == 48
    assert receipt.answers == (AttemptCount("retriable", 429, 40), AttemptCount("accepted", 200, 1))
    file = finished(tmp_path)
    refuses = deliverer(Target(*[Outcome(Verdict.UNKNOWN, "x", "", None)] * 9))
    with pytest.raises(UploadExhausted) as caught:
        refuses.deliver(file)
    assert refuses.failed(file, caught.value).answers == (AttemptCount("unknown", None, 3),)


def test_an_accepted_file_may_be_kept(tmp_path: Path) -> None:
    """With keep_files it stays under its last offset."""
    deliverer(Target(), keep_files=True).deliver(finished(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["9.parquet"]


def test_a_refusal_says_everything(tmp_path: Path) -> None:
    """The error names topic-partition, offsets, file, cause, attempts, cure, and what is not committed."""
    file = finished(tmp_path, 1, partition=4)
    with pytest.raises(UploadRefused) as caught:
        deliverer(Target(Outcome(Verdict.REFUSED, "the cause", "The cure", 403))).deliver(file)
    assert caught.value.status == 403
    assert_says(caught.value, "Topic orders", "topic-partition 4", "offsets 10 to 19", file.name, "was refused")
    assert_says(caught.value, "the cause", "after 1 attempt", "The cure.", "not committed", "sent again")
    assert Path(file.path).exists()
    with pytest.raises(UploadRefused, match=saying(file.name, "for table T", "was refused")):
        deliverer(Target(Outcome(Verdict.REFUSED, "the cause", "The cure", 403))).deliver(replace(file, table="T"))


def test_lines_name_the_table_where_there_are_several(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of a file that waits for its next attempt, and of one that is refused for what is in it."""
    file = replace(finished(tmp_path), table="T")
    refused = Outcome(Verdict.REFUSED, "the cause", "The cure", 422, of_file=True)
    with pytest.raises(UploadRefused) as caught:
        deliverer(Target(Outcome(Verdict.RETRIABLE, "busy"), refused)).deliver(file)
    assert_says(caught.value.of_file, "the target refused", file.name, "for table T", "the cause")
    assert_says(caplog.text, file.name, "for table T", "busy (retriable)", "next attempt in")


@pytest.mark.parametrize("verdict", [Verdict.RETRIABLE, Verdict.UNKNOWN])
def test_an_exhausted_budget_keeps_the_file(tmp_path: Path, verdict: Verdict) -> None:
    """When attempts run out the same file was sent each time and is still there."""
    target = Target(*[Outcome(verdict, "x", "y", 503)] * 9)
    file = finished(tmp_path)
    with pytest.raises(UploadExhausted, match="after 3 attempts"):
        deliverer(target).deliver(file)
    assert target.sent == [file.name] * 3
    assert Path(file.path).exists()


def test_an_attempt_that_was_succeeded_says_so(tmp_path: Path) -> None:
    """Once another attempt at the range has begun, the one under way is the last, and the error says why."""
    with pytest.raises(UploadExhausted, match=saying("after 1 attempt", "because another attempt")):
        deliverer(Target(Outcome(Verdict.UNKNOWN, "x"))).deliver(finished(tmp_path), superseded=lambda: True)


def test_an_attempt_far_away_is_postponed(tmp_path: Path) -> None:
    """A wait longer than a task may hold its slot is told with attempts, time and wait, and survives pickling."""
    settings = RetrySettings(max_retries=9, retry_interval_ms=8_000)
    slow = Deliverer(
        "sink",
        Target(Outcome(Verdict.RETRIABLE, "x")),
        settings,
        monotonic=lambda: 5.0,
        now=lambda: 99.0,
        jitter=lambda: 1.0,
    )
    with pytest.raises(UploadPostponed) as caught:
        slow.deliver(finished(tmp_path), Tries(1, 10.0, log=(EARLIER,)))
    log = (EARLIER, Attempt(99_000, 0.0, "retriable", None, "x"))
    assert caught.value.again == Again(Tries(2, 10.0, log=log), 16.0)
    back = pickle.loads(pickle.dumps(caught.value))
    assert (back.again, str(back)) == (caught.value.again, str(caught.value))


def test_long_waits_may_be_waited_in_the_task(tmp_path: Path) -> None:
    """Where nobody else plans the next attempt; attempts, time and answers count on."""
    clock, busy = Clock(), Outcome(Verdict.RETRIABLE, "busy", "", 503)
    patient = Deliverer(
        "sink",
        Target(busy, busy),
        RetrySettings(retry_interval_ms=60_000),
        waits_here=True,
        monotonic=clock,
        now=clock,
        jitter=lambda: 1.0,
        sleep=clock.sleep,
    )
    receipt = patient.deliver(finished(tmp_path))
    assert clock.waits == [60.0, 120.0]
    assert (receipt.attempts, receipt.seconds["upload"]) == (3, 180.0)
    assert receipt.answers == (AttemptCount("retriable", 503, 2), AttemptCount("accepted", 200, 1))


@pytest.mark.parametrize("error", [UploadRefused("no", 403), ConnectorError("other")])
def test_receipts_cross_processes(tmp_path: Path, error: ConnectorError) -> None:
    """Receipts of both kinds survive JSON and pickle; a failed one starts over at its first offset."""
    file = finished(tmp_path, 2)
    failed = deliverer(Target()).failed(file, error)
    assert (failed.accepted, failed.next_offset, failed.status) == (False, 20, getattr(error, "status", None))
    for receipt in (failed, deliverer(Target()).deliver(file)):
        assert Receipt.from_json(receipt.to_json()) == receipt
        assert pickle.loads(pickle.dumps(receipt)) == receipt


@pytest.mark.parametrize("verdict", [Verdict.REFUSED, Verdict.RETRIABLE])
def test_a_failed_receipt_tells_its_attempts(tmp_path: Path, verdict: Verdict) -> None:
    """What came of each attempt, earlier ones included, also when none was accepted; and what file it was."""
    sender, file = deliverer(Target(*[Outcome(verdict, "no", "", 422)] * 9)), finished(tmp_path)
    with pytest.raises(ConnectorError) as caught:
        sender.deliver(file, Tries(1, 10.0, log=(EARLIER,)))
    receipt = sender.failed(file, caught.value)
    later = Attempt(99_000, 0.0, str(verdict), 422, "no")
    assert receipt.tried == (EARLIER, *[later] * (1 if verdict is Verdict.REFUSED else 2))
    assert (receipt.attempts, receipt.seconds, receipt.digest) == (
        len(receipt.tried),
        {"write": 0.25, "upload": 10.0},
        "d1",
    )
    assert Receipt.from_json(receipt.to_json()) == receipt


class Gate:
    """A deliverer whose files wait until they are let through."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.open: dict[str, threading.Event] = {}
        self.begun: dict[str, threading.Event] = {}
        self.error: dict[str, Exception] = {}
        self.receipts = deliverer(Target())

    def add(self, file: FinishedFile, *, closed: bool = False, error: Exception | None = None) -> FinishedFile:
        self.open[file.name], self.begun[file.name] = threading.Event(), threading.Event()
        if not closed:
            self.open[file.name].set()
        if error is not None:
            self.error[file.name] = error
        return file

    def deliver(self, file: FinishedFile, earlier: Tries, superseded: Callable[[], bool]) -> Receipt:
        self.events.append(f"begin {file.partition}/{file.first_offset}")
        self.begun[file.name].set()
        assert self.open[file.name].wait(10)
        if file.name in self.error:
            raise self.error[file.name]
        self.events.append(f"end {file.partition}/{file.first_offset}")
        return self.receipts.deliver(file)

    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt:
        return self.receipts.failed(file, error)


def in_thread(action: Callable[[], object]) -> tuple[threading.Thread, threading.Event]:
    """Runs an action that may block; the event tells when it is done."""
    done = threading.Event()
    thread = threading.Thread(target=lambda: (action(), done.set()))
    thread.start()
    return thread, done


def test_files_of_a_topic_partition_go_in_order(tmp_path: Path) -> None:
    """The next file is begun only after the one before was accepted."""
    gate = Gate()
    uploader = OrderedUploader(gate)
    for n in range(4):
        assert uploader.submit(Upload(gate.add(finished(tmp_path, n))))
    assert [r.first_offset for r in uploader.close()] == [0, 10, 20, 30]
    assert gate.events == [f"{what} 0/{n}" for n in (0, 10, 20, 30) for what in ("begin", "end")]


def test_topic_partitions_go_side_by_side(tmp_path: Path) -> None:
    """A file that hangs holds up no other topic-partition."""
    gate = Gate()
    uploader = OrderedUploader(gate)
    slow, quick = gate.add(finished(tmp_path, 0), closed=True), gate.add(finished(tmp_path, 0, partition=1))
    uploader.submit(Upload(slow))
    uploader.submit(Upload(quick))
    assert gate.begun[quick.name].wait(10)
    gate.open[slow.name].set()
    assert {r.partition for r in uploader.close()} == {0, 1}


def test_more_topic_partitions_than_threads(tmp_path: Path) -> None:
    """With few threads topic-partitions take turns, and all end."""
    gate = Gate()
    uploader = OrderedUploader(gate, most_parallel=2)
    for n in range(3):
        for partition in range(5):
            uploader.submit(Upload(gate.add(finished(tmp_path, n, partition))))
    assert len(uploader.close()) == 15


def test_submit_blocks_behind_a_waiting_file(tmp_path: Path) -> None:
    """One file under way and one waiting are the most; the third blocks until there is room."""
    gate = Gate()
    uploader = OrderedUploader(gate)
    first, second, third = (gate.add(finished(tmp_path, n), closed=n == 0) for n in range(3))
    uploader.submit(Upload(first))
    assert gate.begun[first.name].wait(10)
    uploader.submit(Upload(second))
    thread, done = in_thread(lambda: uploader.submit(Upload(third)))
    assert not done.wait(0.05)
    gate.open[first.name].set()
    thread.join(10)
    assert done.is_set()
    assert len(uploader.close()) == 3


def test_nothing_follows_a_failure(tmp_path: Path) -> None:
    """After a failure nothing more of that topic-partition is sent; others go on; unsent files are removed."""
    gate = Gate()
    uploader = OrderedUploader(gate)
    bad = gate.add(finished(tmp_path, 0), closed=True, error=UploadRefused("no", 403))
    waiting, later = gate.add(finished(tmp_path, 1)), gate.add(finished(tmp_path, 2))
    other = gate.add(finished(tmp_path, 0, partition=1))
    uploader.submit(Upload(bad))
    assert gate.begun[bad.name].wait(10)
    uploader.submit(Upload(waiting))
    answers: list[bool] = []
    thread, _ = in_thread(lambda: answers.append(uploader.submit(Upload(later))))
    gate.open[bad.name].set()
    thread.join(10)
    assert answers == [False]
    assert uploader.submit(Upload(other))
    receipts = {r.partition: r for r in uploader.close()}
    assert not receipts[0].accepted
    assert receipts[0].next_offset == 0
    assert receipts[1].accepted
    assert len(receipts) == 2
    assert [p for p in (waiting.path, later.path, other.path) if Path(p).exists()] == []
    assert Path(bad.path).exists()


@pytest.mark.parametrize("where", ["deliver", "on_receipt"])
def test_a_defect_is_raised_at_close(tmp_path: Path, where: str) -> None:
    """An unexpected exception is neither swallowed nor waited for without end, and stops its topic-partition."""
    gate = Gate()

    def on_receipt(receipt: Receipt) -> None:
        if where == "on_receipt":
            raise KeyError("defect")

    uploader = OrderedUploader(gate, on_receipt=on_receipt)
    error = KeyError("defect") if where == "deliver" else None
    uploader.submit(Upload(gate.add(finished(tmp_path, 0), error=error)))
    with pytest.raises(KeyError, match="defect"):
        uploader.close()


def test_receipts_are_told_as_they_come(tmp_path: Path) -> None:
    """The caller hears of each receipt before the end."""
    heard: list[int] = []
    gate = Gate()
    uploader = OrderedUploader(gate, on_receipt=lambda receipt: heard.append(receipt.first_offset))
    for n in range(3):
        uploader.submit(Upload(gate.add(finished(tmp_path, n))))
    uploader.close()
    assert heard == [0, 10, 20]


def test_a_process_has_one_target_for_equal_settings() -> None:
    """Equal settings, built anew for each micro-batch, share connections; others do not."""
    one, equal, other = (PushSettings("https://x/i", Secret("AppKey k"), t) for t in ("t", "t", "u"))
    assert target_for(one) is target_for(equal)
    assert target_for(one) is not target_for(other)


@dataclass(frozen=True)
class OtherSettings:
    """Of a target that a connector class of another package brings."""

    target_table: str

    def open(self) -> "OtherTarget":
        return OtherTarget(self.target_table)


class OtherTarget:
    """Takes everything, and keeps nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        return Outcome(Verdict.ACCEPTED, "taken")

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "there")

    def close(self) -> None:
        pass


def test_other_settings_open_their_own_target() -> None:
    """Settings of a class that nobody here knows say what they stand for; equal ones share a target as others do."""
    target = target_for(OtherSettings("t"))
    assert isinstance(target, OtherTarget)
    assert target.name == "t"
    assert target_for(OtherSettings("t")) is target
    assert target_for(OtherSettings("u")) is not target


@pytest.mark.parametrize("before", [0, 1], ids=["at once", "after an attempt"])
def test_nothing_is_sent_once_it_is_not_allowed(tmp_path: Path, before: int, caplog: pytest.LogCaptureFixture) -> None:
    """What the last attempt made of the file is kept; the next attempt is the driver's to plan, and says so."""
    target, allowed = Target(Outcome(Verdict.UNKNOWN, "no answer", "", None)), iter([True] * before + [False])
    file = finished(tmp_path)
    with pytest.raises(UploadPostponed, match=saying("not taken", "lease is over", f"after {before + 1} attempt")):
        deliverer(target, allowed=lambda: next(allowed), sleep=lambda s: None).deliver(file, Tries(1, 1.0))
    assert len(target.sent) == before
    assert "lease is over" in caplog.text


def test_a_file_that_was_not_allowed_comes_again_with_its_tries(tmp_path: Path) -> None:
    """An attempt that was not made does not count; one whose outcome nobody knows is not forgotten."""
    target, allowed = Target(Outcome(Verdict.UNKNOWN, "no answer", "", None)), iter([True, False])
    one = deliverer(target, allowed=lambda: next(allowed), sleep=lambda s: None)
    uploader = OrderedUploader(one)
    file = finished(tmp_path)
    assert uploader.submit(Upload(file, Tries(1, 1.0)))
    (receipt,) = uploader.close()
    assert receipt.failure is not None
    assert receipt.failure.again is not None
    assert (receipt.failure.again.wait_s, receipt.failure.again.tries.attempts) == (1.0, 2)
    assert receipt.failure.again.tries.may_be_there
    assert not Path(file.path).exists()
