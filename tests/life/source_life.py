"""What a source promises, held against all that may happen to it and its files, one thing after the other.

After each step: no line in Kafka that nobody wrote, none before one that stands before it in its file, none a second
time without a cause (a crash, a failure, lost memory), and as many counted as the brokers acknowledged. At the end of a
life each line is in Kafka; but one that no file has any more, or that stood in a file which came and went while nobody
looked, may be missing if a warning names the file.
"""

import logging
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from parquet_sink.addons.sources.offsets.connect_form import text_of
from tests.factories import Clock
from tests.life.source_connector import Connector, Crash, Fuse
from tests.life.source_files import Files

HAPPENINGS = st.sampled_from(
    ["write", "write", "write", "rotate", "rotate", "copy", "truncate", "rewrite", "save", "replace", "remove", "old"]
)
MEMORY = Path("/dev/shm")
"""For the connector's own files, where no disk is waited for. Followed files are on a disk: it gives inodes again."""
SOME = st.integers(0, 4)


class Warnings(logging.Handler):
    """What an operator reads."""

    def __init__(self, kept: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(record.getMessage())


class SourceLife(RuleBasedStateMachine):
    """One connector, from its first start on."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.data = Path(tempfile.mkdtemp(prefix="source-life-"))
        self.folder = Path(tempfile.mkdtemp(prefix="source-life-", dir=MEMORY if MEMORY.is_dir() else None))
        self.clock, self.fuse = Clock(1_700_000_000.0), Fuse()
        self.files = Files(self.data, self.clock)
        self.connector = Connector(self.folder, self.files.names[0], self.clock, self.fuse, self.patch)
        self.warnings = Warnings(self.files.warnings)
        self.logger = logging.getLogger("parquet_sink")
        self.logger.addHandler(self.warnings)
        self.step = self.cause = self.seen = 0
        self.connector.start()

    @property
    def name(self) -> Path:
        """The file that is followed now."""
        return self.connector.file

    # what happens to files

    @rule(lines=st.integers(1, 7), large=st.sampled_from([-1, -1, -1, 0, 1, 2, 4]), tail=st.booleans())
    def write(self, lines: int, large: int, tail: bool) -> None:
        self.files.write(self.name, lines, large=large, tail=tail)

    @rule(what=HAPPENINGS, lines=SOME)
    def happens(self, what: str, lines: int) -> None:
        self._happens(what, lines)

    @rule(what=HAPPENINGS, lines=SOME)
    def happens_elsewhere(self, what: str, lines: int) -> None:
        """To the file that is not followed now."""
        self._happens(what, lines, self.files.names[self.name == self.files.names[0]])

    @rule()
    def rotated_is_removed(self) -> None:
        self.files.remove_rotated(self.name)

    # what the connector does

    @rule(polls=st.integers(2, 12), wait_s=st.integers(1, 5))
    def goes_on(self, polls: int, wait_s: int) -> None:
        self._micro_batch(polls, wait_s)

    @rule(what=HAPPENINGS, lines=SOME)
    def happens_at_rest(self, what: str, lines: int) -> None:
        """It has sent everything when it happens, and is left alone then: only a look can find it."""
        self._rest()
        self._happens(what, lines)
        self._rest()

    @rule(polls=st.integers(2, 12), what=HAPPENINGS, lines=SOME, at=st.integers(0, 8))
    def goes_on_while(self, polls: int, what: str, lines: int, at: int) -> None:
        """Something happens to the file while its lines are sent."""
        self._meanwhile(what, lines, at)
        self._micro_batch(polls, 1)

    @rule(polls=st.integers(2, 12), how=st.sampled_from(["away", "away", "refuse", "unheard"]), at=SOME, landed=SOME)
    def brokers_fail(self, polls: int, how: str, at: int, landed: int) -> None:
        brokers = self.connector.brokers
        brokers.how, brokers.at, brokers.landed = how, at, landed
        self._cause()
        try:
            self._micro_batch(polls, 1)
        finally:
            brokers.how = ""

    @rule(cured=st.booleans(), killed=st.booleans(), meanwhile=st.lists(st.tuples(HAPPENINGS, SOME), max_size=3))
    def starts_again(self, cured: bool, killed: bool, meanwhile: list[tuple[str, int]]) -> None:
        """By an operator, who may have raised or lowered the bound on a line; or after the program was killed."""
        self.connector.cured = cured
        if killed:
            self._cause()
        (self.connector.kill if killed else self.connector.stop)()
        for what, lines in meanwhile:
            self._happens(what, lines)
        self._again(self.connector.kill)

    @rule(effects=st.integers(0, 40), polls=st.integers(2, 8), whole=st.booleans())
    def crashes(self, effects: int, polls: int, whole: bool) -> None:
        """Somewhere within a micro-batch, or in the stop after it."""
        self._cause()
        self.fuse.left = effects
        try:
            self._micro_batch(polls, 5)
            if whole:
                self.connector.stop()
        except Crash:
            pass
        finally:
            self.fuse.left = None
        self._again(self.connector.kill if whole or not self.connector.runs else self.connector.crash_query)

    @rule()
    def memory_is_lost(self) -> None:
        """While it is down: what is remembered beside positions."""
        self.connector.stop()
        self._cause()
        stored = self.connector.positions()
        self.connector.lose_memory()
        for name in self.files.names:
            offset = stored.get(text_of({"filename": name.name}))
            self.files.forgets(name, None if offset is None else offset["position"])
        self._again(self.connector.kill)

    @rule()
    def another_file_is_named(self) -> None:
        """The setting `file` is changed."""
        self._again(self.connector.stop, self.files.names[self.name == self.files.names[0]])

    # how it is done

    def _micro_batch(self, polls: int, wait_s: int) -> None:
        self.clock.seconds += wait_s
        if not self.connector.runs:
            return
        before = self.connector.brokers.acknowledged - self.connector.counted()
        try:
            self.connector.micro_batch(polls, lambda: self.files.saw(self.name))
        finally:
            self.connector.brokers.meanwhile = None
            self._check()
        if self.connector.failed:
            self._cause()
        assert self.connector.brokers.acknowledged - self.connector.counted() == before, "records are counted wrongly"

    def _again(self, end: Callable[[], None], file: Path | None = None) -> None:
        end()
        if end != self.connector.crash_query:
            self.connector.file = file or self.name
            self.connector.start()
        self._check()

    def _meanwhile(self, what: str, lines: int, at: int) -> None:
        name = self.name
        self.connector.brokers.meanwhile_at = at
        self.connector.brokers.meanwhile = lambda: self._happens(what, lines, name)

    def _happens(self, what: str, lines: int, name: Path | None = None) -> None:
        files, name = self.files, name or self.name
        does: dict[str, Callable[[], None]] = {
            "write": lambda: files.write(name, lines, tail=lines == 0),
            "rotate": lambda: files.rotate(name),
            "copy": lambda: files.copy_and_truncate(name),
            "truncate": lambda: files.truncate(name),
            "rewrite": lambda: files.rewrite(name),
            "save": lambda: files.replace_by_copy(name, lines),
            "replace": lambda: files.replace(name, lines),
            "remove": lambda: files.remove(name),
            "old": lambda: files.write_to_rotated(name, lines),
        }
        does[what]()

    def _cause(self) -> None:
        """Lines that were sent until now may come again."""
        self.cause = self.step

    def _check(self) -> None:
        """The lines that came since it was checked last."""
        self.step += 1
        for text in self.connector.brokers.log[self.seen :]:
            self.seen += 1
            assert text in self.files.lines, f"{text!r} was written by nobody"
            self._check_repetition(text)
            self._check_order(text)
            self.files.sent[text] = self.step

    def _check_repetition(self, text: bytes) -> None:
        before = self.files.sent.get(text)
        assert before is None or before <= self.cause + 1, f"{text!r} was sent again without a cause"

    def _check_order(self, text: bytes) -> None:
        content, index = self.files.lines[text]
        for one in self.files.of[content.name]:
            earlier = one.lines[:index] if one is content else one.lines
            for line in earlier:
                sent = line in self.files.sent or line in self.files.lost
                assert sent, f"{text!r} was sent before {line!r} was"
            if one is content:
                return

    def _rest(self) -> None:
        """Left alone for as long as it sends something, it leaves no line in the file that has the name now."""
        if self.connector.runs and self._comes_to_rest() and (content := self.files.at(self.name)) is not None:
            waiting = [one for one in self.files.missing() if self.files.lines[one][0] is content]
            assert not waiting, f"nothing reads {waiting}"

    def teardown(self) -> None:
        try:
            self._ends()
        finally:
            self.logger.removeHandler(self.warnings)
            self.patch.undo()
            shutil.rmtree(self.folder)
            shutil.rmtree(self.data)

    def _ends(self) -> None:
        """What stands under the name is sent by itself; then all that is left, of both files."""
        self._rest()
        self.connector.cured = True
        for name in (*self.files.names, self.files.names[0]):
            self._again(self.connector.stop, name)
            self.files.write(name, 1)
            assert self._comes_to_rest(), self.connector.failure
        missing: list[Any] = [(text, self.files.lines[text][0].path) for text in self.files.missing()]
        assert not missing, f"never sent: {missing}"

    def _comes_to_rest(self) -> bool:
        """Whether nothing is left that it would send."""
        sent, idle = len(self.connector.brokers.log), 0
        for _ in range(200):
            self._micro_batch(12, 9)
            if self.connector.failed:
                return False
            idle = 0 if len(self.connector.brokers.log) > sent else idle + 1
            sent = len(self.connector.brokers.log)
            if idle == 3:
                return True
        pytest.fail("it never comes to rest")
