"""Records as they came are rows, each with all that Kafka has of it."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.raw import RAW, RawRowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.task.record_steps import RecordSteps

bytes_or_none = st.none() | st.binary(max_size=4)
headers = st.none() | st.lists(st.tuples(st.text(max_size=3), bytes_or_none), max_size=3)
kinds = st.sampled_from(["CreateTime", "LogAppendTime", "NoTimestampType"])
records = st.lists(
    st.tuples(st.integers(1, 2**40), bytes_or_none, bytes_or_none, headers, kinds), min_size=1, max_size=9
)


def _rows(block: RecordBatch) -> list[dict[str, Any]]:
    (run,) = RecordSteps(raw=True).shaper(_NO_SETTINGS).shape(block)
    assert isinstance(run, Run)
    assert run.rows.schema.equals(RAW)
    offsets = block.offsets.to_pylist()
    assert (run.records, run.first_offset, run.last_offset) == (len(block), offsets[0], offsets[-1])
    assert run.offsets.to_pylist() == offsets
    return list(run.rows.to_pylist())


_NO_SETTINGS: Any = None
"""Raw rows depend on none."""


@given(records)
def test_a_row_has_all_that_the_record_had(given_records: list[tuple[Any, ...]]) -> None:
    """Null and empty keys, values, headers and their values are told apart; a record without a timestamp has none."""
    stamps, keys, values, lists, types = map(list, zip(*given_records, strict=True))
    offsets = range(7, 7 + len(stamps))
    block = RecordBatch.of("orders", 3, offsets, stamps, values, keys, lists, timestamp_types=types)
    assert _rows(block) == [
        {
            "key": key,
            "value": value,
            "headers": None if pairs is None else [{"key": name, "value": text} for name, text in pairs],
            "timestamp": None if kind == "NoTimestampType" else stamp,
            "timestamp_type": kind,
            "topic": "orders",
            "partition": 3,
            "offset": offset,
        }
        for offset, stamp, key, value, pairs, kind in zip(offsets, stamps, keys, values, lists, types, strict=True)
    ]


def test_without_kinds_of_timestamps_they_are_not_known() -> None:
    """Parked records, which do not keep them, have a null there, and one in place of no timestamp."""
    block = RecordBatch.of("orders", 0, [4, 9], [0, 5], [b"a", None], [None, b"k"], [(), ()])
    assert [(row["timestamp"], row["timestamp_type"]) for row in _rows(block)] == [(None, None), (5, None)]


def test_nothing_is_learned_and_an_empty_block_has_no_rows() -> None:
    """So files depend on nothing but their records."""
    shaper = RawRowBuilder()
    assert [*shaper.shape(RecordBatch.of("orders", 0, [], [], [], [], []))] == []
    assert (shaper.known, shaper.unmatched()) == (None, ())


def test_rows_share_what_the_batch_has() -> None:
    """Keys, values and headers are not copied."""
    block = RecordBatch.of(
        "t", 0, range(3), range(1, 4), [b"v"] * 3, [b"k"] * 3, [()] * 3, timestamp_types="CreateTime"
    )
    (run,) = RawRowBuilder().shape(block)
    assert isinstance(run, Run)
    for name, array in (("value", block.values), ("key", block.keys)):
        assert array is not None
        (chunk,) = run.rows.column(name).chunks
        assert [one and one.address for one in chunk.buffers()] == [one and one.address for one in array.buffers()]
    assert pc.all(pc.equal(run.rows.column("timestamp"), pa.array([1, 2, 3]))).as_py()
