"""Lives that once broke a promise, shrunk: each holds now, and breaks again where its mend is taken out."""

from dataclasses import dataclass
from typing import Any

from tests.life.machine import Life
from tests.life.records import Kind
from tests.life.sink import Wishes
from tests.life.target import Reply

Step = tuple[str, dict[str, Any]]


def live(*kinds: Kind, **more: Any) -> Step:
    """Records of these kinds come to one topic-partition, and two ticks of ten seconds pass."""
    produced = [(0, list(kinds), 0)] if kinds else []
    quiet = {"replies": [], "befalls": "nothing", "at": ("", 0), "number": 0, "starts": True, "mends": False}
    return "live", {"produced": produced, "ticks": [10.0, 10.0], **quiet, **more}


def operate(act: str, number: int = 0) -> Step:
    """Something is done, or happens, while the sink does nothing."""
    return "operate", {"act": act, "number": number}


PLAIN, CONTINUE, LATEST = Wishes(), Wishes(error_policy="CONTINUE"), Wishes(offset_reset="latest")


@dataclass(frozen=True)
class KnownLife:
    """What happened, and the promise that it broke, as a pattern of its words."""

    steps: tuple[Step, ...]
    broken: str
    wishes: Wishes = PLAIN
    knows_names: bool = False
    partitions: int = 1

    def play(self) -> None:
        """Raises AssertionError when a promise is broken."""
        life = Life()
        try:
            life.begin(seed=0, partitions=self.partitions, wishes=self.wishes, knows_names=self.knows_names)
            for name, how in self.steps:
                getattr(life, name)(**how)
                life.promises_hold()
        finally:
            life.teardown()


KNOWN = {
    "the state file is removed during an upload that is to be tried again": KnownLife(
        (live(Kind.GOOD, replies=[Reply.BUSY], befalls="state lost", number=2, at=("before push", 0)),),
        r"committed \d+ before offset",
    ),
    "a record that stopped the connector is good at the next start": KnownLife(
        (live(Kind.GOOD, Kind.LATER), operate("schema registered"), live()),
        r"has offset \d+, which is committed",
    ),
    "a target that knows names says so after a lost answer": KnownLife(
        (live(Kind.GOOD, replies=[Reply.LOST_AFTER], ticks=[10.0] * 3),),
        "is set aside as refused, and accepted",
        CONTINUE,
        knows_names=True,
    ),
    "a target that knows names says so after a crash": KnownLife(
        (live(Kind.GOOD, befalls="program killed", at=("after push", 0)), live()),
        "is set aside as refused, and accepted",
        CONTINUE,
        knows_names=True,
    ),
    "retention takes the beginning of a range that ends at a bad record": KnownLife(
        (live(Kind.GOOD, Kind.GOOD, Kind.TEXT, Kind.POISON, befalls="retention", number=1, at=("fetch", 0)),),
        r"committed \d+ before offset",
        Wishes(lost_offsets="CONTINUE"),
    ),
    "retention takes the beginning of a range that is sent before a crash": KnownLife(
        (
            live(*[Kind.GOOD] * 6, replies=[Reply.BUSY] * 4, ticks=[0.5]),
            operate("retention", 1),
            live(befalls="program killed", at=("after push", 0)),
            live(),
        ),
        r"has offset \d+, which was accepted in",
        Wishes(lost_offsets="CONTINUE"),
    ),
    "retention takes the beginning of a range whose next file is tried again": KnownLife(
        (
            live(Kind.WIDE, Kind.TEXT, Kind.GOOD, replies=[Reply.BUSY], ticks=[2.0]),
            live(befalls="retention", number=2, replies=[Reply.BUSY]),
        ),
        r"committed \d+ before offset",
        Wishes(lost_offsets="CONTINUE", max_retries=5),
    ),
    "a drain ends while a transaction is open": KnownLife(
        (live(Kind.GOOD), operate("transaction opened"), operate("deliver what is there"), live(ticks=[10.0] * 3)),
        "it ended as caught up at 1",
    ),
    "a topic-partition is added while a connector of the latest records is stopped": KnownLife(
        (live(Kind.GOOD), operate("kill"), operate("partition added", 1), live()),
        r"committed \d+ before offset 0",
        LATEST,
    ),
    "the brokers forget a group of the latest records": KnownLife(
        (live(Kind.GOOD), operate("kill"), operate("group forgotten"), live(Kind.GOOD)),
        r"committed \d+ before offset 1",
        LATEST,
    ),
    "the brokers forget a group": KnownLife(
        (live(Kind.GOOD), operate("kill"), operate("group forgotten"), live()),
        "it begins at 0 without a word",
    ),
}
