"""Files and dead letters come out as they did: each format, transform, predicate and option, byte for byte."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink import plugins
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.transform.classes import find_predicate, find_transform
from tests.golden import files
from tests.golden.cases import cases
from tests.golden.files import Case, E, content, described, made

KEPT = json.loads(files.FILE.read_text(encoding="utf-8"))
CASES = {one.name: one for one in cases()}
GROUPS = ("From record to row", "Obfuscation", "Local Parquet files", "Flush: when a file is uploaded")
WITHOUT_CASE = {
    f"{E}obfuscation.sha512.randomsalt": "it is another text each time",
    f"{E}inmemfs.enable": "it says where local files are",
    f"{E}debug.keep.parquet.files": "it says how long local files are there",
    f"{E}rotate.schedule.interval.ms": "it says when a range is due",
    "timezone": "likewise",
}
OF_THE_REGISTRY = ("schema.registry.", "basic.auth.", "bearer.auth.", "http.", "max.", "apicurio.", "schema.id.")
PROPERTIES = [one.properties("/folder") for one in CASES.values()]
NAMES = {name for properties in PROPERTIES for name in properties}


@pytest.mark.parametrize("name", CASES)
def test_it_comes_out_as_it_did(name: str, tmp_path: Path) -> None:
    """After a change on purpose: python -m tests.golden."""
    found = json.loads(json.dumps(described(made(CASES[name], tmp_path))))
    kept = dict(KEPT[name])
    if KEPT["pyarrow"] != pa.__version__:  # another version writes other bytes of the same content
        del found["bytes"], kept["bytes"]
    assert found == kept


def test_each_case_is_kept() -> None:
    """The file has the cases of the table, and no others."""
    assert [*KEPT] == ["pyarrow", *CASES]


def test_each_converter_has_a_case() -> None:
    """Each class, and each setting that changes what is decoded."""
    used = {properties["value.converter"] for properties in PROPERTIES}
    assert {one.class_name for one in CONVERTERS if "value" in one.sides} <= used
    free = [one for one in SETTINGS if one.key.check is None or not one.key.check.rule.startswith("only ")]
    meant = [one.key.name for one in free if not (one.unused or one.refused or one.key.no_effect)]
    decoding = [name for name in meant if not name.startswith(OF_THE_REGISTRY) and "schema.id." not in name]
    assert len(decoding) > 12
    assert [name for name in decoding if f"value.converter.{name}" not in NAMES] == []


@pytest.mark.parametrize("kind", ["transforms", "predicates"])
def test_each_transform_and_predicate_has_a_case(kind: str) -> None:
    """Each class that is built in, with each of its options."""
    find: Callable[[str], Any] = find_predicate if kind == "predicates" else lambda name: find_transform(name)[0]
    used = set(steps(kind, find))
    group = plugins.PREDICATES if kind == "predicates" else plugins.TRANSFORMS
    built_in = {find(name) for name in plugins.BUILT_IN[group]}
    wanted = {(class_, "type") for class_ in built_in} | {(one, key.name) for one in built_in for key in one.keys}
    assert {(class_.__name__, option) for class_, option in wanted - used} == set()


def steps(kind: str, find: Callable[[str], Any]) -> Iterator[tuple[Any, str]]:
    """By class of what a case names, each option that the case gives."""
    for properties in PROPERTIES:
        for name in filter(None, properties.get(kind, "").split(",")):
            prefix = f"{kind}.{name}."
            for key in properties:
                if key.startswith(prefix):
                    yield find(properties[f"{prefix}type"]), key.removeprefix(prefix)


def test_each_option_of_rows_and_files_has_a_case() -> None:
    """Each key of these groups is in a case, with each of its choices, or has a reason."""
    keys = {key.name: key for key in find_class().keys if key.group in GROUPS and key.name not in WITHOUT_CASE}
    assert len(keys) > 20
    assert keys.keys() - NAMES == set()
    used = {(name, text.lower()) for properties in PROPERTIES for name, text in properties.items()}
    default = {(name, str(key.default).lower()) for name, key in keys.items()}
    choices = {(name, choice.lower()) for name, key in keys.items() for choice in key.choices}
    assert choices - used - default == set()


def rewritten(table: pa.Table) -> str:
    """The digest of what is in a file with these rows."""
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return content(out.getvalue().to_pybytes())


def put(table: pa.Table, name: str, array: pa.Array) -> pa.Table:
    """The table with another column in the place of that."""
    return table.set_column(table.schema.get_field_index(name), name, array)


def another_byte(table: pa.Table) -> pa.Table:
    """One letter of one text is another."""
    texts = table["note"].to_pylist()
    at = next(index for index, text in enumerate(texts) if text)
    texts[at] = texts[at][:-1] + chr(ord(texts[at][-1]) ^ 1)
    return put(table, "note", pa.array(texts))


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a byte": another_byte,
    "a type": lambda table: put(table, "part", table["part"].cast(pa.int64())),
    "order of columns": lambda table: table.select([*table.column_names[1:], table.column_names[0]]),
    "a name": lambda table: table.rename_columns(["Id", *table.column_names[1:]]),
    "a row less": lambda table: table.slice(1),
    "order of rows": lambda table: pa.concat_tables([table.slice(1), table.slice(0, 1)]),
    "no null": lambda table: table.cast(pa.schema([table.schema.field(0).with_nullable(False), *[*table.schema][1:]])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_small_change_of_a_file_is_found(change: str, tmp_path: Path) -> None:
    """Another byte, type, name, order or row is another digest; the same rows are the same one."""
    (_, data), *_ = made(CASES["format avro"], tmp_path).files
    table = pq.read_table(pa.BufferReader(data))
    assert rewritten(CHANGES[change](table)) != rewritten(table)
    assert rewritten(pq.read_table(pa.BufferReader(data))) == rewritten(table)


def test_a_small_change_of_a_case_is_found(tmp_path: Path) -> None:
    """One byte of a dead letter, or of a file, and another reason, is another line."""
    case = Case("", {}, (replace(CASES["format json"].streams[0], count=60),))
    whole = made(case, tmp_path)
    line = described(whole)
    key, value, headers = whole.letters[0]
    letters = [
        (key, b"x", headers),
        (b"x", value, headers),
        (key, value, [*headers, ("x", b"")]),
        (key, value, [(name, b"x" if name == files.REASON else text) for name, text in headers]),
    ]
    first = described(replace(whole, letters=[(key, value, headers)]))
    assert all(described(replace(whole, letters=[one])) != first for one in letters)
    name, data = whole.files[0]
    assert described(replace(whole, files=[(f"x{name}", data)])) != line
    assert described(replace(whole, files=[*whole.files, *whole.files])) != line
