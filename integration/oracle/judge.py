"""The judgement: every file that the target accepted, the group's offsets and the table, given to the oracle."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from confluent_kafka import Message

from integration.oracle.oracle import Oracle, Sample
from parquet_sink.devkit.target.client import TargetClient
from parquet_sink.kafka.dead_letter_headers import PREFIX

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
    client: TargetClient,
    table: str,
    samples: Sequence[Sample],
    stop: Stop,
    dead_letters: Iterable[Message] = (),
) -> Sequence[int]:
    """Everything into `oracle.findings`; the sizes of all accepted files in bytes."""
    for letter in dead_letters:
        _judge_letter(oracle, letter)
    client.sync(SYNC_S)
    files = sorted(client.files(table), key=lambda file: file["sequence"])
    oracle.names((file["name"], file["sha256"]) for file in files)
    with tempfile.TemporaryDirectory(prefix="parquet-sink-oracle-") as folder:
        path = Path(folder) / "file.parquet"
        for file in files:
            client.download(file["id"], path)
            rows = pq.read_table(path, memory_map=False).to_pylist()
            floor = stop.committed if file["sequence"] > stop.sequence else {}
            oracle.file(file["name"], rows, file["accepted_at_ms"], floor)
    findings = oracle.findings
    findings.repeated_files = sum(file["repeated"] for file in files)
    findings.repeated += sum(file["repeated"] * file["rows"] for file in files)
    for again in range(findings.repeated_files - stop.repeated):
        findings.note("resent", f"file number {again + 1} came again under its name after SIGTERM")
    oracle.missing()
    oracle.commits(samples)
    oracle.table(client.table(table).to_pylist())
    return [file["bytes"] for file in files]


def _judge_letter(oracle: Oracle, letter: Message) -> None:
    """Its timestamp is the time at which it was written: the topic is made so."""
    headers = dict(letter.headers() or ())
    partition, offset = (int(headers[f"{PREFIX}{name}"] or b"") for name in ("partition", "offset"))
    oracle.dead_letter((partition, offset), letter.key() or b"", letter.value(), letter.timestamp()[1])
