"""What Kafka clients log: why brokers cannot be reached, and lines for our log, each one rarely.

A client keeps what it says until it is polled; one that nobody polls hoards it, ten lines a second while brokers are
unavailable. So whoever keeps a client polls it, and what comes out ends here. A consumer can be polled without taking
records only while it is assigned to nothing.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError

from parquet_sink.kafka.client.causes import UNKNOWN, Cause, ClientProblem, explain, explain_token
from parquet_sink.kafka.client.doorstep import Doorstep

log = logging.getLogger(__name__)

SAME_LINE_S: Final = 600.0
"""How often one line passes: while a broker is unavailable each thread of a client says the same ten times a second."""
MOST_LINES: Final = 1_000
RECENT_S: Final = 30.0
"""How long a problem with an address counts after the client logged it."""
MOST_NAMED: Final = 3
"""Addresses that one message names."""

_THREAD: Final = re.compile(r"^\[thrd:[^\]]*\]: ")
_TIMES: Final = re.compile(r" \(after \d+ms.*", re.DOTALL)
_ADDRESS: Final = re.compile(r"^(?:\w+://)?(?P<address>[^/\s]+:\d+)/\S+: (?P<words>.+)$", re.DOTALL)


class ClientLog:
    """Takes what Kafka clients log, when they are polled.

    whose: begins each line, such as `group connect-orders`. clock: seconds that never jump.
    """

    def __init__(self, whose: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.whose, self._clock = whose, clock
        self._logged_at_s: dict[str, float] = {}
        self._problems: dict[str, tuple[float, ClientProblem]] = {}
        self._door: Doorstep | None = None
        self._looked: dict[str, tuple[float, str | None]] = {}
        self._around: tuple[float, Cause | None] = (-RECENT_S, None)

    def look_with(self, door: Doorstep) -> None:
        """Has addresses looked at where the client's words do not tell the cause, when somebody asks for it."""
        self._door = door

    def log(self, level: int, text: str, *parts: object) -> None:
        """A line of a client; the parts are a code for what it is about, the client's name, and its words."""
        words = _plain(str(parts[-1]) if parts else text)
        self._notice(words)
        if self._is_new(words):
            log.log(min(level, logging.WARNING), "%s: Kafka client: %s", self.whose, words)

    def error(self, error: KafkaError) -> None:
        """An error event of a client: hundreds in a second; mostly its words were logged before."""
        words = _plain(error.str())
        self._notice(words)
        if self._is_new(words):
            log.debug("%s: Kafka client: %s", self.whose, words)

    def cause(self) -> Cause:
        """Why brokers cannot be reached, and the cure; it lasts when every problem of late does."""
        since = self._clock() - RECENT_S
        recent = {address: found for address, (at, found) in sorted(self._problems.items()) if at >= since}
        return self._of(recent, lasting=all(found.lasting for found in recent.values())) if recent else UNKNOWN

    def cause_of_silence(self) -> Cause:
        """Likewise, for a request without an answer: where the client has no word of use, its brokers are looked at."""
        cause = self.cause()
        if self._door is None or not cause.vague:
            return cause
        at, found = self._around
        if at < self._clock() - RECENT_S:
            looked = {address: self._door.wrong_protocol(address) for address in self._door.addresses[:MOST_NAMED]}
            wrong = {address: problem for address, problem in looked.items() if problem is not None}
            found = self._of(wrong, lasting=len(wrong) == len(looked)) if wrong else None
            self._around = self._clock(), found
        return found or cause

    def _of(self, problems: Mapping[str, ClientProblem], *, lasting: bool) -> Cause:
        named = list(problems.items())[:MOST_NAMED]
        words = [f"{address}: {self._looked_at(address, found)}" for address, found in named]
        more = f"; and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
        cures = dict.fromkeys(found.cure for found in problems.values())
        vague = all(found.vague for found in problems.values())
        return Cause("; ".join(words) + more, ". ".join(cures), lasting, vague)

    def _looked_at(self, address: str, found: ClientProblem) -> str:
        """The words, with the reason that the client does not tell."""
        if not found.unverified or self._door is None:
            return found.words
        at, why = self._looked.get(address, (-RECENT_S, None))
        if at < self._clock() - RECENT_S:
            why = self._door.why_unverified(address)
            self._looked[address] = (self._clock(), why)
        return f"{found.words}: {why}" if why else found.words

    def clear(self) -> None:
        """Forgets all problems: a broker answered."""
        self._problems.clear()

    def _notice(self, words: str) -> None:
        if token := explain_token(words):
            address, problem = token
        elif found := _ADDRESS.match(words):
            address, problem = found["address"], explain(found["words"])
        else:
            return
        if len(self._problems) >= MOST_LINES:
            self._problems.clear()
            self._looked.clear()
        self._problems[address] = (self._clock(), problem)

    def _is_new(self, words: str) -> bool:
        now = self._clock()
        if now - self._logged_at_s.get(words, -SAME_LINE_S) < SAME_LINE_S:
            return False
        if len(self._logged_at_s) >= MOST_LINES:
            self._logged_at_s.clear()
        self._logged_at_s[words] = now
        return True


def _plain(words: str) -> str:
    """Without the client's thread and the time that it took: it says so at each attempt."""
    return _TIMES.sub("", _THREAD.sub("", words))
