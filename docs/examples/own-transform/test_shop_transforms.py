"""What the shop's transforms do, tried on records as the sink has them."""

import json

import pytest
from shop_transforms import FullName, Scale, Since

from parquet_sink.api import (
    ConverterSettings,
    RecordBatch,
    Report,
    Resolved,
    Run,
    Shaper,
    ShapeSettings,
    Step,
    TransformChain,
    WrongSettings,
    decoder_for,
    read,
)


def values(made, **texts):
    """Settings as a connector file gives them, behind `transforms.N.`."""
    return read(made.keys, Resolved(texts, texts), Report())


def rows(step, records, timestamps=None):
    """The rows of the files, and the reasons of the records that have none."""
    texts = [None if one is None else json.dumps(one).encode() for one in records]
    stamps = [0] * len(texts) if timestamps is None else timestamps
    batch = RecordBatch.of("orders", 0, range(len(texts)), stamps, texts)
    shape = ShapeSettings(embed_metadata=False)
    shaper = Shaper(shape, None, decoder_for(ConverterSettings()), TransformChain([step]))
    found, reasons = [], []
    for item in shaper.shape(batch):
        if isinstance(item, Run):
            found += item.rows.to_pylist()
        else:
            reasons.append(item.reason)
    return found, reasons


def test_full_name():
    """Names are joined; a record whose name is not text is invalid."""
    step = Step(FullName(values(FullName, fields="first,last"), "value"))
    found, reasons = rows(step, [{"first": "Ada", "last": "L"}, {"last": "B"}, None, {"first": 1}])
    assert [row["name"] for row in found] == ["Ada L", "B"]
    assert reasons == ["field first is not text"]


def test_full_name_settings():
    """The field that names become is none of theirs."""
    with pytest.raises(WrongSettings):
        FullName(values(FullName, fields="a,b", into="a"), "value")


def test_scale_gives_the_same_by_columns_and_one_by_one():
    """A thousand records, which are read as columns, give what each gives alone."""
    records = [{"id": n, "amount": None if n % 7 == 0 else n / 4} for n in range(1_000)]
    step = Step(Scale(values(Scale, field="amount", percent="119"), "value"))
    together, reasons = rows(step, records)
    assert reasons == []
    alone = [row for record in records[1:7] for row in rows(step, [record])[0]]
    assert together[1:7] == alone
    assert [row["amount"] for row in together[6:9]] == [6 / 4 * 1.19, None, 8 / 4 * 1.19]


def test_since():
    """A predicate chooses: other records stay as they are."""
    chosen = Since(values(Since, **{"from": "2024-01-01"}))
    step = Step(Scale(values(Scale, field="a", percent="200"), "value"), chosen)
    found, _ = rows(step, [{"a": 1.5}, {"a": 1.5}], [1_704_067_199_999, 1_704_067_200_000])
    assert found == [{"a": 1.5}, {"a": 3.0}]
