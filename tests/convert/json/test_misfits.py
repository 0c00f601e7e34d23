"""Which values keep the others from being read at once: without them the rest is read; few fine ones are named."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.json import fast
from parquet_sink.convert.json.misfits import misfits, objects

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.string())])
GOOD = b'{"n":1,"t":"x"}'
NO_OBJECTS = (b"", b"{", b"7", b'"t"', b"[1]", b'{"n":1', b"\xff", b'{"t":"\xff"}')
MISFITS = (b'{"n":"1"}', b'{"n":1,}', b'{"n":{}}', b'{"n" 1}', b'{"t":"\n"}')


def test_what_is_no_object_is_seen_without_a_try() -> None:
    """Nor is what is not UTF-8; blanks around an object do not matter."""
    assert objects(pa.array([GOOD, *NO_OBJECTS, b' {"n":1}\n'], pa.binary())).tolist() == [True, *[False] * 8, True]
    assert objects(pa.array([GOOD] * 3, pa.binary())).all()


@pytest.mark.parametrize("bad", MISFITS)
@pytest.mark.parametrize("places", [(0,), (2_999,), (0, 1, 2), (5, 1_023, 1_024, 2_047, 2_999)])
def test_a_misfit_is_found_wherever_it_is(bad: bytes, places: tuple[int, ...]) -> None:
    """At the ends of what is tried at once, and one behind the other."""
    values = pa.array([bad if at in places else GOOD for at in range(3_000)], pa.binary())
    found = misfits(values, SCHEMA, 100)
    assert found is not None
    assert found.tolist() == list(places)


def test_too_many_are_not_looked_for() -> None:
    """The exact way is the cheaper one then."""
    values = pa.array([MISFITS[0], GOOD] * 500, pa.binary())
    assert misfits(values, SCHEMA, 499) is None
    found = misfits(values, SCHEMA, 500)
    assert found is not None
    assert len(found) == 500


@given(st.lists(st.sampled_from([GOOD, GOOD, GOOD, b'{"n":2.5}', b'{"n":1}{"n":2}', b'{"x":[1]}', *MISFITS])))
def test_without_them_the_rest_is_read_or_nothing_is_told(values: list[bytes]) -> None:
    """But where a value has two objects, or a fraction in place of an integer, of which the reader names no row."""
    array = pa.array(values, pa.binary())
    found = misfits(array, SCHEMA, len(values))
    if found is None:
        return
    kept = [value for at, value in enumerate(values) if at not in set(found.tolist())]
    read = fast.read(pa.array(kept, pa.binary()), SCHEMA, "ignore")
    assert read is not None or not kept or {b'{"n":2.5}', b'{"n":1}{"n":2}'} & set(kept)
