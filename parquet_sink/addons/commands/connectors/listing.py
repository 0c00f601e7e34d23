"""`connectors list` and `connectors show`."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from parquet_sink.addons.commands.connectors.printing import columns, cut, print_json, print_lines
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.errors import WorkerRefused
from parquet_sink.worker.herder.values import ConnectorProgress
from parquet_sink.worker.loop.totals import format_age
from parquet_sink.worker.rest.renderings import read_progress

_TITLES = ("NAME", "STATE", "TASKS", "LAG", "OLDEST", "TYPE", "CLASS", "WORKER")
_BEHIND = slice(3, 5)


def print_list(args: Namespace, api: WorkerApi) -> bool:
    """All connectors, a line each; as JSON by name, as the worker gives them."""
    found = api.get("connectors", expand=("info", "status"))
    if args.json:
        print_json(found)
    elif not found:
        print(f"no connectors at {api.url}")
    else:
        behind = _behind(api)
        rows = [_TITLES, *(_row(name, found[name], (behind or {}).get(name, ("?", "?"))) for name in sorted(found))]
        print_lines(columns([row if behind is not None else _without(row) for row in rows]))
    return True


def _behind(api: WorkerApi) -> dict[str, tuple[str, str]] | None:
    """Lag in records and age of the oldest unflushed record, by connector; None where the worker does not say."""
    try:
        progress = read_progress(api.get("progress"))
    except WorkerRefused as error:
        if error.status in (403, 404):
            return None
        raise
    return {one.status.name: _lag_and_age(one) for one in progress}


def _lag_and_age(one: ConnectorProgress) -> tuple[str, str]:
    if not one.partitions:
        return "?", "?"
    oldest = max((part.oldest_s for part in one.partitions if part.oldest_s is not None), default=None)
    return f"{sum(part.lag for part in one.partitions):,}", format_age(oldest)


def _without(row: tuple[str, ...]) -> tuple[str, ...]:
    return (*row[: _BEHIND.start], *row[_BEHIND.stop :])


def _row(name: str, one: Mapping[str, Any], behind: tuple[str, str]) -> tuple[str, ...]:
    info, status = one.get("info") or {}, one.get("status") or {}
    connector = status.get("connector") or {}
    return (
        cut(name),
        connector.get("state", "?"),
        tasks_text(status.get("tasks", [])),
        *behind,
        str(info.get("type", "?")),
        (info.get("config") or {}).get("connector.class", "?").rpartition(".")[2],
        connector.get("worker_id", "?"),
    )


def tasks_text(tasks: list[Mapping[str, Any]]) -> str:
    """How many tasks are in which state."""
    counted = Counter(task["state"] for task in tasks)
    return ", ".join(f"{count} {state}" for state, count in sorted(counted.items())) or "none"


def print_one(args: Namespace, api: WorkerApi) -> bool:
    """One connector: state, tasks, traces, topics, configuration."""
    name = args.targets[0]
    info, status = api.get("connectors", name), api.get("connectors", name, "status")
    topics = _topics(api, name)
    if args.json:
        print_json({**info, "status": status, "topics": topics})
    else:
        print_lines(_lines(info, status, topics))
    return True


def _topics(api: WorkerApi, name: str) -> list[str] | None:
    """Of which records were taken; None where the worker keeps no track."""
    try:
        found = api.get("connectors", name, "topics")
    except WorkerRefused as error:
        if error.status == 403:
            return None
        raise
    return sorted(found[name]["topics"])


def _lines(info: Mapping[str, Any], status: Mapping[str, Any], topics: list[str] | None) -> Iterator[str]:
    connector = status["connector"]
    yield f"connector {info['name']}: {connector['state']} on {connector['worker_id']} ({info.get('type', '?')})"
    yield from trace_lines(connector)
    for task in status["tasks"]:
        yield f"  task {task['id']}: {task['state']} on {task['worker_id']}"
        yield from trace_lines(task)
    if topics is not None:
        yield f"  topics with records so far: {', '.join(topics) or 'none'}"
    yield "  configuration:"
    yield from (f"    {key}={value}" for key, value in sorted(info["config"].items()))


def trace_lines(one: Mapping[str, Any]) -> Iterator[str]:
    """Why it failed, if it did."""
    yield from (f"    {line}" for line in str(one.get("trace", "")).splitlines())
