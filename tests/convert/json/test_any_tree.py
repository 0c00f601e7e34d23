"""Where transforms follow, JSON without a schema need be no object, and `{}` is a record without fields."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, InferredColumns, Reading, Untyped
from parquet_sink.convert.json import decoder as json
from parquet_sink.convert.json.decoder import JsonTrees
from tests.messages import assert_says

VALUES = st.sampled_from(
    [
        b"{}",
        b" { } ",
        b"5",
        b'"x"',
        b"null",
        b" null",
        b"[1]",
        b"[]",
        b"true",
        b'{"a":{}}',
        b'{"a":1.5}',
        b'{"a":null}',
        b"{",
    ]
)


def by_position(found: Decoded) -> dict[int, object]:
    """Each value's tree, or why it has none."""
    out: dict[int, object] = dict(found.invalid)
    for piece in found.pieces:
        assert isinstance(piece, InferredColumns | Untyped)
        for row, at in enumerate(piece.positions.to_pylist()):
            assert at not in out
            out[at] = piece.trees[row] if isinstance(piece, Untyped) else piece.tree(row)
    return out


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 130), VALUES), max_size=8), st.booleans())
def test_reading_at_once_gives_what_each_is(odd: list[tuple[int, bytes]], discard_lists: bool) -> None:
    """However many are no objects, in the first block of a topic and in the next."""
    values = [b'{"a":%d,"b":"t"}' % at for at in range(130)]
    for at, value in odd:
        values.insert(at, value)
    array = pa.array(values, pa.binary())
    wanted = by_position(JsonTrees(anything=False, any_tree=True).decode(array))
    decoder = json.decoder().for_topic(Reading(any_tree=True, discard_lists=discard_lists), None)
    assert by_position(decoder.decode(array)) == wanted
    assert by_position(decoder.decode(array)) == wanted


def test_what_there_is_without_transforms_stays() -> None:
    """An empty object and what is not an object are invalid."""
    decoder = json.decoder().for_topic(Reading(), None)
    found = decoder.decode(pa.array([b"{}", b"5", b"null"], pa.binary()))
    assert found.pieces == ()
    assert_says(found.invalid[0], "empty JSON object")
    assert_says(found.invalid[1], "not a JSON object", "a number")
    assert found.invalid.keys() == {0, 1}
