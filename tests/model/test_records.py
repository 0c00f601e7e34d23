"""Batches of records: built from lists."""

import pytest

from parquet_sink.model.records import HEADERS, VALUES_ONLY, RecordBatch, RecordParts
from tests.messages import saying


def test_a_batch_holds_what_it_was_made_of() -> None:
    """Every offset, timestamp and value is there, tombstones and empty values told apart; no keys, no headers."""
    batch = RecordBatch.of("orders", 3, [5, 9], [1, 2], [b"", None])
    assert (batch.topic, batch.partition, len(batch)) == ("orders", 3, 2)
    assert (batch.offsets.to_pylist(), batch.timestamps.to_pylist()) == ([5, 9], [1, 2])
    assert batch.values.to_pylist() == [b"", None]
    assert (batch.keys, batch.headers, batch.headers_of(0)) == (None, None, None)


def test_keys_and_headers_are_arrays_of_known_types() -> None:
    """No key and an empty one are told apart, and so are no headers and headers that cannot be read."""
    headers = [[("a", b"1"), ("a", None)], [], None]
    batch = RecordBatch.of("orders", 3, [5, 9, 10], [1, 2, 3], [b"", None, b""], [b"k", None, b""], headers)
    assert batch.keys is not None
    assert batch.headers is not None
    assert batch.keys.to_pylist() == [b"k", None, b""]
    assert batch.headers.type == HEADERS
    assert batch.headers.is_null().to_pylist() == [False, False, True]
    assert [batch.headers_of(index) for index in range(3)] == [(("a", b"1"), ("a", None)), (), None]


def test_no_records_at_all() -> None:
    """A batch may be empty, with keys and headers, too."""
    batch = RecordBatch.of("orders", 3, [], [], [], [], [])
    assert (len(batch), batch.headers is not None and batch.headers.type) == (0, HEADERS)


def test_lengths_must_match() -> None:
    """One offset, timestamp, value, key and list of headers per record; the error names the topic-partition."""
    with pytest.raises(
        ValueError, match=saying("topic t, topic-partition 7:", "2 offsets", "1 timestamps", "2 values")
    ):
        RecordBatch.of("t", 7, [1, 2], [0], [b"", None])
    with pytest.raises(ValueError, match=saying("2 offsets", "2 timestamps", "2 values", "1 keys", "3 headers")):
        RecordBatch.of("t", 7, [1, 2], [0, 0], [b"", None], [b""], [[], [], None])


def test_what_is_read_is_what_any_of_them_asks_for() -> None:
    """Needs are united."""
    keys, headers = RecordParts(keys=True), RecordParts(headers=True)
    assert VALUES_ONLY | VALUES_ONLY == VALUES_ONLY
    assert VALUES_ONLY | keys | headers == keys | headers == RecordParts(keys=True, headers=True)
