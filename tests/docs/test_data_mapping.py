"""Every example of the pages on data mapping, converters and transforms gives what the page says.

The files in tests/docs/examples have more of them, which readers do not need.

An example is a row of fenced blocks: settings (`properties`), records (`input`, `hex`), each after the schema that they
are written with (`avro`, `connect`, `schema`, `json-schema`), with their `keys` (`json` or `text`) and `headers` (one
object for each record), and what comes of it (`rows`, `columns`, `error`, `unmatched`). It ends where the next block of
settings, schema or records follows a result.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import json_format, message_factory

from parquet_sink.addons.formats.protobuf import compile as protobuf_compile
from parquet_sink.connectors.loading import load
from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.decoders import key_decoder_for
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema, SchemaKind
from parquet_sink.convert.settings import Converter
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import Header, RecordBatch
from parquet_sink.rows.row_builder import RowBuilder, Run
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.transform.building import chain_for
from parquet_sink.worker_config.worker import Worker
from tests.factories import accepted

DOCS = Path(__file__).parents[2] / "docs" / "reference"
SUBJECTS = ("data-mapping", "converters", "transforms")
PAGES = (
    *(path for name in SUBJECTS for path in (DOCS / f"{name}.md", *sorted((DOCS / name).glob("*.md")))),
    *sorted((Path(__file__).parent / "examples").glob("*.md")),
)
FENCE = re.compile(r"^```(\w+)(?: ([\w-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHER_TYPES, NEW_FILE = "--- from here on: other types", "--- from here on: a new file"
SCHEMAS = ("avro", "connect", "schema", "json-schema")
RECORDS = ("input", "hex")
RESULTS = ("rows", "columns", "error", "unmatched")

JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
AVRO = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
PROTOBUF = {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"}
JSON_SCHEMA = {"value.converter": "io.confluent.connect.json.JsonSchemaConverter"}
CONVERTERS = {
    "json": JSON,
    "connect": {**JSON, "value.converter.schemas.enable": "true"},
    "avro": AVRO,
    "schema": PROTOBUF,
    "json-schema": JSON_SCHEMA,
    "xml": {"value.converter": "com.celonis.kafka.connect.ems.converter.XmlConverter"},
    "text": {"value.converter": "org.apache.kafka.connect.storage.StringConverter"},
}
CONNECTOR = {
    "name": "orders",
    "topics": "orders",
    "connect.ems.endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items",
    "connect.ems.authorization.key": "AppKey k",
    "connect.ems.target.table": "ORDERS",
    "connect.ems.commit.size.bytes": "10000000",
    "connect.ems.commit.records": "1000",
    "connect.ems.commit.interval.ms": "30000",
    "connect.ems.embed.kafka.metadata": "false",
}


@dataclass
class Written:
    """Records that share a form and, perhaps, a schema. form: the language of their block, or `hex`."""

    form: str
    lines: list[str]
    schema: str
    text: str


@dataclass
class Example:
    """One example: what goes in and what must come out, each as the lines of its block."""

    place: str
    settings: dict[str, str] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    keys: Written | None = None
    headers: list[str] | None = None
    results: dict[str, list[str]] = field(default_factory=dict)


def examples(page: Path) -> Iterator[Example]:
    """The examples of a page."""
    document = page.read_text(encoding="utf-8")
    current: Example | None = None
    schema, schema_text = "", ""
    for match in FENCE.finditer(document):
        language, name, text = match.groups()
        if name not in RESULTS and (current is None or current.results):
            if current is not None:
                yield current
            current = Example(f"{page.parent.name}/{page.name}-{document.count(chr(10), 0, match.start()) + 1}")
            schema, schema_text = "", ""
        assert current is not None
        if language == "properties":
            current.settings = dict(line.split("=", 1) for line in text.splitlines())
        elif name in SCHEMAS:
            schema, schema_text = name, text
        elif name in RECORDS:
            form = "hex" if name == "hex" else language
            current.written.append(Written(form, text.splitlines(), schema, schema_text))
        elif name == "keys":
            current.keys = Written(language, text.splitlines(), "", "")
        elif name == "headers":
            current.headers = text.splitlines()
        else:
            assert name in RESULTS, f"{current.place}: what is {match.group(0)}?"
            current.results[name] = text.splitlines()
    if current is not None:
        yield current


def to_settings(example: Example) -> SinkSettings:
    """The connector that the example's keys make, with the converter of its first records unless it names one."""
    first = example.written[0]
    converter = CONVERTERS.get(first.schema or first.form, {})
    keys = {**CONNECTOR, **({} if "value.converter" in example.settings else converter), **example.settings}
    if example.keys is not None and "key.converter" not in keys:
        keys |= {name.replace("value", "key", 1): text for name, text in CONVERTERS[example.keys.form].items()}
    if keys["value.converter"] in {one["value.converter"] for one in (AVRO, PROTOBUF, JSON_SCHEMA)}:
        keys.setdefault("value.converter.schema.registry.url", "http://localhost:8081")
    loaded = load(keys, Worker(), source=example.place)
    assert loaded.warnings == ()
    return loaded.require()


class Registered:
    """Schemas by their id, as a registry has them."""

    def __init__(self) -> None:
        self._schemas: dict[int, RegisteredSchema] = {}

    def get(self, schema_id: int) -> RegisteredSchema:
        """See `convert.registry.registered.Schemas`."""
        if schema_id not in self._schemas:
            raise InvalidValue(f"schema id {schema_id} is not registered")
        return self._schemas[schema_id]

    def add(self, kind: SchemaKind, text: str) -> RegisteredSchema:
        """A schema under its id, which is the next one unless it is known."""
        for known in self._schemas.values():
            if known.text == text:
                return known
        schema = RegisteredSchema(len(self._schemas) + 1, kind, text)
        self._schemas[schema.id] = schema
        return schema


def write_avro(schema: RegisteredSchema, line: str) -> bytes:
    """A line in Avro's JSON encoding as a datum."""
    parsed = fastavro.parse_schema(without_meaning(json.loads(schema.text)))
    (value,) = fastavro.json_reader(StringIO(line), parsed)
    out = BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def without_meaning(schema: Any) -> Any:
    """The schema less its logical types, which change nothing of the bytes."""
    if isinstance(schema, list):
        return [without_meaning(one) for one in schema]
    if isinstance(schema, dict):
        return {word: without_meaning(below) for word, below in schema.items() if word != "logicalType"}
    return schema


def write_protobuf(schema: RegisteredSchema, line: str) -> bytes:
    """A line in Protobuf's JSON form as the first message of a file, behind the index that says so."""
    compiled = protobuf_compile.compile_schema(schema)
    first = next(iter(compiled.file.message_types_by_name.values()))
    message = message_factory.GetMessageClass(first)()
    json_format.Parse(line, message, descriptor_pool=compiled.pool)
    return b"\x00" + bytes(message.SerializeToString())


def write_json(_: RegisteredSchema, line: str) -> bytes:
    """A line as it is."""
    return line.encode()


WRITERS: dict[str, tuple[SchemaKind, Callable[[RegisteredSchema, str], bytes]]] = {
    "avro": ("AVRO", write_avro),
    "schema": ("PROTOBUF", write_protobuf),
    "json-schema": ("JSON", write_json),
}


def to_values(written: Written, registered: Registered) -> list[bytes]:
    """The bytes of the records."""
    if written.schema in WRITERS:
        kind, write = WRITERS[written.schema]
        schema = registered.add(kind, written.text)
        head = b"\x00" + schema.id.to_bytes(4, "big")
    if written.form == "hex":
        return [bytes.fromhex(line) for line in written.lines]
    if written.schema in WRITERS:
        return [head + write(schema, line) for line in written.lines]
    if written.schema == "connect":
        around = '{{"schema": {}, "payload": {}}}'
        return [around.format(written.text, line).encode() for line in written.lines]
    return [line.encode() for line in written.lines]


def to_decoder(settings: Converter, registered: Registered) -> Decoder:
    """The decoder that a worker process would have, asking no registry."""
    with patch("parquet_sink.convert.registry.client.registry_for", return_value=registered):
        return settings.open()


def to_keys(example: Example) -> list[bytes | None] | None:
    """The bytes of the records' keys; a line without anything is not a key."""
    return None if example.keys is None else [line.encode() or None for line in example.keys.lines]


def to_headers(example: Example) -> list[list[Header]] | None:
    """Each line is an object: names, and texts or null."""
    if example.headers is None:
        return None
    objects = [json.loads(line, object_pairs_hook=list) for line in example.headers]
    return [[(name, None if text is None else text.encode()) for name, text in one] for one in objects]


def run(example: Example) -> dict[str, list[str]]:
    """What comes out, as the documents write it."""
    settings, registered = to_settings(example), Registered()
    values = [value for written in example.written for value in to_values(written, registered)]
    block = RecordBatch.of(
        "orders",
        3,
        range(len(values)),
        [1_700_000_000_000] * len(values),
        values,
        to_keys(example),
        to_headers(example),
    )
    transforms = chain_for(settings.transforms, settings.key, settings.header)
    tombstone_keys = None if settings.shape.tombstone_column is None else key_decoder_for(settings.key)
    shaper = RowBuilder(settings.shape, None, to_decoder(settings.value, registered), transforms, tombstone_keys)
    runs: list[Run] = []
    found: dict[str, list[str]] = {}
    try:
        runs.extend(accepted(shaper, block))
    except InvalidRecord as error:
        found["error"] = [f"offset {error.offset}: {error.reason}"]
    if rows := to_lines(runs):
        found["rows"] = rows
    if runs:
        found["columns"] = [", ".join(map(to_column, runs[-1].rows.schema))]
    if unmatched := shaper.unmatched():
        found["unmatched"] = list(unmatched)
    return found


def to_lines(runs: list[Run]) -> list[str]:
    """Rows as the documents write them."""
    lines = []
    for number, one in enumerate(runs):
        if number:
            lines.append(NEW_FILE if one.incompatible else OTHER_TYPES)
        lines.extend(json.dumps(row, ensure_ascii=False, default=to_text) for row in one.rows.to_pylist())
    return lines


def to_text(value: object) -> str:
    """A value that JSON has no form for."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | time):
        return value.isoformat(timespec="milliseconds")
    assert isinstance(value, date | Decimal)
    return str(value)


def to_column(column: pa.Field) -> str:
    """A column as the documents write it."""
    return f"{column.name} {column.type}{'' if column.nullable else ' not null'}"


ALL = [example for page in PAGES for example in examples(page)]


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.place)
def test_example(example: Example) -> None:
    """The input gives the rows, the columns and the error that stand below it, and nothing else."""
    assert example.written, "an example without records"
    assert example.results, "an example without a result"
    found = run(example)
    if "columns" not in example.results:
        found.pop("columns", None)
    elif "rows" not in example.results:
        found.pop("rows", None)
    assert found == example.results


def test_examples_are_found() -> None:
    """The documents are read as they are meant: many examples, of every form."""
    assert len(ALL) > 80
    written = [one for example in ALL for one in example.written]
    assert {one.schema or one.form for one in written} >= CONVERTERS.keys()
