"""A class of a user's that leaves in a record what none may hold is named, with the record and the field."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from math import isnan

import pyarrow as pa
import pytest

from parquet_sink.addons.commands.trial import trial
from parquet_sink.config.values import Values
from parquet_sink.convert.custom import OneByOne
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.wrong_values import MAY_HOLD
from parquet_sink.errors import ConnectorError, ConverterFailed, TransformFailed
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.run import Run
from parquet_sink.task.record_steps import StopAtRejected, steps_for
from parquet_sink.transform.fields.base import FieldTransform, TypedChange
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin
from tests.connectors.ems.connector_files import E, settings_of
from tests.messages import assert_says, saying

MODULE = __name__
LEFT: list[object] = [None]
"""What `Leave` puts into the field `amount`."""


class Leave(FieldTransform):
    """Leaves a value in records with an `id` of 2."""

    keys = ()

    def __init__(self, values: Values, side: Side) -> None:
        super().__init__(side)

    def tree(self, tree: object, origin: Origin) -> object:
        assert isinstance(tree, dict)
        return {**tree, "amount": LEFT[0]} if tree["id"] == 2 else tree

    def typed(self, arrow: pa.DataType) -> TypedChange:
        raise RecordFault("it takes no records with a schema")


class Whole(Leave):
    """Leaves a value in place of the record."""

    def tree(self, tree: object, origin: Origin) -> object:
        return LEFT[0]


class Stumbles(Leave):
    """Cannot take what `Leave` leaves."""

    def tree(self, tree: object, origin: Origin) -> object:
        assert isinstance(tree, dict)
        return {**tree, "more": 1 + tree.get("amount", 0)}


class Read(OneByOne):
    """A converter that leaves a value."""

    keys = ()

    def __init__(self, values: Values, side: str) -> None:
        """It has no settings."""

    def record(self, value: bytes) -> Tree | None:
        return {"id": 1, "amount": LEFT[0]}


SHAPES: list[Mapping[str, str]] = [
    {},
    {f"{E}flattener.enable": "true"},
    {
        f"{E}flattener.enable": "true",
        f"{E}flattener.jsonblob.chunks": "2",
        f"{E}data.fallback.varchar.length": "900",
    },
]
LEAVE = {"transforms": "anon", "transforms.anon.type": f"{MODULE}.Leave$Value"}
RECORDS = [b'{"id": 1, "name": "x"}', b'{"id": 2, "amount": 2.5}']


def shaped(changes: Mapping[str, str], left: object) -> list[dict[str, object]]:
    """The rows of two records at offsets 7 and 8, the second of which gets this value; raises what a task would."""
    LEFT[0] = left
    settings = settings_of({f"{E}embed.kafka.metadata": "false", **changes})
    builder = steps_for(settings, StopAtRejected()).shaper(settings.shape)
    items = list(builder.shape(RecordBatch.of("orders", 3, [7, 8], [5, 5], RECORDS)))
    return [row for one in items if isinstance(one, Run) for row in one.rows.to_pylist()]


WRONG: list[tuple[object, str, tuple[str, ...]]] = [
    (Decimal("1.5"), "amount", ("a Decimal",)),
    ({1, 2}, "amount", ("a set",)),
    (object(), "amount", ("an object",)),
    (2**100, "amount", ("whole number", "more than 64 bits")),
    (date(2026, 1, 1), "amount", ("a date", "Arrow scalar")),
    ((1, 2), "amount", ("a tuple",)),
    ([1, {"in": [Decimal(1)]}], "amount[1].in[0]", ("a Decimal",)),
    ([2**100], "amount[0]", ("whole number", "more than 64 bits")),
    ({"in": {3, 4}}, "amount.in", ("a set",)),
    ([{1: 2}], "amount[0]", ("an int as a name",)),
    (["\ud800"], "amount[0]", ("no valid Unicode",)),
    (pa.scalar(1, pa.int8()), "amount", ("Arrow scalar", "int8")),
]


@pytest.mark.parametrize("shape", SHAPES, ids=["nested", "flat", "chunks"])
@pytest.mark.parametrize(("left", "field", "said"), WRONG, ids=[f"{' '.join(said)} in {at}" for _, at, said in WRONG])
def test_a_transform_that_leaves_what_no_record_holds_is_named(
    shape: Mapping[str, str], left: object, field: str, said: tuple[str, ...]
) -> None:
    """With its key, its class, the topic-partition and the offset; it is a fault of the class, not of the record."""
    if shape.get(f"{E}flattener.jsonblob.chunks") and left in ((1, 2), date(2026, 1, 1)):
        pytest.skip("JSON text has a form for it")
    with pytest.raises(TransformFailed) as failed:
        shaped({**LEAVE, **shape}, left)
    assert type(failed.value) is TransformFailed
    assert failed.value.topic_partition == ("orders", 3)
    assert_says(failed.value, "topic orders, topic-partition 3, offset 8:", f"transforms.anon ({MODULE}.Leave$Value)")
    assert_says(failed.value, *said, f"field {field};", MAY_HOLD)


@pytest.mark.parametrize(
    ("chain", "named"),
    [("anon,other", "anon"), ("other,anon", "anon"), ("anon,stumbles", "anon")],
)
def test_the_first_that_left_it_is_named_in_a_chain(chain: str, named: str) -> None:
    """Whatever stands before or behind it, also where a later class fails at the value."""
    types = {
        "transforms.anon.type": f"{MODULE}.Leave$Value",
        "transforms.other.type": "ReplaceField",
        "transforms.other.renames": "amount:total,id:id" if chain == "anon,other" else "no:other",
        "transforms.stumbles.type": f"{MODULE}.Stumbles",
    }
    given = {key: value for key, value in types.items() if key.split(".")[1] in chain.split(",")}
    with pytest.raises(TransformFailed, match=saying("offset 8:", f"transforms.{named} ", "a set", "field amount;")):
        shaped({"transforms": chain, **given}, {1})


def test_a_value_in_place_of_the_record() -> None:
    """Is named, too."""
    with pytest.raises(TransformFailed, match=saying("offset 7:", "transforms.anon ", "a Decimal", "whole value;")):
        shaped({**LEAVE, "transforms.anon.type": f"{MODULE}.Whole"}, Decimal(1))


def test_numbers_that_are_none_stay() -> None:
    """NaN is a fraction, which a column of doubles holds."""
    assert isnan(shaped(LEAVE, float("nan"))[1]["amount"])  # type: ignore[arg-type]


def test_another_failure_of_a_later_class_is_its_own() -> None:
    """Where no value is wrong, the class that failed is named."""
    with pytest.raises(TransformFailed, match=saying("transforms.s ", "failed with TypeError")):
        shaped(
            {**LEAVE, "transforms": "anon,s", "transforms.s.type": f"{MODULE}.Stumbles"},
            "text",
        )


def test_a_converter_that_leaves_what_no_record_holds_is_named() -> None:
    """By its key and its class, with the offset."""
    with pytest.raises(ConverterFailed) as failed:
        shaped({"value.converter": f"{MODULE}.Read", "value.converter.schemas.enable": ""}, Decimal(1))
    assert_says(failed.value, "topic orders, topic-partition 3, offset 7:", f"value.converter ({MODULE}.Read)")
    assert_says(failed.value, "a Decimal", "field amount;")


def test_a_trial_says_the_same() -> None:
    """`try` and `test` end with the error that a connector would have."""
    LEFT[0] = Decimal(1)
    settings = settings_of({f"{E}embed.kafka.metadata": "false", **LEAVE})
    record = RecordBatch.of("orders", 3, [7], [5], [b'{"id": 2}'])
    with pytest.raises(ConnectorError, match=saying("offset 7:", "transforms.anon ", "a Decimal", "field amount;")):
        trial(record, steps_for(settings, StopAtRejected()), settings.shape)
