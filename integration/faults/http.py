"""Rows of the HTTP table: each fault on the first and on the third attempt, with small files and one of 64 MiB."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Final

from integration import scripted_target as script
from integration.certificates import make, server_context
from integration.faults.act import PATIENCE_S, Act
from integration.faults.answers import CONNECTION, HTTP, REFUSED, TLS, UNKNOWN, Answer
from integration.faults.front import Attempt, Front, closes, kept
from integration.faults.rows import BROKE, Row
from integration.faults.world import Topic, World
from integration.scripted_target import Behaviour

PARTS: Final = {"http": HTTP, "connection": CONNECTION, "tls": TLS}
SMALL: Final = "small files"
LARGE: Final = "64 MiB"
LARGE_RECORDS: Final = 18_000
"""About 72 MB of text that hardly compresses."""
ENDPOINT_MS: Final = {SMALL: 3_000, LARGE: 9_000}
"""How long the target may take to answer."""


class AttemptAct(Act):
    """attempt: on which the fault comes, after 503 and 429."""

    def __init__(self, row: Row, world: World, topic: Topic, answer: Answer, attempt: int, size: str) -> None:
        super().__init__(row, world, topic)
        self._answer, self._attempt, self._size = answer, attempt, size
        self.stops = answer.kind == REFUSED
        self._fillers = list[socket.socket]()
        self._front: Front

    def prepare(self) -> None:
        port = int(self.world.target.url.rpartition(":")[2])
        self._front = Front(port, self._script(), self._contexts())
        self._front.__enter__()
        if self._answer.port and self._attempt == 1:
            self._take_away(self._front)

    def _script(self) -> list[Behaviour | None]:
        before = [script.answer(503), script.answer(429)][: self._attempt - 1]
        fault = self._answer.behave
        if fault is None:  # of the port or the certificate: the attempt before ends its connection
            last = before.pop() if before else None
            then = self._take_away if self._answer.port else None
            return [*before, closes(last, then)] if last else []
        if self._answer.kind == UNKNOWN and self._answer.whole and self._attempt == 1:
            fault = kept(fault)  # on the third attempt the target does not keep it
        return [*before, fault]

    def _contexts(self) -> list[ssl.SSLContext]:
        shown = self._answer.tls
        if not shown:
            return []
        folder = self.world.certificates
        good = [server_context(folder, "good")] * (self._attempt - 1)
        bad = server_context(folder / "unknown", "good") if shown == "unknown" else server_context(folder, shown)
        return [*good, bad]

    def _take_away(self, front: Front) -> None:
        """Nobody listens, or nobody takes connections."""
        front.down()
        if self._answer.port == "full":
            full = socket.socket()
            full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            full.bind(("127.0.0.1", front.port))
            full.listen(0)
            self._fillers = [full]
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", front.port))
                self._fillers.append(filler)

    def _bring_back(self) -> None:
        for one in reversed(self._fillers):
            one.close()
        self._front.up()

    @property
    def endpoint(self) -> str:
        return self._front.endpoint

    def keys(self) -> Mapping[str, str]:
        size = {
            "connect.ems.commit.records": "1000000",
            "connect.ems.commit.size.bytes": "200000000",
            "connect.ems.parquet.compression.codec": "none",
        }
        tls = {"connect.ems.tls.ca.file": str(self.world.certificates / "ca.pem")} if self._answer.tls else {}
        return {
            **(size if self._size == LARGE else {}),
            **tls,
            **self._answer.keys,
            "connect.ems.http.response.timeout.ms": str(ENDPOINT_MS[self._size]),
            "connect.ems.http.connect.timeout.ms": "2000",
        }

    def play(self) -> None:
        if self.stops:
            self.wait(lambda: bool(self.failed() or self.delivered()), PATIENCE_S)
            self.must(not self.delivered(), "everything was delivered, though it was refused")
            self.until_failed(*self._answer.words, *([] if self._attempt == 1 else [f"after {self._attempt} attempts"]))
            self.must(self.committed() == {0: 0}, f"offsets were committed: {self.committed()}")
            requests, expected = len(self._front.attempts), self._attempt - bool(self._answer.tls)
            self.must(requests == expected, f"{requests} requests, not {expected}: a refusal was tried again")
            self.saw(f"stopped after {self._attempt}, offset kept, delivered at the next start")
            return
        if self._answer.port:
            self.until_said(self._answer.words[0])
            self._bring_back()
        self.until_delivered()
        attempts = self._front.attempts
        self.must(len(attempts) > self._attempt - bool(self._answer.port), f"only {len(attempts)} requests: no retry")
        if self._answer.wait_s:
            pause = attempts[self._attempt].at - attempts[self._attempt - 1].at
            self.must(pause >= self._answer.wait_s, f"Retry-After was not waited for, but {pause:.1f} s")
        self.saw(f"sent again, accepted at attempt {len(self._at_first_file()) + bool(self._answer.port)}")

    def _at_first_file(self) -> list[Attempt]:
        """All attempts before that at a second file. A body that was not read has no name."""
        attempts = self._front.attempts
        first = next((one.name for one in attempts if one.name), "")
        return list(takewhile(lambda one: one.name in ("", first), attempts))

    def between(self) -> None:
        if self._answer.tls:
            self._front.mend(server_context(self.world.certificates, "good"))

    def judge(self) -> None:
        """As for all, and all attempts at the first file carried the same name and bytes, before any other file."""
        sent = self._at_first_file()
        digests = {one.digest for one in sent if one.digest}
        if len(digests) != 1:
            self.troubles.append(f"{len(digests)} different contents were sent as {sent[-1].name if sent else '?'}")
        later = [one.name for one in self._front.attempts[len(sent) :] if one.name == sent[-1].name]
        if later and not self.stops:
            self.troubles.append(f"{later[0]} was sent again after a later file")
        super().judge()
        if self._size == LARGE and self.outcome.largest_bytes < 64 << 20:
            self.troubles.append(f"the file has only {self.outcome.largest_bytes} bytes")
            self.outcome.status = BROKE

    def clean_up(self) -> None:
        for one in self._fillers:
            one.close()
        with suppress(AttributeError):
            self._front.__exit__(None, None, None)


class StayingAct(AttemptAct):
    """A fault that stays until the attempts are used up; then the connector stops, and an operator mends it."""

    def __init__(self, row: Row, world: World, topic: Topic, answer: Answer, *words: str) -> None:
        super().__init__(row, world, topic, answer, 1, SMALL)
        self.stops, self._words = True, words

    def _script(self) -> list[Behaviour | None]:
        return [self._answer.behave] * 3

    def keys(self) -> Mapping[str, str]:
        return {**super().keys(), "connect.ems.max.retries": "3"}

    def play(self) -> None:
        self.until_failed(*self._words)
        self.must(self.committed() == {0: 0}, f"offsets were committed: {self.committed()}")
        self.saw("stopped when its attempts were used up, offset kept, delivered at the next start")

    def between(self) -> None:
        self._front.behave()


class PassedOverAct(AttemptAct):
    """A file that is refused for what is in it, under CONTINUE: its records are parked, and replayed by an operator."""

    tolerated = frozenset({"early_commits"})  # they count once they are parked

    def __init__(self, row: Row, world: World, topic: Topic) -> None:
        super().__init__(row, world, topic, HTTP["422"], 1, SMALL)

    def keys(self) -> Mapping[str, str]:
        return {**super().keys(), "connect.ems.error.policy": "CONTINUE"}

    def play(self) -> None:
        self.until_delivered()
        self.until_said("100 records")  # an offset is seen committed before the line about it is written
        self.saw("its 100 records were parked, the next file went on, `parked replay` delivered them")

    def between(self) -> None:
        command = [sys.executable, "-m", "parquet_sink", "parked", "replay", str(self.program.file_of(self.name))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            self.troubles.append(f"parked replay ended with status {done.returncode}: {done.stderr[-500:]}")


class UnknownHostAct(StayingAct):
    """A name that no resolver knows; the operator corrects the file."""

    def keys(self) -> Mapping[str, str]:
        return {
            **super().keys(),
            "connect.ems.endpoint": "https://no-such-host.invalid/",
            "connect.ems.max.retries": "3",
        }

    def mended(self) -> Mapping[str, str]:
        return {"connect.ems.endpoint": self.endpoint}

    def _script(self) -> list[Behaviour | None]:
        return []


def acts(world: World, parts: set[str]) -> Iterator[list[Act]]:
    """Acts that may share a program, for each size; topics are produced once for all."""
    if not parts & set(PARTS):
        return
    if "tls" in parts:
        (world.certificates / "unknown").mkdir()
        make(world.certificates / "unknown")
    for size in (SMALL, LARGE):
        topic = Topic(world.broker, f"attempts-{size[:2].strip()}", first=0 if size == SMALL else 1 << 15)
        topic.produce(300 if size == SMALL else LARGE_RECORDS, large=size == LARGE)
        for attempt in (1, 3):
            made: list[Act] = [
                AttemptAct(Row(part, fault, f"attempt {attempt}, {size}"), world, topic, answer, attempt, size)
                for part, table in PARTS.items()
                if part in parts
                for fault, answer in table.items()
            ]
            if size == SMALL and attempt == 1:
                made += _staying(world, topic, parts)
            yield made


def _staying(world: World, topic: Topic, parts: set[str]) -> list[Act]:
    used_up = "after 3 attempts"
    http: list[Act] = [
        PassedOverAct(Row("http", "422, error.policy=CONTINUE", "attempt 1, small files"), world, topic),
        StayingAct(Row("http", "200, HTML", "always"), world, topic, HTTP["200, HTML"], used_up, "not a push target"),
        StayingAct(Row("http", "503", "always"), world, topic, HTTP["503"], used_up, "may or may not have been taken"),
        StayingAct(
            Row("http", "429, Retry-After of a day", "always"),
            world,
            topic,
            Answer(script.answer(429, b"", "Retry-After: 86400"), "retriable"),
            "was not taken",
        ),
    ]
    dns = UnknownHostAct(
        Row("connection", "unknown host name", "always"),
        world,
        topic,
        Answer(None, "retriable"),
        used_up,
        "no connection",
    )
    return (http if "http" in parts else []) + ([dns] if "connection" in parts else [])
