"""No key changes unnoticed: its name, type, default, limits, group, importance, documentation, and what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from parquet_sink.addons.transforms.whole.record_headers import DropHeaders
from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.key import Check, Key, Type
from tests.golden import keys

TEXT = keys.FILE.read_text(encoding="utf-8")


def test_every_key_is_what_it_was() -> None:
    """After a change on purpose: python -m tests.golden."""
    assert keys.differences(keys.kept(TEXT), keys.tables()) == []


def test_the_file_holds_all_tables() -> None:
    """What is written of all tables is read back as the same, and has all keys of the largest."""
    now = keys.tables()
    assert keys.kept(keys.written(now)) == now
    assert len(keys.kept(TEXT)["EmsSink"]) > 350
    assert len(keys.kept(TEXT)["worker file"]) > 300


def changed(**fields: Any) -> Callable[[Key], Key]:
    """The first key with other values of these fields."""
    return lambda key: replace(key, **fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (changed(name="other"), ["headers went", "other came"]),
        (changed(doc="Another."), ["headers: doc was"]),
        (changed(group="Another"), ["headers: group was"]),
        (changed(type=Type.STRING), ["headers: type was", "headers: refused was ['', ','], is ['']"]),
        (changed(required=False), ["headers: required was", "headers: importance was", "headers: refused was"]),
        (changed(check=PRINTABLE), ["headers: check was", "headers: refused was"]),
        (changed(check=Check("at least one name", lambda value: "No.")), ["headers: refused was"]),
    ],
)
def test_a_changed_field_is_found(change: Callable[[Key], Key], told: list[str]) -> None:
    """Each change of one key is told with its table, the key and the field."""
    title = "transform DropHeaders"
    lines = keys.differences(
        {title: keys.table(DropHeaders.keys)}, {title: keys.table([change(key) for key in DropHeaders.keys])}
    )
    assert len(lines) == len(told)
    assert all(any(line.startswith(f"{title}: {one}") for line in lines) for one in told), lines
