"""All keys of any source: its own, Kafka Connect's, and those of converters and transforms."""

from dataclasses import replace
from typing import Final

from parquet_sink.addons.sources.settings import OF_SINKS, RUNNING, WRITING, SourceSettings
from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Key
from parquet_sink.connectors.connect_keys import CONNECT, CONNECT_KEYS, CONNECTOR, CONNECTOR_KEYS
from parquet_sink.convert.keys import CONVERTER_KEYS
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.transform.keys import TRANSFORM_KEYS

_CONVERTERS: Final = {
    "value.converter": "How values are written: StringConverter, JsonConverter or ByteArrayConverter. Must be set here "
    "or in the worker file. Named here, it takes no setting from the worker file, as in Kafka Connect.",
    "key.converter": "How keys are written, likewise. A record without a key has none, whatever the converter.",
    "header.converter": "How values of headers are written: SimpleHeaderConverter, or one of those.",
}


def _running(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return tuple(replace(one, group=RUNNING) for one in keys)


OWN_KEYS: Final[tuple[Key, ...]] = (
    *keys_of(SourceSettings, CONNECTOR),
    *_running(tuple(one for one in CONNECTOR_KEYS if one.name == "connector.class")),
)
"""What any source has before keys of its own: its name, its class, and how many tasks it may have."""
SOURCE_KEYS: Final[tuple[Key, ...]] = (
    *(replace(one, doc=_CONVERTERS.get(one.name, one.doc)) for one in CONVERTER_KEYS),
    *TRANSFORM_KEYS,
    *keys_of(SourceSettings, WRITING),
    *keys_of(SourceSettings, RUNNING),
    *_running(keys_of(RestartSettings)),
    *keys_of(SourceSettings, CONNECT),
    *(one for one in CONNECT_KEYS if one.name not in OF_SINKS),
)
"""What any source has behind `OWN_KEYS` and keys of its own."""
