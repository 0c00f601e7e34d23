"""What a replay sent, or would send, in words or as one JSON object."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from parquet_sink.addons.replay.command.proof import Proven
from parquet_sink.addons.replay.plan import Missing, ReplayPlan, ReplayRange
from parquet_sink.addons.replay.results import ReplayedFile, Verdict
from parquet_sink.addons.replay.run import LeftOut

NOTHING: Final = "{}: nothing to replay: Kafka holds no delivered record of what was chosen"
MOST_SHOWN: Final = 20
"""Ranges, and files that differ, that are shown one by one; --json has all."""


@dataclass
class Tally:
    """Of the files of a replay. keep: whether all of them are kept, for JSON; else those that differ, up to a bound."""

    keep: bool = False
    counts: Counter[Verdict] = field(default_factory=Counter)
    files: int = 0
    rows: int = 0
    size_bytes: int = 0
    kept: list[ReplayedFile] = field(default_factory=list)

    def add(self, one: ReplayedFile) -> None:
        """Counts a file; one that is absent was not sent."""
        self.counts[one.verdict] += 1
        if one.verdict is not Verdict.ABSENT:
            self.files, self.rows = self.files + 1, self.rows + one.file.rows
            self.size_bytes += one.file.size_bytes
        if self.keep or (_differs(one) and len(self.kept) < MOST_SHOWN):
            self.kept.append(one)

    @property
    def differing(self) -> int:
        return self.counts[Verdict.DIFFERENT] + self.counts[Verdict.ABSENT]


@dataclass(frozen=True)
class Done:
    """A replay at its end. earlier: files that were sent before it was stopped and gone on with. failure: in words.

    proven: what became of the target's tables, None when it was not asked for, or not got to.
    """

    connector: str
    target: str
    times: int
    rate: str
    tally: Tally
    left_out: LeftOut
    plan: ReplayPlan
    seconds: float
    earlier: int = 0
    failure: str | None = None
    interrupted: bool = False
    resume: str = ""
    proven: Proven | None = None

    def lines(self) -> Iterator[str]:
        """In words."""
        tally, name = self.tally, f"connector {self.connector}"
        if not self.plan.ranges:
            yield from gone(self.plan.missing)
            yield NOTHING.format(name)
            return
        times = "" if self.times == 1 else f", all of it {self.times} times"
        sums = f"{_files(tally.files)}, {tally.rows:,} rows, {tally.size_bytes:,} bytes"
        yield f"{name}: {sums} sent to {self.target} in {self.seconds:.1f} s{times} ({self.rate})"
        if copies := sum(one.copy is not None for one in self.plan.ranges):
            yield f"{name}: {_files(copies)} of what was chosen are from the archive: Kafka no longer has all of it"
        if self.earlier:
            yield f"{name}: {_files(self.earlier)} were sent before this replay was stopped"
        yield f"{name}: {compared(tally)}"
        yield from map(_difference, filter(_differs, tally.kept))
        if tally.differing > MOST_SHOWN:
            yield f"  and {tally.differing - MOST_SHOWN:,} more; --json names them all"
        yield from gone(self.plan.missing)
        yield from without_row(self.left_out)
        if self.failure is not None:
            yield f"{name}: stopped. {self.failure}"
        if self.interrupted or self.failure is not None:
            yield f"{name}: go on with: {self.resume}"
        if self.proven is not None:
            yield from self.proven.lines()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "connector": self.connector,
            "target": self.target,
            "times": self.times,
            "rate": self.rate,
            **_sums(self.tally),
            "from_archive": sum(one.copy is not None for one in self.plan.ranges),
            "seconds": round(self.seconds, 3),
            "files_sent_before": self.earlier,
            "missing": list(map(_missing, self.plan.missing)),
            "left_out": _left_out(self.left_out),
            "failure": self.failure,
            "interrupted": self.interrupted,
            "verified": None if self.proven is None else self.proven.to_dict(),
            "sent": [one.to_dict() for one in self.tally.kept],
        }


@dataclass(frozen=True)
class Foretold:
    """What would be sent. made: files that were made to see what comes out."""

    connector: str
    target: str
    times: int
    plan: ReplayPlan
    made: Sequence[ReplayedFile]
    left_out: LeftOut

    def lines(self) -> Iterator[str]:
        """In words: a line for each range, what is gone, and the sum."""
        name = f"connector {self.connector}"
        rows = [self._range(one) for one in self.plan.ranges]
        for one in rows[:MOST_SHOWN]:
            offsets = f"offsets {one['from']} to {one['to']}"
            yield (
                f"  topic {one['topic']}, topic-partition {one['partition']}: {offsets}: {_files(one['files'])}, "
                f"{one['rows']:,} rows, {one['bytes']:,} bytes ({one['by']})"
            )
        if len(rows) > MOST_SHOWN:
            yield f"  and {len(rows) - MOST_SHOWN:,} more ranges; --json has them all"
        for made in [one for one in self.made if _differs(one)][:MOST_SHOWN]:
            yield _difference(made)
        yield from gone(self.plan.missing)
        yield from without_row(self.left_out)
        times = "once" if self.times == 1 else f"{self.times} times"
        sums = [sum(one[what] for one in rows) for what in ("files", "rows", "bytes")]
        if not rows:
            yield NOTHING.format(name)
            return
        total = f"{_files(sums[0])}, {sums[1]:,} rows, {sums[2]:,} bytes"
        yield f"{name}: {total} would be sent {times} to {self.target}; nothing was sent"

    def _range(self, one: ReplayRange) -> dict[str, Any]:
        files: Sequence[Any] = one.expected
        if not one.foretold:
            spans = (one.planned.start, one.planned.end)
            mine = [made.file for made in self.made if made.file.key == one.key and made.verdict is not Verdict.ABSENT]
            files = [file for file in mine if spans[0] <= file.first < spans[1]]
        sums = {"rows": sum(f.rows for f in files), "bytes": sum(f.size_bytes for f in files)}
        offsets = {"from": one.windows[0][0], "to": one.windows[-1][1] - 1}
        by = "by the history" if one.foretold else "as in the history, read now" if one.recorded else "cut again"
        by = by if one.copy is None else f"from the archive: {one.copy.where}"
        about = {"topic": one.planned.topic, "partition": one.planned.partition, **offsets}
        return {**about, "files": len(files), **sums, "by": by, "from_archive": one.copy is not None}

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "connector": self.connector,
            "target": self.target,
            "times": self.times,
            "ranges": [self._range(one) for one in self.plan.ranges],
            "missing": list(map(_missing, self.plan.missing)),
            "left_out": _left_out(self.left_out),
            "differences": [one.to_dict() for one in self.made if _differs(one)],
        }


def printed(one: Done | Foretold, *, as_json: bool) -> None:
    """On standard output."""
    for line in [json.dumps(one.to_dict(), ensure_ascii=False)] if as_json else one.lines():
        print(line, flush=True)


def compared(tally: Tally) -> str:
    """How files stand beside those of the first time."""
    counts = tally.counts
    parts = [
        f"{counts[Verdict.SAME]:,} as the first time",
        f"{counts[Verdict.DIFFERENT]:,} different",
        f"{counts[Verdict.NEW]:,} that the history does not have",
    ]
    if counts[Verdict.ABSENT]:
        parts.append(f"{counts[Verdict.ABSENT]:,} of the first time without any record now")
    return f"of the files {', '.join(parts)}"


def gone(missing: Sequence[Missing]) -> Iterator[str]:
    """What Kafka no longer has."""
    for one in missing[:MOST_SHOWN]:
        yield f"  no longer in Kafka, deleted by retention: {one}"
    if len(missing) > MOST_SHOWN:
        yield f"  and {len(missing) - MOST_SHOWN:,} more; --json names them all"


def without_row(left_out: LeftOut) -> Iterator[str]:
    """Records that are in no file."""
    if not left_out.count:
        return
    refused = f", {left_out.refused:,} of them in files that the target refused" if left_out.refused else ""
    yield f"  left out: {left_out.count:,} record{'' if left_out.count == 1 else 's'} without a row{refused}"
    yield from (f"    {one}" for one in left_out.named)


def _differs(one: ReplayedFile) -> bool:
    return one.verdict in (Verdict.DIFFERENT, Verdict.ABSENT)


def _difference(one: ReplayedFile) -> str:
    causes = "; ".join(one.causes)
    if one.verdict is Verdict.ABSENT:
        return f"  not sent again: {one.file.name}: {causes}"
    was = f", the first time {one.was}" if one.was else ""
    return f"  different: {one.file.name}{was}: {causes}"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _sums(tally: Tally) -> dict[str, Any]:
    verdicts = {one.name.lower(): tally.counts[one] for one in Verdict}
    return {"files": tally.files, "rows": tally.rows, "bytes": tally.size_bytes, **verdicts}


def _missing(one: Missing) -> dict[str, Any]:
    offsets = {"from": one.start, "to": one.end - 1}
    return {"topic": one.topic, "partition": one.partition, **offsets, "files": one.files, "rows": one.rows}


def _left_out(one: LeftOut) -> dict[str, Any]:
    return {"records": one.count, "refused_by_target": one.refused, "first": one.named}
