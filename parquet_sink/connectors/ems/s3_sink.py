"""The EMS sink with a bucket as its only target, as a connector class."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.config.key import Key, ems
from parquet_sink.connectors.ems.keys import EMS_KEYS
from parquet_sink.connectors.ems.sink import EmsSink
from parquet_sink.targets.s3.target_class import IDLE, TYPE_NAME
from parquet_sink.targets.target_class import TYPE

_CODEC: Final = ems("parquet.compression.codec")


def _adapted(key: Key) -> Key:
    if key.name == TYPE:
        doc = "What takes the files; this class knows buckets only."
        return replace(key, default=TYPE_NAME, choices=(TYPE_NAME,), doc=doc)
    return replace(key, default="none", default_text="") if key.name == _CODEC else key


S3_SINK_KEYS: Final = tuple(_adapted(key) for key in EMS_KEYS if key.name not in IDLE)


class S3Sink(EmsSink):
    """Topics into Parquet files, and those into a bucket of S3; without the keys of the push API."""

    keys: Sequence[Key] = S3_SINK_KEYS
