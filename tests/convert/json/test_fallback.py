"""As many values as can be read at once: what keeps them from it is left out, and little else."""

from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.json import fallback, fast
from parquet_sink.convert.json.fallback import PartialRead, objects, read_most

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])
GOOD = b'{"n":1,"t":"x"}'
NO_OBJECTS = (b"", b"{", b"7", b'"t"', b"[1]", b'{"n":1', b"\xff", b'{"t":"\xff"}')
MISFITS = (
    b'{"n":"1"}',
    b'{"n":1,}',
    b'{"n":{}}',
    b'{"n" 1}',
    b'{"t":"\n"}',
    b'{"n":2.5}',
    b'{"n":1}{"n":2}',
    b'{"n":1,"n":1}',
    b'{"\\u006e":true}',
    b'{"t":1e999}',
    b'{"n":9223372036854775808}',
)
BY_TEXT = (b'{"n":"1"}', b'{"n":{}}', b'{"n":2.5}', b'{"n":1,"n":1}', b'{"n":9223372036854775808}')


def places_of(found: PartialRead | None, count: int) -> list[int]:
    """Where the values stood that were left out."""
    assert found is not None
    return sorted(set(range(count)) - set(found.places.tolist()))


def test_what_is_no_object_is_seen_without_a_try() -> None:
    """Nor is what is not UTF-8; blanks around an object do not matter."""
    assert objects(pa.array([GOOD, *NO_OBJECTS, b' {"n":1}\n'], pa.binary())).tolist() == [True, *[False] * 8, True]
    assert objects(pa.array([GOOD] * 3, pa.binary())).all()


@pytest.mark.parametrize("bad", [*MISFITS, *NO_OBJECTS])
@pytest.mark.parametrize("places", [(0,), (2_999,), (0, 1, 2), (5, 1_023, 1_024, 2_047, 2_999)])
def test_a_misfit_is_left_out_wherever_it_is(bad: bytes, places: tuple[int, ...]) -> None:
    """At the ends of what is tried at once, and one behind the other; the next block is told what to look for."""
    values = pa.array([bad if at in places else GOOD for at in range(3_000)], pa.binary())
    found = read_most(values, SCHEMA, "ignore", 100)
    assert places_of(found, 3_000) == list(places)
    assert found is not None
    assert places_of(read_most(values, SCHEMA, "ignore", 100, found.faults), 3_000) == list(places)


@pytest.mark.parametrize("bad", BY_TEXT)
def test_those_that_look_alike_are_left_out_together(bad: bytes) -> None:
    """Two tries for one kind of fault, and one where the block before had it."""
    values = pa.array([bad if at % 20 == 10 else GOOD for at in range(1_000)], pa.binary())
    with patch.object(fast, "attempt", wraps=fast.attempt) as attempt:
        found = read_most(values, SCHEMA, "error", 100)
        assert attempt.call_count == 2
        assert found is not None
        read_most(values, SCHEMA, "error", 100, found.faults)
        assert attempt.call_count == 3


def test_a_fault_that_is_gone_is_looked_for_once_more_only() -> None:
    """So clean blocks cost what they did before."""
    values = pa.array([GOOD] * 100, pa.binary())
    found = read_most(values, SCHEMA, "error", 10, ('"n":"',))
    assert found is not None
    assert found.faults == ()


def test_too_many_are_not_looked_for() -> None:
    """The exact way is the cheaper one then."""
    values = pa.array([MISFITS[0], GOOD] * 500, pa.binary())
    assert read_most(values, SCHEMA, "error", 499) is None
    assert places_of(read_most(values, SCHEMA, "error", 500), 1_000) == list(range(0, 1_000, 2))


def test_a_look_that_good_values_have_too_leaves_the_bad_ones_out_alone() -> None:
    """A text of the same name elsewhere is no fault."""
    good, bad = b'{"n":1,"o":{"n":"a"}}', b'{"n":"1","o":{"n":"a"}}'
    values = pa.array([bad if at in (3, 77) else good for at in range(100)], pa.binary())
    assert places_of(read_most(values, SCHEMA, "ignore", 10), 100) == [3, 77]


def test_a_new_field_is_for_the_caller() -> None:
    """Where fields that are not in the schema are an error, nothing is left out because of them."""
    values = pa.array([*[GOOD] * 50, b'{"new":1}'], pa.binary())
    assert read_most(values, SCHEMA, "error", 10) is None
    assert places_of(read_most(values, SCHEMA, "ignore", 10), 51) == []


@given(
    st.lists(st.sampled_from([GOOD, GOOD, GOOD, b'{"x":[1]}', *MISFITS, *NO_OBJECTS])),
    st.integers(1, 5),
    st.sampled_from(["error", "ignore"]),
)
def test_what_is_read_is_what_reading_by_itself_gives(
    values: list[bytes], window: int, unexpected: fallback.Unexpected
) -> None:
    """Or nothing is told; what is left out may be fine only where it looks like what is not."""
    with patch.object(fallback, "WINDOW", window):
        found = read_most(pa.array(values, pa.binary()), SCHEMA, unexpected, len(values))
    if found is None:
        return
    for row, place in zip(found.batch.to_pylist(), found.places.tolist(), strict=True):
        alone = fast.read(pa.array([values[place]], pa.binary()), SCHEMA, unexpected)
        assert alone is not None
        assert alone.to_pylist() == [row]
    assert not {GOOD} & {values[at] for at in places_of(found, len(values))}
