"""The one table of keys: parsing, validation, help and docs/configuration.md all come from it."""

from collections.abc import Iterable

from parquet_sink.config import keys_connect, keys_files, keys_kafka, keys_push, keys_shape, keys_worker
from parquet_sink.config.key import PREFIX, Key
from parquet_sink.config.keys_convert import PREFIXES
from parquet_sink.config.report import did_you_mean

CONNECTOR_KEYS: tuple[Key, ...] = (
    *keys_kafka.CONNECTOR_KEYS,
    *keys_kafka.OVERRIDE_KEYS,
    *keys_connect.CONVERTER_KEYS,
    *keys_push.TARGET_KEYS,
    *keys_files.FLUSH_KEYS,
    *keys_files.FILE_KEYS,
    *keys_shape.SHAPE_KEYS,
    *keys_push.ERROR_KEYS,
    *keys_push.HTTP_KEYS,
    *keys_shape.OBFUSCATION_KEYS,
    *keys_connect.CONNECT_KEYS,
    *keys_shape.REMOVED_KEYS,
)
WORKER_KEYS: tuple[Key, ...] = keys_worker.WORKER_KEYS


def find(table: Iterable[Key], name: str) -> Key | None:
    """The key of that name: an exact one before the longest prefix; None when unknown."""
    matching = [key for key in table if key.matches(name)]
    return max(matching, key=lambda key: (not key.is_prefix, len(key.name)), default=None)


def unknown_in_connector(name: str) -> str:
    """What to tell about a key that no connector file has."""
    if name.startswith("consumer."):
        return f"It is unknown in a connector file and has no effect. Did you mean consumer.override.{name[9:]}?"
    if find(WORKER_KEYS, name) is not None:
        return "It belongs in the worker file (--worker) and has no effect in a connector file."
    return "It is unknown and has no effect." + _suggest(name, CONNECTOR_KEYS)


def unknown_in_worker(name: str) -> str:
    """What to tell about a key that no worker file has."""
    if find(CONNECTOR_KEYS, name) is not None:
        return "It belongs in a connector file and has no effect in the worker file."
    return "It is unknown and has no effect." + _suggest(name, WORKER_KEYS)


def _suggest(name: str, table: Iterable[Key]) -> str:
    """Names with a long common prefix are compared without it, because it makes all look alike."""
    names = [key.name for key in table if not (key.is_prefix or key.deprecated)]
    for prefix in (PREFIX, *PREFIXES):
        if name.startswith(prefix):
            short = {one.removeprefix(prefix): one for one in names if one.startswith(prefix)}
            return did_you_mean(name.removeprefix(prefix), short, cutoff=0.6)
    short = {one.removeprefix(PREFIX): one for one in names}
    return did_you_mean(name, {**short, **{one: one for one in names}}, cutoff=0.8)
