"""Every example in docs/data-mapping.md gives what the document says."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from parquet_sink.config.settings import ShapeSettings
from parquet_sink.convert.json_exact import MAX_DEPTH
from parquet_sink.errors import InvalidRecord
from parquet_sink.kafka.block import Block
from parquet_sink.shape.kinds import MAX_COLUMNS, MAX_NAME
from parquet_sink.shape.shaper import Run, Shaper

DOCUMENT = (Path(__file__).parent.parent / "docs" / "data-mapping.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)[ ]?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHER_TYPES, NEW_FILE = "--- from here on: other types", "--- from here on: a new file"


@dataclass
class Example:
    """One example: what goes in and what must come out, each as the lines of its block."""

    line: int
    settings: list[str] = field(default_factory=list)
    blocks: dict[str, list[str]] = field(default_factory=dict)


def examples() -> Iterator[Example]:
    """The examples of the document; one begins at its settings, or at its input."""
    current: Example | None = None
    for match in FENCE.finditer(DOCUMENT):
        language, name, text = match.groups()
        begins = language == "properties" or (name == "input" and (current is None or "input" in current.blocks))
        if begins:
            if current is not None:
                yield current
            current = Example(DOCUMENT.count("\n", 0, match.start()) + 1)
        assert current is not None
        if language == "properties":
            current.settings = text.splitlines()
        else:
            current.blocks[name] = text.splitlines()
    if current is not None:
        yield current


def to_settings(lines: list[str]) -> ShapeSettings:
    """The shape settings of an example."""
    keys = dict(line.removeprefix("connect.ems.").split("=", 1) for line in lines)
    found = ShapeSettings(
        flatten=keys.pop("flattener.enable", "true") == "true",
        discard_collections=keys.pop("flattener.collections.discard", "false") == "true",
        embed_metadata=keys.pop("embed.kafka.metadata", "false") == "true",
        primary_keys=tuple(name.strip() for name in keys.pop("data.primary.key", "").split(",") if name),
        allow_null_primary_keys=keys.pop("allow.null.pk", "false") == "true",
    )
    assert not keys, keys
    return found


def shape(example: Example) -> tuple[list[Run], list[str]]:
    """The runs, and the error as the document writes it."""
    values = [line.encode() for line in example.blocks["input"]]
    block = Block.of("orders", 3, range(len(values)), [1_700_000_000_000] * len(values), values)
    runs: list[Run] = []
    try:
        runs.extend(Shaper(to_settings(example.settings)).shape(block))
    except InvalidRecord as error:
        return runs, [f"offset {error.offset}: {error.reason}"]
    return runs, []


def to_lines(runs: list[Run]) -> list[str]:
    """Rows as the document writes them."""
    lines = []
    for number, run in enumerate(runs):
        if number:
            lines.append(NEW_FILE if run.incompatible else OTHER_TYPES)
        lines.extend(json.dumps(row, ensure_ascii=False) for row in run.rows.to_pylist())
    return lines


def to_columns(schema: pa.Schema) -> str:
    """Columns as the document writes them."""
    return ", ".join(f"{column.name} {column.type}" for column in schema)


ALL = list(examples())


@pytest.mark.parametrize("example", ALL, ids=lambda example: f"line-{example.line}")
def test_example(example: Example) -> None:
    """The input gives the rows, the columns and the error that stand below it, and nothing else."""
    assert example.blocks.keys() - {"input"}, "an example without a result"
    runs, error = shape(example)
    assert error == example.blocks.get("error", [])
    if "columns" in example.blocks:
        assert [to_columns(runs[-1].rows.schema)] == example.blocks["columns"]
    if "rows" in example.blocks or "columns" not in example.blocks:
        assert to_lines(runs) == example.blocks.get("rows", [])


def test_examples_are_found() -> None:
    """The document is read as it is meant: many examples, none without input."""
    assert len(ALL) > 20
    assert all("input" in example.blocks for example in ALL)


def test_limits_are_those_of_the_program() -> None:
    """The table of limits names the numbers that the program has."""
    for limit in (MAX_DEPTH, MAX_COLUMNS, MAX_NAME):
        assert f"| {limit:,} |" in DOCUMENT
