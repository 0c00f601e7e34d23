"""Rejected records: values that cross processes."""

import pickle

from parquet_sink.model.rejected import Rejected, Stage


def test_a_rejected_record_crosses_processes_as_it_is() -> None:
    """A rejected record is equal to its pickled copy, and its stage reads as Kafka Connect's header has it."""
    one = Rejected("t", 1, 7, Stage.VALUE_CONVERTER, "it is not JSON", b"k", b"{", (("h", None),), 5)
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(one.stage) == "VALUE_CONVERTER"
