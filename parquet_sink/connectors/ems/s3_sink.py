"""The EMS sink with a bucket as its only target, as a connector class."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.config.key import Key, ems
from parquet_sink.connectors.ems.keys import EMS_KEYS
from parquet_sink.connectors.ems.s3_checks import IDLE
from parquet_sink.connectors.ems.sink import EmsSink
from parquet_sink.targets.keys import S3

_TYPE: Final = ems("target.type")
_CODEC: Final = ems("parquet.compression.codec")


def _adapted(key: Key) -> Key:
    if key.name == _TYPE:
        return replace(key, default=S3, choices=(S3,), doc="What takes the files; this class knows buckets only.")
    return replace(key, default="none", default_text="") if key.name == _CODEC else key


S3_SINK_KEYS: Final = tuple(_adapted(key) for key in EMS_KEYS if key.name not in IDLE)


class S3Sink(EmsSink):
    """Topics into Parquet files, and those into a bucket of S3; without the keys of the push API."""

    keys: Sequence[Key] = S3_SINK_KEYS
