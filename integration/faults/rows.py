"""What a row of the table is: a fault, how it was brought about, and what became of it."""

import re
from dataclasses import dataclass, field
from typing import Final

from integration.oracle.oracle import Findings

HELD: Final = "held"
BROKE: Final = "BROKE"
NOT_RUN: Final = "not run"


class Broke(Exception):
    """The program did something else than is promised; the text says what."""


class NotRun(Exception):
    """The machine does not allow this fault; the text says why."""


@dataclass(frozen=True)
class Row:
    """part: what `FAULTS` selects. how: on which attempt, with which size of file, and the like."""

    part: str
    fault: str
    how: str = ""

    @property
    def slug(self) -> str:
        """A name for connector, table and topic."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.part} {self.fault} {self.how}".lower()).strip("-")

    def __str__(self) -> str:
        return ", ".join(filter(None, (f"{self.part}: {self.fault}", self.how)))


@dataclass
class Outcome:
    """What became of a row. seen: in words. records, files: judged by the oracle; seconds: from start to delivery."""

    row: Row
    status: str = NOT_RUN
    seen: str = ""
    findings: Findings = field(default_factory=Findings)
    records: int = 0
    files: int = 0
    largest_bytes: int = 0
    seconds: float = 0.0
    troubles: list[str] = field(default_factory=list)
