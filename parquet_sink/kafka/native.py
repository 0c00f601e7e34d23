"""Whether this process reads records in C: where that was built, and fits the Kafka client that is installed.

confluent-kafka makes a Python object of each record, with Python's lock in hand. The extension `_native_reader` takes
records from librdkafka's own queue of a topic-partition into the buffers of a batch (`native_batches.py`): 0.6 µs of
CPU for a record of 150 bytes, 2.3 without it (1M records of one topic-partition, by turns three times, a busy machine).
The consumer is confluent-kafka's as before, and so are its options, logins, logs and callbacks: of its main queue only
the records of that topic-partition are taken out.

The extension finds librdkafka's client in confluent-kafka's consumer by its place in memory. That is tried first, on
consumers of its own, whose names must come out; any doubt leaves the reading to confluent-kafka.
"""

import logging
from functools import cache
from importlib import import_module
from typing import Any, Final

from parquet_sink.process.native import SWITCH, is_turned_off, not_built

log = logging.getLogger(__name__)

EXTENSION: Final = "parquet_sink.kafka._native_reader"
NEWEST: Final = "oversized"
"""The attribute of `Batch` that an extension that was built before, for an editable installation, does not have."""


def not_there() -> str:
    """Why there is nothing to try; "" when there is. It loads no Kafka client."""
    if is_turned_off():
        return f"the environment has {SWITCH}=0"
    return not_built(EXTENSION)


def why_not() -> str:
    """Why confluent-kafka reads records in this process; "" when they are read in C. It takes 20 ms once."""
    return not_there() or _misfit()


def is_used() -> bool:
    """Whether records are read in C in this process."""
    return not is_turned_off() and _is_fit()


@cache
def _is_fit() -> bool:
    reason = why_not()
    if reason:
        log.debug("confluent-kafka reads records, because %s.", reason)
    return not reason


@cache
def _misfit() -> str:
    import confluent_kafka

    client, version = f"confluent-kafka {confluent_kafka.version()}", confluent_kafka.libversion()
    try:
        loaded = extension().load(str(import_module("confluent_kafka.cimpl").__file__))
    except ImportError as error:
        return f"{EXTENSION} cannot be loaded: {error}"
    if not hasattr(extension().Batch, NEWEST):
        return f"{EXTENSION} was built for an earlier version: install parquet-sink again"
    if loaded != version[1] or loaded >> 24 != 2:
        return f"librdkafka {version[0]} is not where {client} usually has it, or its major version is not 2"
    for name in ("parquet-sink-look", "parquet-sink-look-again"):
        consumer = confluent_kafka.Consumer({"client.id": name, "group.id": name})
        found = extension().client_name(consumer)
        consumer.close()
        if found is None or not found.startswith(f"{name}#consumer-"):
            return f"{client} keeps its client in another place than earlier versions"
    return ""


def extension() -> Any:
    """The module in C. Raises ImportError."""
    return import_module(EXTENSION)
