"""The EMS sink as a connector class."""

from collections.abc import Sequence

from parquet_sink.config.key import PREFIX, Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import checks
from parquet_sink.connectors.ems.build import build
from parquet_sink.connectors.ems.keys import EMS_KEYS
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker_config.worker import Worker


class EmsSink:
    """Topics into Parquet files, and those to the push API, with the EMS Kafka connector's keys."""

    keys: Sequence[Key] = EMS_KEYS
    prefixes: Sequence[str] = (PREFIX, *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        checks.check(values, worker, report)

    def settings(self, values: Values, worker: Worker) -> SinkSettings:
        return build(values, worker)
