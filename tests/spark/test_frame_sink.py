"""Which writer a DataFrame gets, and what a failure of one task becomes where Spark has all results."""

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from parquet_sink.errors import ConnectorError, InvalidConfiguration
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.receipts import Failure
from parquet_sink.spark import frame_sink, handoff, program
from parquet_sink.spark.frame_sink import FrameSaveWriter, FrameStreamWriter, Written
from parquet_sink.spark.sink import PushSink
from parquet_sink.task.frame_settings import FrameOutcome
from tests import factories
from tests.messages import assert_line_says, assert_says, saying

OWN = StructType([StructField("id", LongType())])
FILE = """name=frames
connect.ems.endpoint=https://target/items
connect.ems.authorization.key=AppKey demo
connect.ems.target.table=T
connect.ems.commit.size.bytes=1000000
connect.ems.commit.records=100
"""


@pytest.fixture
def sink(tmp_path: Path) -> PushSink:
    """The data source, with a connector's settings."""
    given = handoff.write(factories.settings(tmp_path / "tmp"), tmp_path / "run")
    return PushSink({handoff.RUN_FOLDER: given.folder})


def test_columns_of_the_user_s_own_have_writers_of_their_own(sink: PushSink) -> None:
    """A stream's and a save's."""
    assert isinstance(sink.streamWriter(OWN, False), FrameStreamWriter)
    assert isinstance(sink.writer(OWN, False), FrameSaveWriter)


def test_rows_of_the_source_that_were_changed_are_refused(sink: PushSink) -> None:
    """They would be sent as they are, which nobody wants; the cure is the source's records."""
    changed = StructType([StructField(name, StringType()) for name in ("start", "end", "reason", "work")])
    with pytest.raises(InvalidConfiguration, match="option\\('rows', 'records'\\)"):
        sink.streamWriter(changed, False)


def test_overwriting_is_refused(sink: PushSink) -> None:
    """No target replaces a table."""
    with pytest.raises(InvalidConfiguration, match="outputMode"):
        sink.streamWriter(OWN, True)
    with pytest.raises(InvalidConfiguration, match="mode\\('append'\\)"):
        sink.writer(OWN, True)


def test_each_save_is_a_run_of_its_own(tmp_path: Path) -> None:
    """Two saves of the same rows have different names: nothing tells that they are the same."""
    one, other = (FrameSaveWriter(factories.settings(tmp_path), overwrite=False) for _ in range(2))
    assert one._run != other._run


def test_the_first_failure_is_raised_for_all(tmp_path: Path) -> None:
    """A batch whose tasks all went well is done; else the query ends with the words of the first failure."""
    writer = FrameStreamWriter(factories.settings(tmp_path), overwrite=False)
    frame = FrameSlice("ab" * 16, 1, 0)
    good = Written(FrameOutcome(frame, (), None))
    writer.commit([good, None], 1)
    with pytest.raises(ConnectorError, match="^first$"):
        writer.commit(
            [good, *(Written(FrameOutcome(frame, (), Failure("X", text))) for text in ("first", "second"))], 1
        )


def test_a_file_without_kafka_s_keys_is_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What a DataFrame needs is where to push, the table, and when a file is full."""
    file = tmp_path / "frames.properties"
    file.write_text(FILE + f"connect.ems.tmp.dir={tmp_path}/tmp\n")
    settings = program._frame_settings(str(file), None)
    assert (settings.name, settings.flush.commit_records, settings.shape.embed_metadata) == ("frames", 100, False)
    assert caplog.text == ""


def test_keys_without_effect_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A connector file for `run` may be used as it is; each of its keys that means nothing here is named."""
    file = tmp_path / "frames.properties"
    keys = (
        "topics",
        "value.converter",
        "tasks.max",
        "connect.ems.commit.interval.ms",
        "consumer.override.fetch.min.bytes",
    )
    file.write_text(FILE + "".join(f"{key}=7\n" for key in keys))
    program._frame_settings(str(file), None)
    for key in keys:
        assert_line_says(caplog.text, f"[{key}]", "no effect", "DataFrame")


def test_a_map_of_tables_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Rows of a DataFrame have no topic to go by, so all are for the one table; one file may serve both."""
    file = tmp_path / "frames.properties"
    file.write_text(FILE + "connect.ems.target.table.map=orders-(.*):O_$1\n")
    assert program._frame_settings(str(file), None).table_of("orders-eu") == "T"
    (line,) = caplog.messages
    assert_says(line, "[connect.ems.target.table.map]", "no effect", "DataFrame", "topic")


def test_kafka_metadata_is_refused(tmp_path: Path) -> None:
    """Asked for, it would be missing."""
    file = tmp_path / "frames.properties"
    file.write_text(FILE + "connect.ems.embed.kafka.metadata=true\n")
    with pytest.raises(InvalidConfiguration, match=saying("[connect.ems.embed.kafka.metadata]", "DataFrame")):
        program._frame_settings(str(file), None)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """The checks of connector files hold, and name the file."""
    file = tmp_path / "frames.properties"
    file.write_text(FILE.replace("connect.ems.target.table=T\n", ""))
    with pytest.raises(InvalidConfiguration, match=saying("[connect.ems.target.table]", str(file))):
        program._frame_settings(str(file), None)


def test_names_of_spark_s_properties() -> None:
    """Where Spark tells the batch and the query; PySpark itself reads the first for foreachBatch and stream writers."""
    assert (frame_sink.BATCH, frame_sink.QUERY) == ("streaming.sql.batchId", "sql.streaming.queryId")
