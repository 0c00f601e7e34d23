"""What a crash run is asked for, and what came out of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from integration.crash.kills import Kind
from integration.oracle.oracle import Findings

SECONDS_PER_KILL: Final = 8.0
"""About what a kill and its recovery take: the rate of the load follows from it."""


class Failed(Exception):
    """The run itself went wrong: too slow, too few faults, the sink did not stop in order."""


@dataclass(frozen=True)
class Sizes:
    """How long a run is. timeout_s: for all kills and recoveries together; records: at least so many."""

    kills: int
    records: int
    seed: int

    @property
    def per_second(self) -> float:
        return min(max(self.records / (SECONDS_PER_KILL * self.kills), 200.0), 20_000.0)

    @property
    def timeout_s(self) -> float:
        return 180 + 120 * self.kills + 2 * self.records / self.per_second


@dataclass
class Hit:
    """A kill that was done. ends: what was produced before it, for each stream."""

    number: int
    kind: Kind
    at: float
    ends: Sequence[Mapping[int, int]]
    recovered_s: float | None = None


@dataclass
class Report:
    """What came out. ends: exit statuses before SIGTERM; orphans_s: how long children outlived a driver.

    of_streams: what the oracle of each stream found.
    """

    of_streams: Sequence[Findings]
    hits: list[Hit] = field(default_factory=list)
    records: int = 0
    files: int = 0
    large_files: int = 0
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

    def summary(self) -> str:
        """One JSON object: the last line of `make crash`."""
        found = self.findings
        counts = {"missing": found.missing, "altered": found.altered, "invented": found.invented}
        return json.dumps({"kills": len(self.hits), "records": self.records, **counts, "repeated": found.repeated})

    def lines(self) -> list[str]:
        """The rest of what is to be told, for a reader."""
        found = self.findings
        slowest: dict[Kind, float] = {}
        for hit in self.hits:
            slowest[hit.kind] = max(slowest.get(hit.kind, 0.0), hit.recovered_s or 0.0)
        kinds = ", ".join(f"{kind} {sum(h.kind is kind for h in self.hits)}" for kind in Kind)
        repeats = (
            f"{self.files} files accepted, {self.large_files} of them of 20 MB and more; "
            f"{found.repeated} records came more than once; "
            f"{found.repeated_files} files came again under their name"
        )
        wrongs = (
            f"again in another file {found.renamed}, ranges cut again elsewhere {found.recut}, "
            f"names that came with other content {found.altered_files}, out of order {found.disordered}, "
            f"committed too early or backwards {found.early_commits}, "
            f"sent again after SIGTERM {found.resent}, wrong rows in the table {found.stale_rows}"
        )
        ends = f"exit statuses of the sink before SIGTERM: {self.ends}; children outlived it by {self.orphans_s:.1f} s"
        recovery = "slowest recovery: " + ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in slowest.items())
        letters = f"{found.dead_letters} records without a row, all dead letters; {found.dead_letters_again} came again"
        return [f"kills: {kinds}", recovery, ends, repeats, letters, wrongs, *found.examples, *self.troubles]
