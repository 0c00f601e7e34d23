"""How topic-partitions stand."""

from parquet_sink.model.progress import PartitionProgress


def test_lag_is_never_negative() -> None:
    """A topic-partition that was made anew may end below where we stand."""
    assert PartitionProgress("orders", 0, 3, 10, None).lag == 7
    assert PartitionProgress("orders", 0, 10, 3, None).lag == 0
