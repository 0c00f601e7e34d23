"""The table at the end, for readers and for docs/explanation/reliability.md, and the last line, for programs.

`python -m integration.faults.report FILE ...` prints the table of results that runs with `FAULTS_RESULTS=FILE` wrote.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from integration.faults.rows import HELD, NOT_RUN, Outcome
from integration.oracle.oracle import Findings

Result = Mapping[str, Any]
EVERY: Final = frozenset(f"attempt {attempt}, {size}" for attempt in (1, 3) for size in ("small files", "64 MiB"))


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each row, with what was wrong below it."""
    told = []
    for one in outcomes:
        again = one.findings.repeated
        counts = "" if one.status == NOT_RUN else f"{one.records} records, {one.files} files, {again} again"
        told.append(f"{one.status:7}  {one.row!s:66}  {counts:36}  {one.seen}".rstrip())
        told += [f"         {line}" for trouble in one.troubles for line in trouble.splitlines()]
    return told


def result(one: Outcome) -> Result:
    """What is kept of a row."""
    found = one.findings
    return {
        "part": one.row.part,
        "fault": one.row.fault,
        "how": one.row.how,
        "status": one.status,
        "records": one.records,
        "files": one.files,
        "missing": found.missing,
        "altered": found.altered,
        "invented": found.invented,
        "repeated": found.repeated,
        "seconds": round(one.seconds, 1),
        "seen": one.seen,
        "troubles": one.troubles,
    }


def markdown(results: Iterable[Result]) -> list[str]:
    """A line for each group of faults of a part with the same figures, parts in the order in which they came.

    Where a row came again the last one counts. Faults of a line are parted by `; `, and its figures are of each.
    """
    latest = {(one["part"], one["fault"], one["how"]): one for one in results}
    parts = list(dict.fromkeys(part for part, _, _ in latest))
    faults: dict[tuple[str, str], list[Result]] = {}
    for (part, fault, _), one in sorted(latest.items(), key=lambda item: parts.index(item[0][0])):
        faults.setdefault((part, fault), []).append(one)
    groups: dict[tuple[str, ...], list[str]] = {}
    for (part, fault), rows in faults.items():
        run = [one for one in rows if one["status"] != NOT_RUN]
        held = f"{sum(one['status'] == HELD for one in run)} of {len(run)}" if run else NOT_RUN
        sums = [f"{sum(one[name] for one in run):,}" for name in ("records", "missing", "repeated")]
        seen = "; ".join(dict.fromkeys(one["seen"] for one in rows if one["seen"]))
        groups.setdefault((part, _how(rows), held, *sums, seen), []).append(fault)
    told = [
        "| Faults | Run with | Held | Records | Missing | Came again | What was seen |",
        "|---|---|---|---|---|---|---|",
    ]
    told += [f"| {part}: " + " | ".join(["; ".join(names), *cells]) + " |" for (part, *cells), names in groups.items()]
    return told


def _how(rows: Sequence[Result]) -> str:
    """All that there is of attempts and sizes in four words."""
    found = [one["how"] for one in rows]
    if set(found) >= EVERY:
        found = ["attempts 1 and 3, small and 64 MiB", *(how for how in found if how not in EVERY)]
    return "; ".join(found)


def summary(outcomes: Sequence[Outcome]) -> str:
    """One JSON object."""
    run = [one for one in outcomes if one.status != NOT_RUN]
    found = Findings.together([one.findings for one in run])
    return json.dumps(
        {
            "faults": len(run),
            "held": sum(one.status == HELD for one in run),
            "not_run": len(outcomes) - len(run),
            "records": sum(one.records for one in run),
            **{name: getattr(found, name) for name in ("missing", "altered", "invented", "repeated")},
        }
    )


def passed(outcomes: Sequence[Outcome]) -> bool:
    """Whether everything that was run held, and something was."""
    run = [one for one in outcomes if one.status != NOT_RUN]
    return bool(run) and all(one.status == HELD for one in run)


if __name__ == "__main__":
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[1:]]
    print("\n".join(markdown(json.loads(line) for text in texts for line in text.splitlines())))
