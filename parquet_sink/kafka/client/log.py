"""What Kafka clients log: why brokers cannot be reached, and lines for our log, each one rarely.

A client keeps what it says until it is polled; one that nobody polls hoards it, ten lines a second while brokers are
unavailable. So whoever keeps a client polls it, and what comes out ends here.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError

log = logging.getLogger(__name__)

SAME_LINE_S: Final = 600.0
"""How often one line passes: a client whose broker is away says the same ten times a second, by each of its threads."""
MOST_LINES: Final = 1_000
RECENT_S: Final = 30.0
"""How long a problem with an address counts after the client logged it."""
MOST_NAMED: Final = 3
"""Addresses that one message names."""

_THREAD: Final = re.compile(r"^\[thrd:[^\]]*\]: ")
_TIMES: Final = re.compile(r" \(after \d+ms.*", re.DOTALL)
_ADDRESS: Final = re.compile(r"^(?:\w+://)?(?P<address>[^/\s]+:\d+)/\S+: (?P<words>.+)$", re.DOTALL)
_REFUSED: Final = re.compile(r"Connect to ipv\d#(\S+) failed: (.+)", re.DOTALL)
_NO_NAME: Final = re.compile(r"Failed to resolve '[^']*': (.+)", re.DOTALL)


@dataclass(frozen=True)
class ClientProblem:
    """Why one address cannot be used, and what to do about it."""

    words: str
    cure: str


def explain(words: str) -> ClientProblem:
    """What the client's words about an address mean for an operator."""
    if found := _REFUSED.fullmatch(words):
        return ClientProblem(f"{found[2].lower()} ({found[1]})", "Check [bootstrap.servers], and that the broker runs")
    if found := _NO_NAME.fullmatch(words):
        return ClientProblem(f"the name is unknown ({found[1]})", "Check the names in [bootstrap.servers]")
    if "SASL" in words or "uthenticat" in words:
        return ClientProblem(
            f"authentication failed: {words}", "Check security.protocol, sasl.mechanism and the credentials"
        )
    if "SSL" in words or "ertificate" in words:
        return ClientProblem(f"TLS failed: {words}", "Check security.protocol and the ssl.* settings")
    if words.startswith(("Disconnected", "Receive failed", "ApiVersionRequest failed")):
        return ClientProblem(
            f"it does not answer as a Kafka broker: {words}", "Check [bootstrap.servers] and security.protocol"
        )
    return ClientProblem(words, "Check [bootstrap.servers] and the broker")


class ClientLog:
    """Takes what the Kafka clients of one group log, when they are polled. `clock` gives seconds that never jump."""

    def __init__(self, group: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._group, self._clock = group, clock
        self._logged_at_s: dict[str, float] = {}
        self._problems: dict[str, tuple[float, ClientProblem]] = {}

    def log(self, level: int, text: str, *parts: object) -> None:
        """A line of a client; the parts are a code for what it is about, the client's name, and its words."""
        words = _plain(str(parts[-1]) if parts else text)
        self._notice(words)
        if self._is_new(words):
            log.log(min(level, logging.WARNING), "group %s: Kafka client: %s", self._group, words)

    def error(self, error: KafkaError) -> None:
        """An error event of a client; its words were logged before."""
        self._notice(_plain(error.str()))
        log.debug("group %s: Kafka client: %s", self._group, error.str())

    def cause(self) -> tuple[str, str]:
        """Why brokers cannot be reached, by address, and the cure; "" and "" without a problem lately."""
        since = self._clock() - RECENT_S
        recent = {address: found for address, (at, found) in list(self._problems.items()) if at >= since}
        words = [f"{address}: {found.words}" for address, found in sorted(recent.items())]
        more = f"; and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
        cures = dict.fromkeys(found.cure for _, found in sorted(recent.items()))
        return "; ".join(words[:MOST_NAMED]) + more, ". ".join(cures)

    def clear(self) -> None:
        """Forgets all problems: a broker answered."""
        self._problems.clear()

    def _notice(self, words: str) -> None:
        found = _ADDRESS.match(words)
        if found is None:
            return
        if len(self._problems) >= MOST_LINES:
            self._problems.clear()
        self._problems[found["address"]] = (self._clock(), explain(found["words"]))

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
