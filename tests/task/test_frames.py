"""What becomes of a DataFrame's rows in one Spark task. Files are real, the target is a fake."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.errors import ConnectorError, InvalidConfiguration
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.frames import FrameSlice
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.task.frame_flush import FrameDecoder, FrameFlush
from parquet_sink.task.frame_settings import FrameOutcome
from parquet_sink.transform.settings import StepSettings
from tests import factories
from tests.messages import assert_says, saying
from tests.spark_task import Handed
from tests.thorough import FIXTURES_SHARED, examples

FRAME = FrameSlice("ab" * 16, 7, 3)
REFUSED = Outcome(Verdict.REFUSED, "the target answered 403", "Give the key the right", 403)
BUSY = Outcome(Verdict.RETRIABLE, "the target answered 503", "Wait", 503)
Shape = dict[str, Any]


class Target:
    """A fake target: an outcome for each file, in turn, then acceptance. It reads what it accepts."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.names: list[str] = []
        self.contents: list[bytes] = []
        self.rows: list[dict[str, Any]] = []

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome(Verdict.ACCEPTED, "", "", 200)
        if outcome.verdict is Verdict.ACCEPTED:
            self.names.append(file.name)
            self.contents.append(Path(file.path).read_bytes())
            self.rows += pq.ParquetFile(file.path).read().to_pylist()
        return outcome


def made(folder: Path, records: int = 4, **shape: Any) -> SinkSettings:
    """A connector whose files take so many rows."""
    base = factories.settings(folder)
    return replace(base, flush=replace(base.flush, commit_records=records), shape=ShapeSettings(**shape))


Run = Callable[..., FrameOutcome]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Writes batches of rows in one task."""

    def task(target: Target, *batches: pa.RecordBatch, settings: SinkSettings | None = None) -> FrameOutcome:
        used = replace(settings or made(tmp_path), target=Handed(target))
        return FrameFlush(used, FRAME).run(iter(batches))

    return task


def numbers(count: int, first: int = 0) -> pa.RecordBatch:
    """So many rows."""
    return pa.RecordBatch.from_pydict({"id": pa.array(range(first, first + count), pa.int64())})


def left(folder: Path) -> list[Path]:
    """What is still on the disk."""
    return [path for path in folder.rglob("*") if ".parquet" in path.name and path.is_file()]


def test_names_say_where_rows_come_from(run: Run, tmp_path: Path) -> None:
    """Query, batch, Spark partition and row numbers are the name; columns are the DataFrame's and nothing else."""
    target = Target()
    outcome = run(target, numbers(6), numbers(3, 6))
    assert outcome.failure is None
    begin = f"connector-orders_query-{'ab' * 16}_batch-7_partition-3_firstRow-"
    found = [name.removeprefix(begin).partition("_bytes-")[0] for name in target.names]
    assert found == ["0_lastRow-3", "4_lastRow-7", "8_lastRow-8"]
    assert target.rows == [{"id": number} for number in range(9)]
    assert [receipt.reason for receipt in outcome.receipts] == ["records", "records", "batch"]
    assert left(tmp_path) == []


def test_no_rows_are_no_files(run: Run) -> None:
    """A Spark partition may be empty, with or without a batch of no rows."""
    target = Target()
    assert run(target).receipts == run(target, numbers(0)).receipts == ()
    assert target.names == []


def test_a_refused_file_fails_the_batch(run: Run, tmp_path: Path) -> None:
    """Nothing after it is sent, no file stays, and the message tells rows, cause, cure and what comes next."""
    target = Target(Outcome(Verdict.ACCEPTED, "", "", 200), REFUSED)
    outcome = run(target, *(numbers(5, first) for first in range(0, 50, 5)))
    assert outcome.failure is not None
    message = outcome.failure.message
    assert_says(message, f"Query {'ab' * 16}", "batch 7", "Spark partition 3", "rows 4 to 7", "file ")
    assert_says(message, "refused", "the target answered 403", "Give the key the right")
    assert_says(message, "comes again", "under the same names", "started again")
    assert [receipt.accepted for receipt in outcome.receipts] == [True, False]
    assert target.rows == [{"id": number} for number in range(4)]


@settings(max_examples=examples(40), suppress_health_check=FIXTURES_SHARED)
@given(cuts=st.sets(st.integers(1, 29_999), max_size=6))
def test_the_same_rows_are_the_same_files(run: Run, tmp_path: Path, cuts: set[int]) -> None:
    """However Spark cuts them into batches, names and bytes are the same."""
    whole = pa.RecordBatch.from_pydict(
        {"id": pa.array(range(30_000)), "text": pa.array([f"text {number % 97}" for number in range(30_000)])}
    )
    ends = [0, *sorted(cuts), len(whole)]
    one, other = Target(), Target()
    several = made(tmp_path, 12_345)
    run(one, whole, settings=several)
    run(other, *(whole.slice(start, end - start) for start, end in pairwise(ends)), settings=several)
    assert len(one.names) == 3
    assert (one.names, one.contents) == (other.names, other.contents)


def test_an_invalid_row_fails_the_batch(run: Run, tmp_path: Path) -> None:
    """A row without its key is named by its number in the Spark partition, across batches."""
    keyed = made(tmp_path, primary_keys=("id",), order_field="v")
    rows = [
        pa.RecordBatch.from_pydict({"id": [1, 2], "v": [1, 1]}),
        pa.RecordBatch.from_pydict({"id": [3, None], "v": [1, 1]}),
    ]
    outcome = run(Target(), *rows, settings=keyed)
    assert outcome.failure is not None
    said = ("Spark partition 3, row 3:", "connect.ems.data.primary.key", "column id is null")
    assert_says(outcome.failure.message, *said)
    assert left(tmp_path) == []


def test_what_should_be_hidden_and_is_not_there(run: Run, tmp_path: Path) -> None:
    """A field to obfuscate that the DataFrame does not have ends the batch before anything leaves."""
    target, hiding = Target(), made(tmp_path, obfuscation=ObfuscationSettings(("name", "idd")))
    outcome = run(target, pa.RecordBatch.from_pydict({"id": [1], "name": ["x"]}), settings=hiding)
    assert outcome.failure is not None
    assert_says(outcome.failure.message, "[connect.ems.obfuscation.fields]", "DataFrame", "no column or field idd")
    assert target.names == []


def test_transforms_are_for_records_of_kafka(tmp_path: Path) -> None:
    """A DataFrame's rows have no key, headers or topic; a file with transforms is refused, not taken in part."""
    steps = (StepSettings(ClassSettings("c", "Cast", (("spec", "id:string"),))),)
    with pytest.raises(InvalidConfiguration, match=saying("[transforms]", "in the program")):
        FrameFlush(replace(made(tmp_path), transforms=steps), FRAME)


def test_keys_need_a_column_that_orders_rows(tmp_path: Path) -> None:
    """Without one nobody could tell the newer of two rows with the same key."""
    with pytest.raises(InvalidConfiguration, match="Invalid \\[connect.ems.order.field.name\\].*current_timestamp"):
        FrameFlush(made(tmp_path, primary_keys=("id",)), FRAME)


NOON = dt.datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=dt.UTC)
MICROS = int(NOON.timestamp()) * 1_000_000 + 123456


def rows_of(shape: Shape, **columns: pa.Array) -> list[dict[str, Any]]:
    """The rows that columns become."""
    chosen = ShapeSettings(embed_metadata=False, **shape)
    decoder = FrameDecoder(chosen)
    block = decoder.block(FRAME, 0, pa.RecordBatch.from_pydict(columns))
    return [row for run in RowBuilder(chosen, None, decoder).shape(block) for row in run.rows.to_pylist()]


def test_small_numbers_and_times() -> None:
    """Small integers are int32, times keep their microseconds, in a column of their own and in text."""
    at = pa.array([NOON], pa.timestamp("us", "Europe/Berlin"))
    lists = pa.array([[NOON]], pa.list_(pa.timestamp("us", "UTC")))
    rows = rows_of({}, small=pa.array([1], pa.int8()), at=at, lists=lists, none=pa.nulls(1))
    assert rows == [{"small": 1, "at": NOON, "lists": f"[{MICROS}]"}]
    assert rows_of({"flatten": False}, at=at, lists=lists) == [{"at": NOON, "lists": [NOON]}]
    chunked = rows_of({"chunks": 1, "chunk_bytes": 1_000}, at=at, lists=lists)
    assert chunked == [{"payload_chunk1": f'{{"at":{MICROS},"lists":[{MICROS}]}}'}]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([dt.timedelta(1)], pa.duration("us")),
        pa.array([None], pa.month_day_nano_interval()),
        pa.array([{"d": None}], pa.struct([("d", pa.duration("us"))])),
        pa.array([[None]], pa.list_(pa.time64("ns"))),
        pa.array(
            [None], pa.struct([("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
        ),
    ],
    ids=str,
)
def test_types_that_no_file_has(array: pa.Array) -> None:
    """The column is named, with the cure."""
    with pytest.raises(ConnectorError, match=saying("partition 3", "column odd", "cast it", "to string")):
        rows_of({}, odd=array)
