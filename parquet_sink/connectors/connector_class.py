"""Connector classes: what a plug-in of that kind has, and how a file finds its own."""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from parquet_sink import plugins
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.worker import Worker
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.plugins import CONNECTORS, Kind

DEFAULT_CLASS: Final = "parquet_sink.EmsSink"


@runtime_checkable
class ConnectorClass(Protocol):
    """A class that `connector.class` may name. Only sinks that our pipeline runs are there so far.

    keys: all that a file of the class may hold; sections of the documentation follow their order. prefixes: beginnings
    that many of its keys share, left out when a misspelt key is compared with them.
    """

    keys: Sequence[Key]
    prefixes: Sequence[str]

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        """Tell the report what is wrong between keys, or between a key and the machine; each by itself was judged."""

    def settings(self, values: Values, worker: Worker) -> SinkSettings:
        """What the runtime runs, from values about which there was no problem."""


CONNECTOR_CLASSES: Final[Kind[ConnectorClass]] = Kind(CONNECTORS, "connector class", ("Connector",), ConnectorClass)  # type: ignore[type-abstract]


def find_class(name: str = DEFAULT_CLASS) -> ConnectorClass:
    """The connector class of a full name, a short name or an entry point. Raises plugins.PluginUnusable."""
    return plugins.find(CONNECTOR_CLASSES, name)
