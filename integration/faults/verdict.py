"""The oracle's word on one table: every accepted file, the group's offsets, and the rows in the end."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from integration.oracle.oracle import Findings, Oracle, Sample
from parquet_sink.devkit.target.client import TargetClient

SYNC_S = 300.0
WRONG = (
    "missing",
    "altered",
    "invented",
    "disordered",
    "early_commits",
    "stale_rows",
    "resent",
    "renamed",
    "altered_files",
    "recut",
)


@dataclass(frozen=True)
class Judged:
    """What was found in how many files."""

    findings: Findings
    files: int
    largest_bytes: int

    def wrong(self, tolerated: frozenset[str]) -> str:
        """What is wrong, in words; empty when nothing is. tolerated: names of findings that are none here."""
        found = {name: getattr(self.findings, name) for name in WRONG if name not in tolerated}
        return ", ".join(f"{name} {count}" for name, count in found.items() if count)


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
    client.sync(SYNC_S)
    files = sorted(client.files(table), key=lambda file: file["sequence"])
    files = files if which is None else list(filter(which, files))
    oracle.names((file["name"], file["sha256"]) for file in files)
    with tempfile.TemporaryDirectory(prefix="parquet-sink-oracle-") as folder:
        path = Path(folder) / "file.parquet"
        for file in files:
            client.download(file["id"], path)
            oracle.file(file["name"], pq.read_table(path, memory_map=False).to_pylist(), file["accepted_at_ms"])
    findings = oracle.findings
    findings.repeated_files = sum(file["repeated"] for file in files)
    findings.repeated += sum(file["repeated"] * file["rows"] for file in files)
    oracle.missing()
    oracle.commits(samples)
    if which is None:
        oracle.table(client.table(table).to_pylist() if files else [])
    return Judged(findings, len(files), max((file["bytes"] for file in files), default=0))
