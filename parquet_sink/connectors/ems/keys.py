"""The keys of the EMS connector: each room's, put together in the order of the documentation."""

from typing import Final

from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Key, Type, ems
from parquet_sink.connectors.connect_keys import CONNECT_KEYS, CONNECTOR_KEYS
from parquet_sink.convert.keys import CONVERTER_KEYS
from parquet_sink.files.settings import FileSettings
from parquet_sink.history.settings import HistorySettings
from parquet_sink.kafka.settings import OVERRIDE_KEYS, TOPIC_KEYS, FlushSettings
from parquet_sink.net.settings import HttpSettings
from parquet_sink.parked.settings import ParkedSettings
from parquet_sink.rows.settings import OBFUSCATION_KEYS, SHAPE_KEYS
from parquet_sink.settings.connector import ErrorSettings, RestartSettings
from parquet_sink.targets.keys import ERROR_KEYS, OTHER_TARGET_KEYS, TARGET_KEYS
from parquet_sink.transform.keys import TRANSFORM_KEYS

REMOVED: Final = "Removed keys"

REMOVED_KEYS: Final = (
    Key(
        ems("client.id"),
        REMOVED,
        Type.STRING,
        "The client's name at the target, which is fixed today.",
        deprecated="the client's name at the target is fixed; remove the key.",
    ),
    Key(
        ems("parquet.write.flush.records"),
        REMOVED,
        Type.STRING,
        "Old name of a row group's size.",
        deprecated="use connect.ems.parquet.row.group.size.bytes (bytes, not records) or remove the key.",
    ),
)

EMS_KEYS: Final[tuple[Key, ...]] = (
    *CONNECTOR_KEYS,
    *TOPIC_KEYS,
    *OVERRIDE_KEYS,
    *CONVERTER_KEYS,
    *TRANSFORM_KEYS,
    *TARGET_KEYS,
    *keys_of(FlushSettings),
    *keys_of(FileSettings),
    *SHAPE_KEYS,
    *ERROR_KEYS,
    *keys_of(RestartSettings),
    *keys_of(ErrorSettings),
    *keys_of(ParkedSettings),
    *keys_of(HistorySettings),
    *OTHER_TARGET_KEYS,
    *keys_of(ArchiveSettings),
    *keys_of(HttpSettings),
    *OBFUSCATION_KEYS,
    *CONNECT_KEYS,
    *REMOVED_KEYS,
)
