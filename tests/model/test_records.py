"""Blocks: built from lists."""

import pytest

from parquet_sink.model.records import RecordBatch


def test_a_block_holds_what_it_was_made_of() -> None:
    """Every offset, timestamp and value is there, tombstones and empty values told apart."""
    block = RecordBatch.of("orders", 3, [5, 9], [1, 2], [b"", None])
    assert (block.topic, block.partition, len(block)) == ("orders", 3, 2)
    assert (block.offsets.to_pylist(), block.timestamps.to_pylist()) == ([5, 9], [1, 2])
    assert block.values.to_pylist() == [b"", None]


def test_lengths_must_match() -> None:
    """One offset, timestamp and value per record; the error names the topic-partition."""
    with pytest.raises(ValueError, match=r"topic t, topic-partition 7: 2 offsets, 1 timestamps and 2 values"):
        RecordBatch.of("t", 7, [1, 2], [0], [b"", None])
