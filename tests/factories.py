"""What tests of several rooms make: shared, so that each thing is made in one way."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidRecord
from parquet_sink.files.settings import FileSettings
from parquet_sink.files.storage import prepare_connector
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.push.settings import PushSettings


class Clock:
    """Seconds that pass when the test, or a pause, says so; `waits` has the pauses.

    It stands for a function (`clock()`), for the module `time` and for single functions of it.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds

    def time(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.waits.append(seconds)


def with_java(folder: Path, script: str) -> dict[str, str]:
    """JAVA_HOME whose `java` is this script."""
    java = folder / "home" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(script)
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder / "home")}


def settings(folder: Path, name: str = "orders") -> SinkSettings:
    """A connector with its files below a folder."""
    return SinkSettings(
        name,
        KafkaSettings(("orders",), None, "connect-orders", {}),
        FlushSettings(1_000_000, 100, 2_000),
        ShapeSettings(),
        FileSettings(str(folder)),
        PushSettings("http://localhost/", Secret("AppKey k"), "t"),
    )


@contextmanager
def run_of(connector: SinkSettings, folder: Path) -> Iterator[handoff.Handoff[SinkSettings]]:
    """A run as the program begins it, with its state file open to the end."""
    prepare_connector(connector.tmp_dir, connector.name)
    with closing(SqliteStore.for_new_run(handoff.state_path(connector))) as program:
        yield handoff.write(connector, folder, program.ids)


def accepted(shaper: RowBuilder, block: RecordBatch) -> Iterator[Run]:
    """The runs before the first rejected record, which is raised as InvalidRecord: as the policy "stop" has it."""
    for one in shaper.shape(block):
        if isinstance(one, Rejected):
            raise InvalidRecord(one.topic, one.partition, one.offset, one.reason)
        yield one
