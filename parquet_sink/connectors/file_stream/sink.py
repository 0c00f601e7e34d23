"""FileStreamSink as a connector class."""

from collections.abc import Sequence
from typing import Final

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors import record_sinks
from parquet_sink.connectors.worker import Worker
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.pipeline.record_sink_settings import RecordSinkSettings
from parquet_sink.targets.file.settings import FILE, FileSinkSettings

FILE_KEYS: Final = (
    Key(
        FILE,
        "The file",
        Type.STRING,
        "File that gets a line for each record, at its end; made when it is not there. See "
        "[file-sink.md](file-sink.md).",
        default_text="standard output",
        origin=Origin.CONNECT,
    ),
)


class FileStreamSink:
    """Topics to the end of a file, or to standard output, a line for each record, with Kafka Connect's keys."""

    keys: Sequence[Key] = (*record_sinks.RECORD_SINK_KEYS, *FILE_KEYS)
    prefixes: Sequence[str] = ("connect.ems.", *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        record_sinks.check(values, worker, report)

    def settings(self, values: Values, worker: Worker) -> RecordSinkSettings:
        file = values.text(FILE)
        place = None if file is None else worker.machine.absolute(file)
        return record_sinks.settings(
            values, worker, FileSinkSettings(place, worker.machine.stdout, worker.machine.host_name)
        )
