"""Rows of records that transforms of fields have changed: as columns and as trees they are the same."""

import json
from typing import Any

import pytest

from parquet_sink.addons.transforms.fields.cast import Cast
from parquet_sink.addons.transforms.fields.insert_field import InsertField
from parquet_sink.addons.transforms.fields.mask_field import MaskField
from parquet_sink.addons.transforms.fields.replace_field import ReplaceField
from parquet_sink.addons.transforms.fields.timestamp_converter import TimestampConverter
from parquet_sink.convert.decoded import InferredColumns
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.fields.base import FieldTransform
from tests.addons.transforms.fields.made import made
from tests.addons.transforms.fields.outcomes import exact_form
from tests.transform.doubles import Identity

TIMES: dict[str, str] = {"field": "at", "target.type": "Timestamp", "format": "yyyy-MM-dd"}
CHAIN: list[tuple[Any, dict[str, str]]] = [
    (TimestampConverter, TIMES),
    (Cast, {"spec": "quantity:string,amount:float32"}),
    (MaskField, {"fields": "customer", "replacement": "***"}),
    (InsertField, {"offset.field": "offset", "topic.field": "topic"}),
    (ReplaceField, {"exclude": "note", "renames": "order_id:id"}),
]


def values(count: int) -> list[bytes]:
    """Orders, some of them with a list, an empty object, no date, or no date that can be read."""
    odd: list[dict[str, Any]] = [{"at": None}, {"tags": ["a", "b"]}, {"at": "yesterday"}, {"more": {}}, {"amount": 5}]
    return [
        json.dumps(
            {
                "order_id": at,
                "customer": f"c{at}",
                "amount": at + 0.5,
                "quantity": at % 7,
                "at": f"2024-02-{at % 40:02d}",
                "note": "x",
                "tags": "none",
                **(odd[at // 37 % len(odd)] if at % 37 == 5 else {}),
            }
        ).encode()
        for at in range(count)
    ]


def shaped(transforms: list[FieldTransform], cut: int, settings: ShapeSettings) -> tuple[list[Any], list[Any]]:
    """All rows in order, and all that is rejected."""
    shaper = RowBuilder(settings, transforms=TransformChain([Step(one) for one in transforms]))
    rows: list[Any] = []
    rejected: list[Any] = []
    every = values(600)
    for at in range(0, len(every), cut):
        part = every[at : at + cut]
        for found in shaper.shape(RecordBatch.of("t", 0, range(at, at + len(part)), [7] * len(part), part)):
            if isinstance(found, Run):
                rows += found.rows.to_pylist()
            else:
                assert isinstance(found, Rejected)
                rejected.append((found.offset, found.stage, found.reason))
    return [{name: value for name, value in row.items() if value is not None} for row in rows], rejected


OBFUSCATED = ShapeSettings(obfuscation=ObfuscationSettings(("customer", "quantity")), flatten=False)


@pytest.mark.parametrize("cut", [600, 130, 33])
@pytest.mark.parametrize("settings", [ShapeSettings(), OBFUSCATED, ShapeSettings(lowercase=True)])
def test_rows_do_not_depend_on_columns_or_cuts(cut: int, settings: ShapeSettings) -> None:
    """A chain of transforms gives the same rows by its exact forms, and however records are cut into batches."""
    expected = shaped([exact_form(made(kind, keys)) for kind, keys in CHAIN], 600, settings)
    assert shaped([made(kind, keys) for kind, keys in CHAIN], cut, settings) == expected
    rows, rejected = expected
    assert len(rows) + len(rejected) == 600
    assert {offset % 37 for offset, _, _ in rejected} == {5}
    assert sum("at" in row for row in rows) > 500


def test_columns_stay_columns() -> None:
    """Only the records that need it are taken one by one; all others are rows of columns to the end."""
    seen = Identity()
    shaper = RowBuilder(
        ShapeSettings(), transforms=TransformChain([*(Step(made(kind, keys)) for kind, keys in CHAIN), Step(seen)])
    )
    every = values(10_000)
    for _ in range(2):
        list(shaper.shape(RecordBatch.of("t", 0, range(len(every)), [7] * len(every), every)))
    pieces = seen.seen[-1].values
    as_columns = sum(len(piece.positions) for piece in pieces if isinstance(piece, InferredColumns))
    assert as_columns > 0.97 * len(every)
