"""What a topic has taught: types, their union, and the outline that the fast path reads with."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.shape.outline import LEAF, MAX_FIELDS, Form, Outline
from parquet_sink.shape.schema.learned import Known, merge
from parquet_sink.shape.schema.value_types import EmptyMap, ValueTypes, from_fields, to_fields, unite

NOTHING: frozenset[str] = frozenset()
kinds_strategy = st.recursive(
    st.sampled_from([int, float, bool, str, EmptyMap]),
    lambda below: st.dictionaries(st.text(min_size=1, max_size=3), below, min_size=1, max_size=4),
    max_leaves=8,
)


def known(value_types: ValueTypes, *trees: dict[str, object], flat: bool = True) -> pa.Schema:
    """A schema as a shaper would have learned it."""
    one = Known(Form(flat))
    one.change(value_types, afresh=False)
    for tree in trees:
        one.learn(tree)
    schema = one.to_schema()
    assert schema is not None
    return schema


@given(st.dictionaries(st.text(min_size=1, max_size=3), kinds_strategy, max_size=5))
def test_kinds_and_fields_are_inverse(value_types: ValueTypes) -> None:
    """ValueTypes survive the way through Arrow types."""
    assert from_fields(to_fields(value_types)) == value_types


def test_union_keeps_order_and_widens() -> None:
    """The first one's columns lead; an integer and a fraction column become one of fractions, whichever is first."""
    assert list(unite({"b": int, "a": str}, {"c": bool, "a": str, "b": float}).items()) == [
        ("b", float),
        ("a", str),
        ("c", bool),
    ]
    assert unite({"b": float}, {"b": int}) == {"b": float}
    assert unite({"o": {"x": int}}, {"o": {"y": str}}) == {"o": {"x": int, "y": str}}


def test_union_of_incompatible_kinds_is_the_second() -> None:
    """Text and a number cannot be united: what was learned last counts."""
    assert unite({"a": str, "b": int}, {"a": int}) == {"a": int}


def test_merge_of_schemas() -> None:
    """What two Spark tasks learned is known to the next one, columns and outline."""
    first = known({"a": int, "o_x": int}, {"a": 1, "o": {"x": 1}, "n": None})
    second = known({"a": float, "b": str, "n": bool}, {"a": 1.5, "b": "x", "n": True})
    both = Known.of(merge(first, second), Form(flat=True), NOTHING)
    assert both.value_types == {"a": float, "o_x": int, "b": str, "n": bool}
    expected = {"a": pa.float64(), "b": pa.string(), "n": pa.bool_(), "o": pa.struct([("x", pa.int64())])}
    assert {field.name: field.type for field in both.reading} == expected


@pytest.mark.parametrize("flat", [True, False])
def test_merge_with_nothing_or_with_other_flattening(flat: bool) -> None:
    """Nothing changes nothing; a schema learned otherwise is replaced by the second."""
    one, other = known({"a": int}, {"a": 1}, flat=flat), known({"b": int}, {"b": 1}, flat=not flat)
    assert merge(None, one) is one
    assert merge(one, None) is one
    assert merge(None, None) is None
    assert merge(one, other) is other


def test_one_column_is_read_from_one_path() -> None:
    """Of two fields that become one column only the first is read fast, whatever the order of learning or loading."""
    nested, plain = {"a": {"b": 1}}, {"a_b": 2}
    for trees in ([nested, plain], [plain, nested]):
        one = Known.of(known({"a_b": int}, *trees), Form(flat=True), NOTHING)
        leaves = [field for field in one.reading if not pa.types.is_struct(field.type) or field.type.num_fields]
        assert len(leaves) == 1


def test_merge_never_reads_one_column_twice() -> None:
    """Two tasks that saw a column under different paths: the merged outline has one of them."""
    both = merge(known({"a_b": int}, {"a": {"b": 1}}), known({"a_b": int}, {"a_b": 1}))
    assert Known.of(both, Form(flat=True), NOTHING).reading == pa.schema([("a_b", pa.int64()), ("a", pa.struct([]))])


def test_outline_grows_from_null_to_something() -> None:
    """A field that was always null is read as what it then is."""
    outline = Outline(Form(flat=True))
    assert outline.learn({"a": None})
    assert outline.to_schema({}) == pa.schema([("a", pa.null())])
    assert outline.learn({"a": 1})
    assert not outline.learn({"a": 2})
    assert outline.to_schema({"a": int}) == pa.schema([("a", pa.int64())])


def test_lists_are_read_as_text() -> None:
    """That there are lists is remembered; their columns are text, unless lists are discarded."""
    for discard, fields in ((False, {"l": LEAF}), (True, {})):
        outline = Outline(Form(flat=True, discard=discard))
        assert outline.learn({"l": [1]})
        assert (outline.lists, outline.fields) == ({"l": {}}, fields)
        assert not outline.learn({"l": [2]})
    assert known({"l": str}, {"l": [1]}) == known({"l": str}, {"l": [2]})
    both = merge(known({"l": str}, {"l": [1]}), known({"m_n": str}, {"m": {"n": []}}))
    assert Known.of(both, Form(flat=True), NOTHING).outline.lists == {"l": {}, "m": {"n": {}}}
    remembered = Known.of(known({"l": str}, {"l": [1]}), Form(flat=True), NOTHING)
    assert remembered.outline.lists == {"l": {}}


def test_outline_is_limited() -> None:
    """Fields beyond the limit, or with very long names, are not remembered; they take the exact path."""
    outline = Outline(Form(flat=True))
    outline.learn({f"n{number}": None for number in range(MAX_FIELDS + 10)})
    assert len(outline.fields) == MAX_FIELDS
    assert not Outline(Form(flat=True)).learn({"n" * 5000: None})
