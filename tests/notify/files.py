"""A file that a target accepted."""

from parquet_sink.files.parquet import FinishedFile
from parquet_sink.files.rotation import Reason

FILE = FinishedFile(
    "/x", "f.parquet", "orders", 3, 10, 19, 9, 12, 345, Reason.SCHEDULE, 0.0, 0.0, 1_000, digest="ab" * 32
)
