"""From checked values to the settings of a target: a push API, a folder or a bucket."""

from parquet_sink.config.declared import made
from parquet_sink.config.key import ems
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.raw_checks import is_raw
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.rows.settings import RAW_ORDER
from parquet_sink.targets.directory.address import is_directory
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.keys import S3
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3.settings import S3Settings
from parquet_sink.targets.settings import TargetSettings
from parquet_sink.worker_config.worker import Worker

ORDER_COLUMN = "__celonis_order"


def target_settings(values: Values, worker: Worker) -> TargetSettings:
    """A bucket where the type says so, else what the endpoint says: a folder, or a push API."""
    if is_s3(values):
        return made(S3Settings, values, worker.machine)
    if is_directory(values.text(ENDPOINT) or ""):
        return made(DirectorySettings, values, worker.machine)
    return made(PushSettings, values, worker.machine, order_column=_order_column(values))


def is_s3(values: Values) -> bool:
    """Whether files go to a bucket."""
    return values.text(ems("target.type")) == S3


def _order_column(values: Values) -> str | None:
    """That which is named, or that which the sink adds, or that of raw files."""
    if not values.names(ems("data.primary.key")):
        return None
    return values.text(ems("order.field.name")) or (RAW_ORDER if is_raw(values) else ORDER_COLUMN)
