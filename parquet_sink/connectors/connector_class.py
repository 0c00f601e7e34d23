"""Connector classes: what a plug-in of that kind has, and how a file finds its own."""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from parquet_sink import plugins
from parquet_sink.config.key import Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.kinds import find_kind
from parquet_sink.plugins import CONNECTORS, Kind
from parquet_sink.settings.connector import ConnectorSettings, ConnectorType
from parquet_sink.worker_config.worker import Worker

DEFAULT_CLASS: Final = "parquet_sink.EmsSink"


@runtime_checkable
class ConnectorClass(Protocol):
    """A class that `connector.class` may name.

    Its settings are of the kind that its attribute `kind` names; without one it is a sink.

    keys: all that a file of the class may hold; sections of the documentation follow their order. prefixes: beginnings
    that many of its keys share, left out when a misspelt key is compared with them.
    """

    keys: Sequence[Key]
    prefixes: Sequence[str]

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        """Report what is wrong between keys, or between a key and the machine; each by itself was validated."""

    def settings(self, values: Values, worker: Worker) -> ConnectorSettings:
        """What the runtime runs, from values about which there was no problem: settings of a kind (`kinds`).

        `SinkSettings` write Parquet files and hand them to a target.
        """


CONNECTOR_CLASSES: Final[Kind[ConnectorClass]] = Kind(CONNECTORS, "connector class", ("Connector",), ConnectorClass)  # type: ignore[type-abstract]


def find_class(name: str = DEFAULT_CLASS) -> ConnectorClass:
    """The connector class of a full name, a short name or an entry point. Raises plugins.PluginUnusable."""
    return plugins.find(CONNECTOR_CLASSES, name)


def type_of(found: ConnectorClass) -> ConnectorType:
    """Whether a class is a sink or a source. Raises plugins.PluginUnusable where its kind is not there."""
    return find_kind(getattr(found, "kind", "sink")).type
