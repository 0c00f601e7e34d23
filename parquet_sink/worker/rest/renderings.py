"""What the worker reports, as Kafka Connect's JSON: names and order of fields are its own. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.connectors import connector_class
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.connector_class import DEFAULT_CLASS, find_class
from parquet_sink.connectors.hidden import hide
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker.herder.values import (
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    State,
    StoredOffset,
    TaskStatus,
)

CLASS: Final = "connector.class"


def type_of(config: Mapping[str, str]) -> str:
    """`sink` or `source`; `unknown` where the class is not there any more."""
    try:
        return connector_class.type_of(find_class(config.get(CLASS, "").strip() or DEFAULT_CLASS))
    except PluginUnusable:
        return "unknown"


def config_of(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration without its passwords."""
    return hide(config, keys_of(config))


def info(found: ConnectorInfo) -> dict[str, Any]:
    """A connector, as `GET /connectors/{name}` has it."""
    return {
        "name": found.name,
        "config": config_of(found.config),
        "tasks": [_task_id(found.name, number) for number in range(found.tasks)],
        "type": type_of(found.config),
    }


def changed(found: ConnectorInfo) -> dict[str, Any]:
    """The answer to who made or changed it: Kafka Connect's, and what is warned about, where there is anything."""
    return info(found) | ({"warnings": list(found.warnings)} if found.warnings else {})


def tasks(found: ConnectorInfo) -> list[dict[str, Any]]:
    """The connector's tasks, each with the connector's configuration."""
    config = config_of(found.config)
    return [{"id": _task_id(found.name, number), "config": config} for number in range(found.tasks)]


def tasks_config(found: ConnectorInfo) -> dict[str, Any]:
    """The connector's configuration by task."""
    config = config_of(found.config)
    return {f"{found.name}-{number}": config for number in range(found.tasks)}


def status(found: ConnectorStatus, type_: str) -> dict[str, Any]:
    """States and traces, without a trace where there is none."""
    return {
        "name": found.name,
        "connector": _state(found.state, found.worker_id, found.trace),
        "tasks": [task(one) for one in found.tasks],
        "type": type_,
    }


def task(found: TaskStatus) -> dict[str, Any]:
    """One task's state."""
    return {"id": found.id, **_state(found.state, found.worker_id, found.trace)}


def offsets(found: Sequence[StoredOffset], *, ends: bool) -> dict[str, Any]:
    """Where a connector goes on; with the ends of topic-partitions, which Kafka Connect does not report, if asked."""
    listed = [{"partition": one.partition, "offset": one.offset} for one in found]
    return {"offsets": [{**one, "end": of.end} for one, of in zip(listed, found, strict=True)] if ends else listed}


def progress(found: Sequence[ConnectorProgress]) -> list[dict[str, Any]]:
    """How connectors stand, in the field names of `worker.herder.values`."""
    return [asdict(one) for one in found]


def _task_id(connector: str, number: int) -> dict[str, Any]:
    return {"connector": connector, "task": number}


def _state(state: State, worker_id: str, trace: str) -> dict[str, Any]:
    known = {"state": state.value, "worker_id": worker_id, "version": __version__}
    return {**known, "trace": trace} if trace else known
