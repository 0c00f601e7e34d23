"""Notices are as docs/notice.schema.json says, and known again by their ids."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.parquet import FinishedFile
from parquet_sink.files.rotation import Reason
from parquet_sink.notify.notice import TYPE, Notice, notice_of
from tests.notify.files import FILE

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "notice.schema.json").read_text(encoding="utf-8"))


def of(file: FinishedFile, at_s: float = 1.5) -> Notice:
    """Of a connector that has a name of every kind of character."""
    return notice_of(file, connector="Bestände/1", table="T", target="http://target/", at_s=at_s)


def test_what_is_told() -> None:
    """All of the file, and CloudEvents' attributes."""
    made = of(FILE)
    assert json.loads(made.data) == {
        "connector": "Bestände/1",
        "topic": "orders",
        "partition": 3,
        "first_offset": 10,
        "last_offset": 19,
        "records": 9,
        "rows": 12,
        "size_bytes": 345,
        "sha256": "ab" * 32,
        "file": "f.parquet",
        "table": "T",
        "target": "http://target/",
        "reason": "schedule",
        "oldest_record_at": "1970-01-01T00:00:01.000Z",
        "accepted_at": "1970-01-01T00:00:01.500Z",
    }
    assert made.attributes == {
        "specversion": "1.0",
        "id": made.id,
        "source": "/connectors/Best%C3%A4nde%2F1",
        "type": TYPE,
        "subject": "orders/3/10",
        "time": "1970-01-01T00:00:01.500Z",
    }


@given(
    st.text(min_size=1),
    st.integers(0, 2**62),
    st.sampled_from(Reason),
    st.none() | st.integers(0, 4 * 10**12),
    st.none() | st.text(),
)
def test_it_is_as_the_schema_says(
    topic: str, offset: int, reason: Reason, oldest_ms: int | None, table: str | None
) -> None:
    """Whatever the file; and it crosses a disk unaltered. The schema names every field, and each is required."""
    file = replace(
        FILE, topic=topic, first_offset=offset, last_offset=offset, reason=reason, oldest_ms=oldest_ms, table=table
    )
    made = of(file)
    jsonschema.validate(json.loads(made.data), SCHEMA, format_checker=jsonschema.FormatChecker())
    assert set(SCHEMA["required"]) == set(SCHEMA["properties"]) == set(json.loads(made.data))
    assert Notice.from_json(made.to_json()) == made


def test_the_same_file_has_the_same_id() -> None:
    """Whenever it is accepted; another name, or other bytes, is another one."""
    assert of(FILE).id == of(replace(FILE, path="/y", reason=Reason.END_OF_RANGE), 99.0).id
    assert len({of(FILE).id, of(replace(FILE, name="g.parquet")).id, of(replace(FILE, digest="cd" * 32)).id}) == 3


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"attributes": 1, "data": ""}', "[" * 100_000])
def test_what_is_no_notice_is_refused(text: str) -> None:
    """A file that a full disk cut short, for one."""
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError, RecursionError)):
        Notice.from_json(text)
