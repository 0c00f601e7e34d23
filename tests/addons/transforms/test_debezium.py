"""ExtractNewRecordState: columns give what records one by one give; and which settings it refuses.

What it gives is compared with Debezium's own class in integration/test_debezium.py.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquet_sink.addons.transforms.debezium.extract import ExtractNewRecordState
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoded import InferredColumns, Reading
from parquet_sink.convert.decoders import key_decoder_for
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.transform.chain import TransformChain
from parquet_sink.transform.protocol import WrongSettings
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.blocks import parts, without_columns
from tests.addons.transforms.fields.outcomes import all_of
from tests.thorough import examples

EVERYTHING = RecordParts(keys=True, headers=True)
FIELDS = ["op", "ts_ms", "source.ts_ms", "lsn:at", "table", "transaction.id", "id", "source", "none.x", "op:name"]


def made(keys: Mapping[str, str]) -> ExtractNewRecordState:
    """The transform. Raises WrongSettings."""
    report = Report()
    values = read(ExtractNewRecordState.keys, Resolved(keys, keys), report)
    assert report.problems == []
    return ExtractNewRecordState(values, "value")


@st.composite
def keys_of(draw: st.DrawFn) -> dict[str, str]:
    """Settings at random."""
    names = st.lists(st.sampled_from(FIELDS), max_size=3, unique=True).map(",".join)
    found = {
        "delete.tombstone.handling.mode": draw(
            st.sampled_from(["drop", "tombstone", "rewrite", "rewrite-with-tombstone"])
        ),
        "add.fields": draw(names),
        "add.headers": draw(names),
        "add.fields.prefix": draw(st.sampled_from(["__", "x_"])),
        "route.by.field": draw(st.sampled_from(["", "", "name", "id"])),
        "drop.fields.header.name": draw(st.sampled_from(["", "h"])),
        "drop.fields.from.key": draw(st.sampled_from(["true", "false"])),
    }
    return {name: text for name, text in found.items() if text}


def states(draw: st.DrawFn) -> st.SearchStrategy[Any]:
    """Rows of one table."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "id": st.integers(0, 9),
        "name": st.sampled_from(["a", " ", "topic", None]),
        "__deleted": st.just("x"),
        "__op": st.just("y"),
        "tags": st.lists(st.integers(0, 3), max_size=1),
        "deep": st.fixed_dictionaries({}, optional={"a": st.integers(0, 3)}),
    }
    names = draw(st.lists(st.sampled_from([*kinds, "id", "name"]), min_size=1, max_size=3, unique=True))
    return st.fixed_dictionaries({}, optional={name: kinds[name] for name in names})


@st.composite
def events(draw: st.DrawFn) -> DecodedRecords:
    """Change events and others, decoded as columns for the most part; with keys and headers."""
    row = st.none() | states(draw)
    source = st.fixed_dictionaries({"ts_ms": st.integers(0, 9)}, optional={"lsn": st.integers(0, 9) | st.none()})
    event = st.fixed_dictionaries(
        {"op": st.sampled_from("crudt"), "source": source},
        optional={
            "before": row,
            "after": row,
            "ts_ms": st.integers(0, 9),
            "transaction": st.none() | st.fixed_dictionaries({"id": st.sampled_from(["1", "2"])}),
            "lsn": draw(st.sampled_from([st.integers(0, 3), st.sampled_from(["t"])])),
        },
    )
    odd = st.sampled_from(
        [{"op": 5, "source": {}, "after": {}}, {"op": "c", "source": 1, "after": None}, {"ts_ms": 5}, {"id": 1}]
    )
    mongo = st.just({"op": "c", "source": {"ts_ms": 1}, "after": '{"_id": 1}'})
    trees = draw(st.lists(st.one_of(event, event, event, odd, mongo) if draw(st.booleans()) else event, min_size=2))
    count = draw(st.sampled_from([3, 70]))
    values = [None if at % 7 == 6 else json.dumps(trees[at % len(trees)]).encode() for at in range(count)]
    keys = [[b'{"id": 1, "name": "n"}', b"7", None][at % 3] for at in range(count)]
    lists = [b'["name", "id"]', b'["__op"]', b"text", b"[]"]
    headers = [[("h", lists[at % 4])] * (at % 3) for at in range(count)]
    batch = RecordBatch.of("t", 3, range(count), [1] * count, values, keys, headers)
    chain = TransformChain([], key_decoder_for(ConverterSettings("json")), SIMPLE_HEADER.open(), EVERYTHING)
    return chain.apply(batch, json_decoder.decoder().for_topic(Reading(any_tree=True), None))


def found_of(records: DecodedRecords) -> dict[int, object]:
    """All that is known of each record, its topic included; nulls of a row are as good as absent."""
    topics = records.topics_now().to_pylist()
    return {at: (one, topics[at]) for at, one in all_of(records).items()}


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
@given(keys_of(), events(), st.integers(0, 12))
def test_columns_are_what_trees_are(keys: dict[str, str], records: DecodedRecords, cut: int) -> None:
    """As columns, as trees, and however a predicate parts them."""
    try:
        one = made(keys)
    except WrongSettings:
        return
    found = found_of(one.apply(records))
    assert found_of(one.apply(without_columns(records))) == found
    first, second = (found_of(one.apply(part)) for part in parts(records, cut))
    assert first | second == found
    alone: dict[int, object] = {}
    for at in range(min(len(records.batch), 12)):
        alone |= found_of(one.apply(records.where(np.arange(len(records.batch)) == at)))
    assert alone == {at: one for at, one in found.items() if at < 12}


def test_events_stay_columns() -> None:
    """Rows and deletions of plain tables are not taken one by one, with added fields and with fields left out."""
    tree = {"op": "u", "source": {"ts_ms": 5}, "before": None, "after": {"id": 1, "name": "x"}, "transaction": None}
    gone = {**tree, "op": "d", "before": {"id": 1}, "after": None}
    values = [json.dumps(one).encode() for one in [tree, gone] * 50]
    batch = RecordBatch.of("t", 3, range(100), [1] * 100, values)
    records = TransformChain([]).apply(batch, json_decoder.decoder().for_topic(Reading(any_tree=True), None))
    mode = {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op,source.ts_ms,transaction.id"}
    found = made(mode).apply(records)
    assert [type(piece) for piece in found.values] == [InferredColumns, InferredColumns]
    assert sorted(position for piece in found.values for position in piece.positions.to_pylist()) == list(range(100))


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"add.fields": "a.b.c"}, "add.fields"),
        ({"add.fields": "op,,ts_ms"}, "add.fields"),
        ({"add.headers": "op:a:b"}, "add.headers"),
        ({"add.fields": "op,ts_ms:op"}, "add.fields"),
        ({"add.fields": "source.db,source.db"}, "add.fields"),
    ],
)
def test_a_wrong_list_of_fields(keys: dict[str, str], key: str) -> None:
    """Names that no event has, and two of one name, are refused by key, with what to write."""
    with pytest.raises(WrongSettings) as error:
        made(keys)
    assert list(error.value.reasons) == [key]
    assert "source." in error.value.reasons[key]
