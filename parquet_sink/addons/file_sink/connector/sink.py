"""FileStreamSink as a connector class."""

from collections.abc import Sequence

from parquet_sink.addons.file_sink.settings import FileSinkSettings
from parquet_sink.config.declared import keys_of, made
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors import record_sinks
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.worker_config.worker import Worker


class FileStreamSink:
    """Topics to the end of a file, or to standard output, a line for each record, with Kafka Connect's keys."""

    kind = "record_sink"
    keys: Sequence[Key] = (*record_sinks.RECORD_SINK_KEYS, *keys_of(FileSinkSettings))
    prefixes: Sequence[str] = ("connect.ems.", *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        record_sinks.check(values, worker, report)

    def settings(self, values: Values, worker: Worker) -> RecordSinkSettings:
        machine = worker.machine
        sink = made(FileSinkSettings, values, machine, stdout=machine.stdout, host=machine.host_name)
        return record_sinks.settings(values, worker, sink)
