"""What all connectors of one process start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_sink.addons.sources.offsets.storage import OffsetStorageSettings
from parquet_sink.config.machine import Machine
from parquet_sink.config.values import NOTHING, Values
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.worker_config.rest.settings import RestSettings

NO_FILE = "no worker file"
"""Source of a worker's defaults."""
BOOTSTRAP_OPTION = "--bootstrap-servers"
BOOTSTRAP_VARIABLE = "PARQUET_SINK_BOOTSTRAP_SERVERS"
DEFAULT_BOOTSTRAP = "localhost:9092"


@dataclass(frozen=True)
class Worker:
    """The defaults that connectors start from.

    bootstrap_origin: what named the servers, for messages. consumer, producer, admin: Java's names without the prefix
    (`consumer.`).
    converters: the file's values, of which connectors that name no converter take `value.converter*`, and likewise
    `key.converter*`. store_folder: where connectors made by REST are kept; None: nobody knows. plugin_path: folders
    with Python packages. offset_storage: where sources keep their positions; None: nobody said.
    """

    source: str = NO_FILE
    bootstrap_servers: str = DEFAULT_BOOTSTRAP
    bootstrap_origin: str = "default"
    consumer: Mapping[str, ClientSetting] = field(default_factory=dict)
    producer: Mapping[str, ClientSetting] = field(default_factory=dict)
    admin: Mapping[str, ClientSetting] = field(default_factory=dict)
    isolation_level: str | None = None
    offset_reset: str | None = None
    converters: Values = NOTHING
    override_policy: str = "All"
    store_folder: str | None = None
    plugin_path: tuple[str, ...] = ()
    machine: Machine = field(default_factory=Machine)
    rest: RestSettings = field(default_factory=RestSettings)
    offset_storage: OffsetStorageSettings | None = None
