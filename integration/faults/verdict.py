"""The oracle's word on one table, of all its files or of some."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from integration.oracle.judge import Stop, files_of, judge_files
from integration.oracle.oracle import Findings, Oracle, Sample
from parquet_sink.addons.devkit.target.client import TargetClient

NEVER_STOPPED: Final = Stop({}, -1, 0)
"""Files that come again are no wrong here: a connector that fails does not know what became of the last one."""


@dataclass(frozen=True)
class Judged:
    """What was found in how many files."""

    findings: Findings
    files: int
    largest_bytes: int

    def wrong(self, tolerated: frozenset[str]) -> str:
        """What is wrong, in words; empty when nothing is. tolerated: names of findings that are none here."""
        return ", ".join(f"{name} {count}" for name, count in self.findings.wrong.items() if name not in tolerated)


def judge(
    oracle: Oracle,
    client: TargetClient,
    table: str,
    samples: Sequence[Sample],
    which: Callable[[Mapping[str, Any]], bool] | None = None,
) -> Judged:
    """Gives the oracle everything that the target holds of a table.

    which: files that are judged, and then no rows, because they may be of other files.
    """
    files = files_of(client, table)
    files = files if which is None else list(filter(which, files))
    judge_files(oracle, client, files, NEVER_STOPPED)
    oracle.missing()
    oracle.commits(samples)
    if which is None:
        oracle.table(client.table(table) if files else pa.table({}))
    return Judged(oracle.findings, len(files), max((file["bytes"] for file in files), default=0))
