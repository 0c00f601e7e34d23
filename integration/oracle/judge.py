"""The judgement: every file that the target accepted, the group's offsets and the table, given to the oracle."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from confluent_kafka import Message

from integration.oracle.oracle import Oracle, Sample
from integration.s3.book import BucketReader
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.kafka.dead_letters import PREFIX

SYNC_S: Final = 300.0


@dataclass(frozen=True)
class Stop:
    """How things stood after SIGTERM: committed offsets, the last accepted file, and how often files came again."""

    committed: Mapping[int, int]
    sequence: int
    repeated: int

    @classmethod
    def of(cls, committed: Mapping[int, int], files: Sequence[Mapping[str, Any]]) -> "Stop":
        last = max((file["sequence"] for file in files), default=-1)
        return cls(committed, last, sum(file["repeated"] for file in files))


def judge(
    oracle: Oracle,
    client: TargetClient | BucketReader,
    table: str,
    samples: Sequence[Sample],
    stop: Stop,
    dead_letters: Iterable[Message] = (),
    progress: Callable[[int, int], None] = lambda done, files: None,
) -> Sequence[int]:
    """Everything into `oracle.findings`; the sizes of all accepted files in bytes.

    progress: is told how many files were judged, and of how many, after each.
    """
    for letter in dead_letters:
        _judge_letter(oracle, letter)
    files = files_of(client, table)
    judge_files(oracle, client, files, stop, progress)
    findings = oracle.findings
    for again in range(findings.repeated_files - stop.repeated):
        findings.note("resent", f"file number {again + 1} came again under its name after SIGTERM")
    oracle.missing()
    oracle.commits(samples)
    oracle.table(client.table(table))
    return [file["bytes"] for file in files]


def files_of(client: TargetClient | BucketReader, table: str) -> list[dict[str, Any]]:
    """All accepted files of a table, in order of acceptance, once their rows are in the table."""
    client.sync(SYNC_S)
    return sorted(client.files(table), key=lambda file: file["sequence"])


def judge_files(
    oracle: Oracle,
    client: TargetClient | BucketReader,
    files: Sequence[Mapping[str, Any]],
    stop: Stop,
    progress: Callable[[int, int], None] = lambda done, files: None,
) -> None:
    """Gives the oracle names, contents and repetitions of accepted files."""
    oracle.names((file["name"], file["sha256"]) for file in files)
    with tempfile.TemporaryDirectory(prefix="parquet-sink-oracle-") as folder:
        path = Path(folder) / "file.parquet"
        for done, file in enumerate(files, 1):
            client.download(file["id"], path)
            floor = stop.committed if file["sequence"] > stop.sequence else {}
            rows = oracle.read(pq.read_table(path, memory_map=False))
            oracle.file(file["name"], rows, file["accepted_at_ms"], floor)
            progress(done, len(files))
    findings = oracle.findings
    findings.repeated_files = sum(file["repeated"] for file in files)
    findings.repeated += sum(file["repeated"] * file["rows"] for file in files)


def _judge_letter(oracle: Oracle, letter: Message) -> None:
    """Its timestamp is the time at which it was written: the topic is made so."""
    headers = dict(letter.headers() or ())
    partition, offset = (int(headers[f"{PREFIX}{name}"] or b"") for name in ("partition", "offset"))
    oracle.dead_letter((partition, offset), letter.key() or b"", letter.value(), letter.timestamp()[1])
