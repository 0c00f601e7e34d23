"""How many files of the package someone opens who follows a record from Kafka to its commit."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import parquet_sink
from tests.spark_task import SparkTask

PACKAGE = str(Path(parquet_sink.__file__).parent)
MOST = 60


@contextmanager
def files_run() -> Iterator[set[str]]:
    """The package's files of which a function runs meanwhile, in any thread."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            found.add(code.co_filename.removeprefix(PACKAGE))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_a_records_journey_is_short(spark_task: SparkTask) -> None:
    """In a task that is not the first of its process, JSON is read, converted, written, uploaded and reported."""
    spark_task.configure(connect__ems__data__primary__key="order_id", connect__ems__commit__records="100")
    for first in (0, 100):
        spark_task.produce(*(b'{"order_id": %d, "customer": {"name": "Ada"}}' % (first + n) for n in range(100)))
        with files_run() as found:
            assert spark_task.flush()["orders", 0].accepted_until == first + 100

    assert len(found) <= MOST, "\n".join(sorted(found))
