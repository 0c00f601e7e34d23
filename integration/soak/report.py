"""What a soak is asked for, and what came out of it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from integration.oracle.trial import Course
from integration.soak.measures import QUANTITIES, Quantity
from integration.soak.slopes import Slope


@dataclass(frozen=True)
class Plan:
    """minutes: of mixed faults in one life of the sink. per_second: records; None: half of the peak, measured."""

    minutes: float
    seed: int
    per_second: float | None = None

    @property
    def seconds(self) -> float:
        return self.minutes * 60

    @property
    def peak_s(self) -> float:
        """How long the peak is measured."""
        return min(max(0.05 * self.seconds, 20.0), 120.0)

    @property
    def pause_s(self) -> float:
        """The most between two faults, and the most that broker and target stay away."""
        return min(max(0.01 * self.seconds, 2.0), 20.0)

    @property
    def sample_s(self) -> float:
        return min(max(self.seconds / 600, 2.0), 10.0)


@dataclass
class Report(Course):
    """peak: records per second that can be delivered; None when it was not measured."""

    peak: float | None = None
    per_second: float = 0.0
    load_s: float = 0.0
    measured_s: float = 0.0
    slopes: Mapping[str, Slope | None] = field(default_factory=dict)

    @property
    def flat(self) -> bool | None:
        """Whether everything stayed flat; None when the run was too short to tell of anything."""
        known = [one for one in self.slopes.values() if one is not None]
        return all(one.flat for one in known) if known else None

    @property
    def passed(self) -> bool:
        return super().passed and self.flat is True

    def summary(self) -> str:
        """One JSON object: the last line of `make soak`."""
        found = self.findings
        told = {
            "minutes": round(self.load_s / 60, 1),
            "records": self.records,
            "per_second": round(self.per_second),
            "peak_per_second": None if self.peak is None else round(self.peak),
            "faults": len(self.hits),
            "missing": found.missing,
            "altered": found.altered,
            "invented": found.invented,
            "repeated": found.repeated,
            "measured_minutes": round(self.measured_s / 60, 1),
            "grown_per_hour": {each.name: _hourly(each, self.slopes.get(each.name)) for each in QUANTITIES},
            "flat": self.flat,
            "passed": self.passed,
        }
        return json.dumps(told)

    def lines(self) -> list[str]:
        """The rest of what is to be told, for a reader."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in Counter(hit.kind for hit in self.hits).items())
        ends = f"exit statuses of the sink before SIGTERM: {self.ends}; children outlived it by {self.orphans_s:.1f} s"
        files = f"{self.files} files accepted"
        told = [f"faults: {kinds}", self.slowest(), ends, files, *self.judged()]
        return [*told, *table(self.slopes, self.measured_s), *self.troubles]


def table(slopes: Mapping[str, Slope | None], measured_s: float) -> Iterator[str]:
    """A line for each quantity."""
    yield f"growth over the last {measured_s / 60:.1f} minutes of one life of the sink, as an hour's, with 95 %:"
    yield f"{'':28}{'level':>9}{'an hour':>10}{'from':>10}{'to':>10}{'allowed':>10}         why so much is"
    for each in QUANTITIES:
        found = slopes.get(each.name)
        if found is None:
            yield f"{each.name:28}  not told: the run was too short, or it was not looked at"
            continue
        figures = [found.hourly(one) / each.unit for one in (found.grown, found.low, found.high, found.allowed)]
        verdict = "flat" if found.flat else "GROWS"
        told = "".join(f"{one:10.1f}" for one in figures)
        yield f"{each.name:28}{found.level / each.unit:9.1f}{told}  {verdict:5}  {each.why}"


def _hourly(quantity: Quantity, found: Slope | None) -> float | None:
    return None if found is None else round(found.hourly(found.grown) / quantity.unit, 2)
