"""A sink under load while things are done to it, then a clean stop, a last start and the judgement."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from integration.oracle.judge import Stop
from integration.oracle.oracle import Findings
from integration.oracle.stream import Stream
from integration.s3.site import S3Site
from integration.sink_process import SinkProcess
from parquet_sink.addons.devkit.target.process import TargetProcess

LOOK_S: Final = 0.05
SAMPLE_S: Final = 0.4
STOP_S: Final = 120.0
DRAIN_S: Final = 240.0
ORPHANS_S: Final = 30.0
BROKER_S: Final = 90.0
PROGRESS_S: Final = 30.0


class Failed(Exception):
    """The run itself went wrong: too slow, too few faults, the sink did not stop in order."""


@dataclass
class Hit:
    """A fault that was done at `at` (monotonic seconds). kind: in words. ends: what was produced before it, by stream.

    ends_sink: whether the program cannot go on after it, and is started again.
    """

    number: int
    kind: str
    at: float
    ends: Sequence[Mapping[int, int]]
    ends_sink: bool = False
    recovered_s: float | None = None


@dataclass
class Course:
    """How a run went. ends: exit statuses of the sink before SIGTERM; orphans_s: how long children outlived a driver.

    of_streams: what the oracle of each stream found.
    """

    of_streams: Sequence[Findings]
    hits: list[Hit] = field(default_factory=list)
    records: int = 0
    files: int = 0
    ends: list[int] = field(default_factory=list)
    orphans_s: float = 0.0
    troubles: list[str] = field(default_factory=list)

    @property
    def findings(self) -> Findings:
        """Of all streams together."""
        return Findings.together(self.of_streams)

    @property
    def passed(self) -> bool:
        return self.findings.clean and not self.troubles

    def slowest(self) -> str:
        """The slowest recovery of each kind of fault, in words."""
        longest: dict[str, float] = {}
        for hit in self.hits:
            longest[hit.kind] = max(longest.get(hit.kind, 0.0), hit.recovered_s or 0.0)
        return "slowest recovery: " + ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in longest.items())

    def judged(self) -> list[str]:
        """What the oracle found, in words."""
        found = self.findings
        repeats = (
            f"{found.repeated} records came more than once; {found.repeated_files} files came again under their name"
        )
        wrongs = (
            f"again in another file {found.renamed}, ranges cut again elsewhere {found.recut}, "
            f"names that came with other content {found.altered_files}, out of order {found.disordered}, "
            f"committed too early or backwards {found.early_commits}, "
            f"sent again after SIGTERM {found.resent}, wrong rows in the table {found.stale_rows}"
        )
        letters = f"{found.dead_letters} records without a row, all dead letters; {found.dead_letters_again} came again"
        return [repeats, letters, wrongs, *found.examples]


class Trial:
    """Owns the sink and the load of its streams; looks after both. `close` must follow in any case.

    timeout_s: bounds the whole run until the stop. most_ends: times that the sink may end unasked.
    """

    def __init__(
        self,
        streams: Sequence[Stream],
        sink: SinkProcess,
        target: TargetProcess | S3Site,
        tmp: Path,
        course: Course,
        *,
        timeout_s: float,
        most_ends: int,
    ) -> None:
        self.streams, self.sink, self.target, self.course = streams, sink, target, course
        self._tmp, self._timeout_s, self._most_ends = tmp, timeout_s, most_ends
        self.began = time.monotonic()
        self._sampled = self._ended_at = self._told = 0.0
        self._dying: dict[int, float] = {}
        self.watchers: list[Callable[[], None]] = []

    def close(self) -> None:
        """Ends every process of the sink, and the load."""
        self.sink.end_all()
        for stream in self.streams:
            stream.close()

    @property
    def records(self) -> int:
        """Acknowledged records of all streams."""
        return sum(stream.oracle.records for stream in self.streams)

    @property
    def committed(self) -> int:
        """Records below the committed offsets of all streams, at the last look."""
        return sum(sum(stream.committed.values()) for stream in self.streams)

    def start(self) -> None:
        """Load and sink; returns when something of each stream is committed."""
        for stream in self.streams:
            stream.start()
        self.start_sink()
        self.until(lambda: all(map(_delivers, self.streams)), "no offset was committed after the first start")
        self.say("the sink delivers")

    def hit(self, kind: str, what: str, *, ends_sink: bool = False) -> Hit:
        """Notes a fault that was just done."""
        ends = [stream.oracle.ends() for stream in self.streams]
        hit = Hit(len(self.course.hits) + 1, kind, time.monotonic(), ends, ends_sink)
        self.course.hits.append(hit)
        self.say(f"{what}; produced {self.records}, committed {self.committed}")
        return hit

    @property
    def open_hits(self) -> list[Hit]:
        """Faults that were not recovered from yet."""
        return [hit for hit in self.course.hits if hit.recovered_s is None]

    def wait(self, seconds: float) -> None:
        """Looks after everything for so long."""
        until = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= until, "")

    def until(self, done: Callable[[], bool], trouble: str, within_s: float | None = None) -> None:
        """Looks after everything until `done()`. Raises Failed when the time is over."""
        began = time.monotonic()
        while not done():
            self._look()
            now = time.monotonic()
            if now - self.began > self._timeout_s or (within_s is not None and now - began > within_s):
                raise Failed(f"{trouble or 'the run takes too long'} (after {now - self.began:.0f} s)")
            time.sleep(LOOK_S)

    def _look(self) -> None:
        """One look: the load, the sink's end, orphans, committed offsets, recoveries."""
        for stream in self.streams:
            if stream.load.failure:
                raise Failed(f"the load failed: {stream.load.failure}")
        if (status := self.sink.ended()) is not None:
            self._ended(status)
        self._watch_orphans()
        if time.monotonic() - self._sampled >= SAMPLE_S:
            self._sampled = time.monotonic()
            self.ask()
            self._recoveries()
            self._check_failures()
        for watch in self.watchers:
            watch()

    def _check_failures(self) -> None:
        """No connector may fail for good while Java lives."""
        if not any(hit.ends_sink for hit in self.open_hits) and (failed := self.sink.failed()):
            raise Failed(failed[0])

    def ask(self) -> None:
        """Asks for committed offsets, again and again while the broker does not tell. Raises Failed in the end."""
        deadline = time.monotonic() + BROKER_S
        while True:
            try:
                for stream in self.streams:
                    stream.look()
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise Failed(f"the broker does not answer: {error}") from error
                time.sleep(0.5)
            else:
                return

    def _recoveries(self) -> None:
        """A fault is recovered from when everything produced before it is committed."""
        for hit in self.open_hits:
            if all(stream.reached(ends) for stream, ends in zip(self.streams, hit.ends, strict=True)):
                hit.recovered_s = time.monotonic() - hit.at
                self.say(f"{hit.number} ({hit.kind}) recovered from in {hit.recovered_s:.1f} s")

    def _ended(self, status: int) -> None:
        """The sink ended without being asked to: started again at once, as a service manager does."""
        self.course.ends.append(status)
        self._ended_at = time.monotonic()
        self.say(f"the sink ended with status {status}; starting it again")
        if not any(hit.ends_sink for hit in self.open_hits):
            self.say(f"it was not killed; its last words:\n{self.sink.last_words()}")
        if len(self.course.ends) > self._most_ends:
            raise Failed("the sink ends again and again")
        self.start_sink()

    def start_sink(self) -> None:
        """Starts it; children of an earlier start that still live are watched."""
        for process in self.sink.left_over():
            self._dying.setdefault(process.pid, self._ended_at)
        self.sink.start()

    def _watch_orphans(self) -> None:
        """Children of a killed driver must end by themselves."""
        if not self._dying:
            return
        alive = {process.pid for process in self.sink.left_over()}
        for pid, since in list(self._dying.items()):
            lived = time.monotonic() - since
            self.course.orphans_s = max(self.course.orphans_s, lived)
            if pid not in alive:
                del self._dying[pid]
            elif lived > ORPHANS_S:
                raise Failed(f"process {pid} outlived its driver by {lived:.0f} s")

    def stop_cleanly(self) -> list[Stop]:
        """SIGTERM under load; how things stand then."""
        began = time.monotonic()
        status = self.sink.terminate(STOP_S)
        self.say(f"SIGTERM: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.course.troubles.append(f"SIGTERM ended the sink with status {status}:\n{self.sink.last_words()}")
        for stream in self.streams:
            stream.load.stop()
        with closing(self.target.client) as client:
            return [stream.stopped(client) for stream in self.streams]

    def finish(self) -> None:
        """One more start delivers the rest and ends by itself."""
        began = time.monotonic()
        status = self.sink.run_to_end(DRAIN_S, "--until-caught-up")
        self.say(f"--until-caught-up: exit status {status} after {time.monotonic() - began:.1f} s")
        if status != 0:
            self.course.troubles.append(f"--until-caught-up ended with status {status}:\n{self.sink.last_words()}")
        self.ask()
        for stream in self.streams:
            if stream.committed != (ends := stream.oracle.ends()):
                self.course.troubles.append(f"committed at the end: {stream.committed}, produced: {ends}")
        left = [path for path in self._tmp.rglob("*.part") if path.is_file()]
        if left:
            self.course.troubles.append(f"{len(left)} local files were left, such as {left[0]}")
        self._last_processes()

    def _last_processes(self) -> None:
        """No process of any start may be left."""
        deadline = time.monotonic() + ORPHANS_S
        while (alive := self.sink.left_over()) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if alive:
            self.course.troubles.append(f"processes were left: {alive}")

    def judge(self, stops: Sequence[Stop]) -> list[int]:
        """The oracles' word on everything; the sizes of all accepted files in bytes."""
        self.say("judging every file that was accepted")
        self._told = time.monotonic()
        with closing(self.target.client) as client:
            pairs = zip(self.streams, stops, strict=True)
            found = [stream.judge(client, stop, self._progress) for stream, stop in pairs]
        sizes = [size for one in found for size in one]
        self.course.files, self.course.records = len(sizes), self.records
        return sizes

    def _progress(self, done: int, files: int) -> None:
        now = time.monotonic()
        if now - self._told >= PROGRESS_S:
            self._told = now
            self.say(f"judged {done} of {files} files")

    def nothing_judged(self, trouble: str) -> None:
        """The run broke off: everything counts as missing."""
        self.course.troubles.append(f"{trouble}\n{self.sink.last_words()}")
        self.course.records = self.records
        for stream in self.streams:
            stream.oracle.findings.missing = stream.oracle.records

    def say(self, text: str) -> None:
        """A line with the time since the beginning."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)


def _delivers(stream: Stream) -> bool:
    return sum(stream.committed.values()) > 0
