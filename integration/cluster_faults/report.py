"""What a run of `make cluster-faults` is asked for, and what came out: a table, and one line of JSON."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from integration.cluster_faults.history import NEVER, Gap, Loss, percentile
from integration.cluster_faults.nemesis import LOST, Kind
from integration.oracle.trial import Course


@dataclass(frozen=True)
class Plan:
    """Sizes of a run. per_second: records of each connector. session_ms: session.timeout.ms of the workers.

    interval_ms: how old records become at most. clients: that change connectors by REST meanwhile, each at least every
    pause_s seconds.
    """

    minutes: int
    seed: int
    connectors: int
    partitions: int
    per_second: int
    session_ms: int
    interval_ms: int = 2_000
    clients: int = 3
    pause_s: int = 2


@dataclass
class Report(Course):
    """losses: what was done to workers, with the gap of each connector. answers: of REST writes, by status.

    asked: how many requests the judged history of REST has.

    others: by kind of fault, the longest rests of connectors of other workers that did not move, in s.

    load: the machine's load average while faults were done, over a minute, at its end. interval_s: as old as records
    become in any case.
    """

    interval_s: float = 0.0
    losses: list[tuple[Loss, list[Gap]]] = field(default_factory=list)
    others: dict[str, list[float]] = field(default_factory=dict)
    answers: Mapping[int, int] = field(default_factory=dict)
    asked: int = 0
    load: float = 0.0
    seconds: float = 0.0

    def gaps(self, *kinds: Kind, at_rest: bool | None = None) -> list[Gap]:
        """at_rest: of faults that came so, or did not; None: of all."""
        losses = [one for one in self.losses if at_rest is None or one[0].at_rest is at_rest]
        return [gap for loss, found in losses if loss.kind in kinds for gap in found]

    def beyond_interval(self, kind: Kind) -> list[float]:
        """By how much more than the interval connectors rested, from the last file of one owner to the next's first."""
        return [max(gap.rest_s - self.interval_s, 0.0) for gap in self.gaps(kind)]

    def summary(self) -> str:
        """One JSON object: the last line of `make cluster-faults`."""
        found = self.findings
        told = {
            "minutes": round(self.seconds / 60, 1),
            "faults": dict(Counter(loss.kind for loss, _ in self.losses)),
            "records": self.records,
            "files": self.files,
            "missing": found.missing,
            "altered": found.altered,
            "invented": found.invented,
            "repeated": found.repeated,
            "lost_worker_s": _figures(self.gaps(*LOST)),
            "lost_worker_at_rest_s": _figures(self.gaps(*LOST, at_rest=True)),
            "lost_worker_amid_moves_s": _figures(self.gaps(*LOST, at_rest=False)),
            "stopped_worker_s": _figures(self.gaps(Kind.STOPPED)),
            "stopped_worker_beyond_interval_s": _rests(self.beyond_interval(Kind.STOPPED)),
            "others_rest_s": _rests([one for found in self.others.values() for one in found]),
            "rest_writes": sum(self.answers.values()),
            "rest_judged": self.asked,
            "load_average": self.load,
            "passed": self.passed,
        }
        return json.dumps(told)

    def lines(self) -> list[str]:
        """The rest of what is to be told, for a reader."""
        answers = ", ".join(f"{status or 'none'} {count}" for status, count in sorted(self.answers.items()))
        wrong = ", ".join(f"{kind} {count}" for kind, count in self.findings.wrong.items()) or "nothing"
        return [
            *table(self.losses, self.others),
            *(
                f"of lost workers {words}: " + ", ".join(f"{name} {one}" for name, one in _figures(found).items())
                for words, found in (
                    ("at rest", self.gaps(*LOST, at_rest=True)),
                    ("while others still moved", self.gaps(*LOST, at_rest=False)),
                )
            ),
            "after SIGTERM connectors rested longer than the interval by: "
            + ", ".join(f"{share} {value} s" for share, value in _rests(self.beyond_interval(Kind.STOPPED)).items()),
            f"REST writes, by answer: {answers}; {self.asked} requests are judged, reads among them",
            f"{self.records} records, {self.files} files accepted; load average {self.load:.1f}",
            f"wrong: {wrong}",
            *self.judged(),
            *self.troubles,
        ]


def table(losses: Sequence[tuple[Loss, Sequence[Gap]]], others: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """A line for each kind of fault: from it to the next accepted file of each connector that the worker had.

    Others: how long those that stayed where they were rested at most meanwhile; they go on.
    """
    yield "| Fault | Times | Connectors | Moved | p50 | p99 | to the assignment: p50 | p99 | others: p50 | p99 |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for kind in Kind:
        mine = [found for loss, found in losses if loss.kind == kind]
        found = [gap for one in mine for gap in one]
        seconds = [gap.seconds for gap in found]
        moved = [gap.moved_s for gap in found if gap.moved_s is not None]
        told = [
            f"{percentile(one, share):.1f} s" if one else ""
            for one in (seconds, moved, others.get(kind))
            for share in (0.5, 0.99)
        ]
        yield f"| {kind} | {len(mine)} | {len(found)} | {len(moved)} | {' | '.join(told)} |"


def _figures(found: Sequence[Gap]) -> dict[str, float | int]:
    seconds = [gap.seconds for gap in found if gap.seconds != NEVER]
    return {
        "connectors": len(found),
        "p50": round(percentile(seconds, 0.5), 1),
        "p99": round(percentile(seconds, 0.99), 1),
    }


def _rests(found: Sequence[float]) -> dict[str, float]:
    return {"p50": round(percentile(found, 0.5), 1), "p99": round(percentile(found, 0.99), 1)}
