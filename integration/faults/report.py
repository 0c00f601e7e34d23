"""The table at the end, for readers and for docs/reliability.md, and the last line, for programs."""

import json
from collections.abc import Sequence

from integration.faults.rows import HELD, NOT_RUN, Outcome
from integration.oracle.oracle import Findings


def lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each row, with what was wrong below it."""
    told = []
    for one in outcomes:
        counts = (
            f"{one.records} records, {one.files} files, {one.findings.repeated} again" if one.status != NOT_RUN else ""
        )
        told.append(f"{one.status:7}  {one.row!s:70}  {counts:40}  {one.seen}")
        told += [f"         {line}" for trouble in one.troubles for line in trouble.splitlines()]
    return told


def markdown(outcomes: Sequence[Outcome]) -> list[str]:
    """The same as a table of docs/reliability.md."""
    told = [
        "| Fault | How | Outcome | Records | Missing | Came again | What was seen |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        counts = [str(one.records), str(one.findings.missing), str(one.findings.repeated)]
        cells = [f"{one.row.part}: {one.row.fault}", one.row.how, one.status, *counts, one.seen]
        told.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return told


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
