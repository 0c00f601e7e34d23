"""What a Spark task that writes rows of a DataFrame reports to the driver, by value."""

from dataclasses import dataclass

from parquet_sink.model.failure import Failure
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.receipts import Receipt


@dataclass(frozen=True)
class FrameOutcome:
    """What became of one task's rows: receipts of its files in their order, and why not all were accepted."""

    frame: FrameSlice
    receipts: tuple[Receipt, ...]
    failure: Failure | None
