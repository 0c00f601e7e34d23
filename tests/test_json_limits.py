"""JSON of others may be nested more deeply than parsers follow, or than is written again: nobody may stumble over that.

Python's `json` raises RecursionError, which is no ValueError; orjson writes 254 levels and reads 1,024, and raises a
TypeError for what it does not write.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import parquet_sink
from parquet_sink.addons.sources.offsets import connect_form, file
from parquet_sink.errors import StorageFailed
from parquet_sink.files.lock import _read_holder
from parquet_sink.kafka.group.committed import Committed
from parquet_sink.parked.files import METADATA_KEY, place_of

PACKAGE: Final = Path(parquet_sink.__file__).parent
DEEP: Final = b'{"a":' * 100_000
BOUNDED: Final[Mapping[str, str]] = {
    "convert/json/profile.py": "what it learned, of a bounded depth",
    "convert/json/lists.py": "a list in a record whose parsing and writing catches the error",
    "rows/json_text.py": "names and text alone",
    "rows/schema/topic_columns.py": "settings alone",
    "convert/json/exact.py": "a tree of `parse` or `parse_any`, whose depth is bounded",
    "convert/typed_json/exact.py": "a value whose depth is looked at before",
    "convert/json/envelope.py": "a list of `parse`, whose depth is bounded",
    "addons/devkit/demo/orders.py": "its own records",
    "addons/devkit/target/readout.py": "rows of a table",
}
"""Where `orjson.dumps` stands outside of a `try`, and why that does."""


def calls(tree: ast.AST, name: str) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """Calls of a function, each with what is caught around it."""

    def look(node: ast.AST, caught: frozenset[str]) -> Iterator[tuple[ast.Call, frozenset[str]]]:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node, caught
        if not isinstance(node, ast.Try):
            for child in ast.iter_child_nodes(node):
                yield from look(child, caught)
            return
        here = caught.union(*(_names(one) for one in node.handlers))
        for statement in node.body:
            yield from look(statement, here)
        for statement in (*node.handlers, *node.orelse, *node.finalbody):
            yield from look(statement, caught)

    return look(tree, frozenset())


def _names(handler: ast.ExceptHandler) -> set[str]:
    held = handler.type
    return set() if held is None else {ast.unparse(one) for one in getattr(held, "elts", [held])}


def everywhere(name: str) -> Iterator[tuple[str, int, frozenset[str]]]:
    """Path, line, and what is caught."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for call, caught in calls(ast.parse(text if name in text else ""), name):
            yield str(path.relative_to(PACKAGE)), call.lineno, caught


def test_who_expects_bad_json_expects_deep_json() -> None:
    """Where a ValueError of `json.loads` is caught, RecursionError is, too."""
    found = list(everywhere("json.loads"))
    assert len(found) > 20
    expected = [(path, line) for path, line, caught in found if caught & {"ValueError", "json.JSONDecodeError"}]
    assert expected
    careless = [
        (path, line)
        for path, line, caught in found
        if caught & {"ValueError", "json.JSONDecodeError"} and "RecursionError" not in caught
    ]
    assert careless == []


def test_what_is_written_may_be_too_deep() -> None:
    """`orjson.dumps` stands where its error is caught, or what it writes is bounded, and the list says by what."""
    found = list(everywhere("orjson.dumps"))
    assert len(found) > 5
    bare = {path for path, _, caught in found if not caught & {"TypeError", "orjson.JSONEncodeError"}}
    assert bare == set(BOUNDED)


@pytest.mark.parametrize("data", [DEEP, DEEP + b"1" + b"}" * 100_000, b"9" * 5_000])
def test_json_of_others_is_nobodys(data: bytes, tmp_path: Path) -> None:
    """A key, a place, metadata and a lock that nest without an end, or hold a number without one, are of others."""
    assert connect_form.parsed_key(data) is None
    assert connect_form.parsed_key(b'["a",{"b":%s}]' % data) is None
    assert connect_form.parsed_value(data) is None
    assert connect_form.parsed_value(b'{"position":%s}' % data) is None
    assert Committed(1, data.decode()).topic_id == ""
    assert Committed(1, data.decode()).plan is None
    assert place_of({METADATA_KEY: data}) is None
    path = tmp_path / "held"
    path.write_bytes(data)
    with path.open("rb") as held:
        assert _read_holder(held.fileno()) == "process unknown"
    with pytest.raises(StorageFailed):
        file._parsed(data, "path")
