"""Figures for limits that the documents quote are those of the program."""

import re
from pathlib import Path

import pytest

from parquet_sink.addons.devkit.target import discard, faults, readout, server
from parquet_sink.addons.formats.avro import schema as avro
from parquet_sink.addons.formats.json_schema import mapper as json_schema
from parquet_sink.addons.formats.protobuf import compile as protoc
from parquet_sink.addons.formats.protobuf import plan as protobuf
from parquet_sink.convert.decoded import MAX_DEPTH, MAX_PRECISION
from parquet_sink.convert.registry import client as references
from parquet_sink.convert.registry import client as registry_client
from parquet_sink.convert.registry import http, registered
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.typed_json import types as typed_json
from parquet_sink.files import accumulator
from parquet_sink.net import redaction
from parquet_sink.rows.column_builder import LONGEST_TEXT
from parquet_sink.rows.schema.topic_columns import MAX_COLUMNS, MAX_NAME
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.targets import retry
from parquet_sink.targets.push import target as push_target
from parquet_sink.worker.loop import restarts

DOCS = Path(__file__).parents[2] / "docs"
_MI = 1024**2

LIMITS = {
    "converters.md": {
        "levels of objects, lists and maps in a value, and of types in a schema": f"{MAX_DEPTH}",
        "fields of a schema for JSON, columns of an Avro schema": f"{typed_json.MAX_FIELDS:,}",
        "bytes of all defaults of a schema for JSON": f"{typed_json.MAX_DEFAULTS:,}",
        "fields of a Protobuf message with all below it": f"{protobuf.MAX_FIELDS:,}",
        "digits of a decimal": f"{MAX_PRECISION}",
        "bytes in a symbol of an Avro enum": f"{avro.MAX_SYMBOL_BYTES}",
        "characters of defaults and enum names of a Protobuf message together": f"{protobuf.MAX_CHARACTERS:,}",
        "schemas that a JSON Schema refers to": f"{json_schema.MOST_VISITS:,}",
        "compiling a Protobuf schema": f"{protoc.COMPILE_SECONDS} s",
    },
    "data-mapping.md": {
        "levels of records, lists and maps, the record being the first": f"{MAX_DEPTH}",
        "columns of one record": f"{MAX_COLUMNS:,}",
        "characters in the name of a column": f"{MAX_NAME:,}",
        "bytes of one record's JSON text": f"{LONGEST_TEXT:,}, estimated from the most that its content may need",
    },
}

_REGISTRY = RegistrySettings(urls=("http://registry",))
_REFERRED = references.MOST_CHARACTERS // _MI
SENTENCES = [
    ("data-mapping/columns.md", f"bring the topic to more than {MAX_COLUMNS:,} columns"),
    (
        "schema-registry.md",
        f"more than {references.MOST_REFERENCES:,}, deeper than {references.DEEPEST} or larger than {_REFERRED} Mi",
    ),
    ("schema-registry.md", f"an answer of more than {http.MOST_ANSWER_BYTES // _MI} MiB"),
    ("schema-registry.md", f"| {http.MOST_ANSWER_BYTES // _MI} MiB, not compressed |"),
    ("schema-registry.md", f"asked for again after {registered.ASK_AGAIN_S:.0f} s at the earliest"),
    (
        "schema-registry.md",
        f"growing pauses of {registry_client.FIRST_PAUSE_S:.0f} s to {registry_client.LONGEST_PAUSE_S:.0f} s",
    ),
    (
        "schema-registry.md",
        f"{_REGISTRY.timeout_ms // 1000} s by default; {http.CONNECT_S:.0f} s of it for the connection",
    ),
    (
        "schema-registry.md",
        f"| {_REGISTRY.cache_size:,} by default, and {registry_client.MOST_KEPT_CHARACTERS // _MI} Mi characters",
    ),
    (
        "operations.md",
        f"up to `connect.ems.restart.max` ({RestartSettings().most}) times in a row without progress",
    ),
    ("operations.md", f"count together within {restarts.WINDOW_S / 60:.0f} minutes"),
    ("upload.md", f"up to {accumulator.GROUP_MEMORY_BYTES // _MI} MiB of rows in memory"),
    ("upload.md", f"in pieces of {push_target.PIECE_BYTES // 1024} KiB"),
    ("upload.md", f"quotes at most {redaction.EXCERPT_BYTES // 1024} KiB of the answer"),
    ("upload.md", f"At most {push_target.MOST_ANSWER_BYTES // 1024} KiB of an answer are read"),
    ("upload.md", f"each further one twice as long, at most {retry.LONGEST_WAIT_SECONDS / 60:.0f} minutes"),
    ("target.md", f"requests in progress have {server.GRACE_S} seconds"),
    ("target.md", f"`limit` is at most {readout.MAX_ROWS:,}, `timeout_s` at most {readout.MAX_SYNC_S:.0f}"),
    ("target.md", f"newest {discard.MAX_REMEMBERED:,} files"),
    ("target.md", f"up to {faults.MAX_LATENCY_S:.0f} s"),
]


def limits(page: str) -> dict[str, str]:
    """What stands in the table of limits of a page."""
    (table,) = re.findall(r"^\| What \| Limit \|\n\|---\|---\|\n((?:\|.*\n)+)", read(page), re.MULTILINE)
    rows = (line.strip("|").split("|") for line in table.splitlines())
    return {what.strip(): limit.strip() for what, limit in rows}


def read(page: str) -> str:
    """The text of a page, by its name alone."""
    (path,) = DOCS.rglob(page)
    return path.read_text(encoding="utf-8") + "\n"


@pytest.mark.parametrize("page", LIMITS)
def test_tables_of_limits_have_the_figures_of_the_program(page: str) -> None:
    """Row by row: a figure that another row happens to have counts for nothing, and no row is without a check."""
    assert limits(page) == LIMITS[page]


def test_one_limit_for_many_formats_is_one() -> None:
    """Where a document has one figure for several formats, they have it in common."""
    assert protobuf.MAX_DEPTH == MAX_DEPTH
    assert avro.MAX_LEAVES == typed_json.MAX_FIELDS


@pytest.mark.parametrize(("page", "sentence"), SENTENCES)
def test_sentences_have_the_figures_of_the_program(page: str, sentence: str) -> None:
    """A limit that is told in passing is the program's, too."""
    assert sentence in " ".join(read(page).split())
