"""What a crash run is asked for, and what came out of it."""

import json
from dataclasses import dataclass
from typing import Final

from integration.crash.kills import Kind
from integration.oracle.trial import Course

SECONDS_PER_KILL: Final = 8.0
"""About what a kill and its recovery take: the rate of the load follows from it."""


@dataclass(frozen=True)
class Sizes:
    """How long a run is. timeout_s: for all kills and recoveries together; records: at least so many.

    raw: whether connectors keep records as they came. archive: `none`, `required` or `behind`.
    """

    kills: int
    records: int
    seed: int
    raw: bool = False
    archive: str = "none"

    @property
    def per_second(self) -> float:
        return min(max(self.records / (SECONDS_PER_KILL * self.kills), 200.0), 20_000.0)

    @property
    def timeout_s(self) -> float:
        return 180 + 120 * self.kills + 2 * self.records / self.per_second


@dataclass
class Report(Course):
    """What came out. large_files: those of 20 MB and more."""

    large_files: int = 0

    def summary(self) -> str:
        """One JSON object: the last line of `make crash`."""
        found = self.findings
        counts = {"missing": found.missing, "altered": found.altered, "invented": found.invented}
        return json.dumps({"kills": len(self.hits), "records": self.records, **counts, "repeated": found.repeated})

    def lines(self) -> list[str]:
        """The rest of what is to be told, for a reader."""
        kinds = ", ".join(f"{kind} {sum(h.kind == kind for h in self.hits)}" for kind in Kind)
        ends = f"exit statuses of the sink before SIGTERM: {self.ends}; children outlived it by {self.orphans_s:.1f} s"
        files = f"{self.files} files accepted, {self.large_files} of them of 20 MB and more"
        return [f"kills: {kinds}", self.slowest(), ends, files, *self.judged(), *self.troubles]
