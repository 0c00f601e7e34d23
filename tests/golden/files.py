"""What the sink makes of the records of a case: its Parquet files and dead letters, by digests and a short sample.

All between Kafka's records and the target's folder is the real thing: a connector file, a Spark task's flush, files.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.connectors.loading import load
from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.files.storage import prepare_connector
from parquet_sink.kafka.dead_letters import HeaderWriter
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import Header, RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import DivertPolicy, classes_of, steps_for
from parquet_sink.task.task import TaskFlush
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import MACHINE
from tests.golden.records import URL, Record, Stream, registered

FILE: Final = Path(__file__).with_name("files.json")
E: Final = "connect.ems."
LONGEST: Final = 240
MOST_LISTED: Final = 3
REASON: Final = "__connect.errors.exception.message"
WORDS: Final = (REASON, "__connect.errors.exception.stacktrace")
Letter = tuple[bytes | None, bytes | None, list[Header]]
"""Key, value and headers."""
_CLASSES: Final = {
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "latin": "org.apache.kafka.connect.storage.StringConverter",
    "csv": "tests.golden.own.CsvLines",
    **{one.word: one.class_name for one in reversed(CONVERTERS) if one.word != "json"},
}
_CLASSES["envelope"] = _CLASSES["mixed"] = _CLASSES["events"] = _CLASSES["json"]
_MORE: Final = {
    **{format_: {"schemas.enable": "false"} for format_ in ("json", "mixed", "events")},
    "latin": {"converter.encoding": "ISO-8859-1"},
    "csv": {"columns": "id,text"},
    **{format_: {"schema.registry.url": URL} for format_ in ("avro", "protobuf", "json_schema")},
}


def converter(side: str, format_: str) -> dict[str, str]:
    """What a connector file says to have the converter of a format."""
    more = {f"{side}.converter.{name}": text for name, text in _MORE.get(format_, {}).items()}
    return {f"{side}.converter": _CLASSES[format_], **more}


@dataclass(frozen=True)
class Case:
    """streams: a topic-partition for each; the first is of topic orders, others of returns.

    changes: of the connector file below; None takes a key away.
    """

    name: str
    changes: Mapping[str, str | None]
    streams: tuple[Stream, ...] = (Stream(),)

    def properties(self, folder: str) -> dict[str, str]:
        """The connector file."""
        first = self.streams[0]
        base = {
            "name": "golden",
            "topics": "orders,returns",
            **converter("value", first.format),
            **converter("key", first.key),
            f"{E}endpoint": f"directory:{folder}/out",
            f"{E}target.table": "T",
            f"{E}tmp.dir": f"{folder}/tmp",
            f"{E}commit.size.bytes": "10000000",
            f"{E}commit.records": "500",
            f"{E}commit.interval.ms": "30000",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "letters",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        return {name: text for name, text in {**base, **self.changes}.items() if text is not None}


class _Registry:
    def get(self, schema_id: int) -> RegisteredSchema:
        """As `convert.registry.registered.Schemas` says."""
        try:
            return registered(schema_id)
        except KeyError:
            raise InvalidValue(f"schema id {schema_id} is not registered at {URL}") from None


class _Letters:
    """Keeps dead letters as their producer would be given them."""

    def __init__(self, headers: HeaderWriter) -> None:
        self._headers = headers
        self.put_aside: list[Letter] = []

    def put(self, rejected: Rejected) -> None:
        self.put_aside.append((rejected.key, rejected.value, self._headers.headers(rejected)))

    def flush(self, planned: PlannedRange) -> None:
        """All is kept."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Source:
    records: Sequence[Record]

    def key(self, index: int) -> bytes | None:
        return self.records[index].key

    def headers(self, index: int) -> tuple[Header, ...] | None:
        return self.records[index].headers

    def timestamp_type(self, index: int) -> str:
        return "CreateTime" if self.records[index].timestamp else "NoTimestampType"


@dataclass(frozen=True)
class Made:
    """What came of a case. files: path and bytes, in order of their names."""

    files: Sequence[tuple[str, bytes]]
    letters: Sequence[Letter]
    outcomes: Sequence[RangeOutcome]


def made(case: Case, folder: Path) -> Made:
    """Runs the case in an empty folder."""
    (folder / "out").mkdir()
    loaded = load(case.properties(str(folder)), Worker(machine=MACHINE), source=case.name)
    settings = loaded.require()
    prepare_connector(settings.tmp_dir, settings.name)
    letters = _Letters(HeaderWriter(settings.name, context=True, classes=classes_of(settings)))
    streams = dict(enumerate(case.streams))

    def read(kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        for records in streams[planned.partition].blocks():
            yield _batch(planned, records, parts)

    ranges = [
        PlannedRange("returns" if number else "orders", number, 0, 10**9, "interval", read_ahead=False)
        for number in streams
    ]
    with (
        mock.patch("parquet_sink.convert.registry.client.registry_for", return_value=_Registry()),
        mock.patch("os.fsync"),
    ):
        steps = steps_for(settings, DivertPolicy(settings.errors, letters))
        outcomes = TaskFlush(settings, steps, read).run(ranges)
    found = {str(path.relative_to(folder / "out")): path for path in (folder / "out").rglob("*") if path.is_file()}
    files = [(name, found[name].read_bytes()) for name in sorted(found, key=_in_order)]
    return Made(files, letters.put_aside, outcomes)


def _in_order(name: str) -> str:
    """Names sort by the offsets in them."""
    return re.sub(r"[0-9]+", lambda number: number[0].zfill(20), name)


def _batch(planned: PlannedRange, records: Sequence[Record], parts: RecordParts) -> RecordBatch:
    """What is asked for of some records."""
    source = _Source(records)
    return RecordBatch.of(
        planned.topic,
        planned.partition,
        [one.offset for one in records],
        [one.timestamp for one in records],
        [one.value for one in records],
        [one.key for one in records] if parts.keys else None,
        [one.headers for one in records] if parts.headers else None,
        source if parts.single else None,
        [source.timestamp_type(index) for index in range(len(records))] if parts.timestamp_types else None,
    )


def described(made: Made) -> dict[str, Any]:
    """Digests of all; how the first file looks, and why the first records were rejected, cut to be short.

    bytes: of all files as they are, which holds for one version of Arrow. files: what any version reads of each.
    """
    found: dict[str, Any] = {"files": _listed(made.files), "bytes": _digest(repr(made.files).encode())}
    if made.files:
        found |= _sample(pq.read_table(pa.BufferReader(made.files[0][1])))
    if failures := [_cut(one.failure.message) for one in made.outcomes if one.failure is not None]:
        found |= {"until": [one.accepted_until for one in made.outcomes], "failures": failures}
    return found | (_rejected(made.letters) if made.letters else {})


def _listed(files: Sequence[tuple[str, bytes]]) -> list[str] | str:
    """A line for each file, without its size; of many one digest."""
    lines = [f"{re.sub(r'_bytes-[0-9]+_', '_', name)} {content(data)}" for name, data in files]
    return lines if len(lines) <= MOST_LISTED else f"{len(lines)} files {_digest(repr(lines).encode())}"


def _rejected(letters: Sequence[Letter]) -> dict[str, Any]:
    """Why records were rejected stands apart, because it is words."""
    reasons = [dict(headers)[REASON] for _, _, headers in letters]
    others = [(key, value, [one for one in headers if one[0] not in WORDS]) for key, value, headers in letters]
    return {
        "letters": _counted(letters),
        "letters digest": _digest(repr(others).encode()),
        "reason": _cut(_text(reasons[0])),
        "reasons digest": _digest(repr(reasons).encode()),
    }


def _counted(letters: Sequence[Letter]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, _, headers in letters:
        told = dict(headers)
        stage = f"{_text(told['__connect.errors.stage'])} {_text(told['__connect.errors.class.name'])}"
        found[stage] = found.get(stage, 0) + 1
    return found


def _text(value: bytes | None) -> str:
    return (value or b"").decode()


def content(data: bytes) -> str:
    """The digest of what is in a Parquet file: columns in order, types, row groups, codecs, each value."""
    file = pq.ParquetFile(pa.BufferReader(data))
    metadata, table = file.metadata, file.read()
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    parts = [
        *_columns(table.schema),
        repr({key: value for key, value in (table.schema.metadata or {}).items() if not key.startswith(b"ARROW:")}),
        repr([one.num_rows for one in groups]),
        repr([one.column(number).compression for one in groups[:1] for number in range(one.num_columns)]),
        *(repr(column.to_pylist()) for column in table.columns),
    ]
    return _digest("\n".join(parts).encode("utf-8", "surrogatepass"))


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{one.name} {one.type}{'' if one.nullable else ' not null'}" for one in schema]


def _sample(table: pa.Table) -> dict[str, Any]:
    """Columns, and the last row."""
    (row,) = table.slice(table.num_rows - 1).to_pylist()
    return {"columns": _cut(", ".join(_columns(table.schema))), "row": _cut(repr(list(row.values())))}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:24]


def written(found: Mapping[str, Mapping[str, Any]]) -> str:
    """As JSON, a line for each case; first the version of Arrow that wrote the files."""
    lines = [f'"pyarrow": {json.dumps(pa.__version__)}']
    lines += [f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
