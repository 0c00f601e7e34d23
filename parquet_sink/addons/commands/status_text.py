"""How a connector stands, in lines for a person."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from parquet_sink.addons.commands.connectors.printing import columns, cut
from parquet_sink.config.report import counted, printable
from parquet_sink.worker.herder.values import (
    ConnectorProgress,
    ConnectorStatus,
    LastError,
    LastUpload,
    PartitionProgress,
    State,
)
from parquet_sink.worker.loop.totals import format_age, format_size

_TITLES = ("    TOPIC", "TOPIC-PARTITION", "LAG", "OLDEST", "RECORDS/S", "")


def connector_lines(one: ConnectorProgress, now_s: float, *, partitions: bool, named: bool = False) -> Iterator[str]:
    """State and tasks, what is behind, what was sent last, what went wrong last. now_s: epoch seconds.

    named: it was asked for by its name, so what its configuration was warned of is shown, and not only counted.
    """
    error = "" if one.last_error is None else one.last_error.message
    yield from _status_lines(one.status, error)
    aside = f"; {counted(one.set_aside, 'record')} diverted" if one.set_aside else ""
    sent = f"{counted(one.files, 'file')}, {counted(one.rows, 'row')}, {format_size(one.size_bytes)}"
    yield f"  sent   {counted(one.records, 'record') if one.records else sent}{aside}"
    if archive := _archive_text(one):
        yield f"  kept   {archive}"
    yield f"  lag    {_lag_text(one, now_s)}"
    if one.flushing is not None:
        for_s = format_age(max(now_s - one.flushing.since_s, 0.0))
        taken = f"{counted(one.flushing.records, 'record')} in {counted(one.flushing.partitions, 'topic-partition')}"
        yield f"  flush  {taken}, for {for_s}"
    if one.last_upload is not None:
        yield f"  last   {_upload_text(one.last_upload, now_s)}"
    if one.last_error is not None:
        yield from _error_lines(one.last_error, one.status.waits_for, now_s)
    yield from (f"  Warning: {warning.message}" for warning in one.live_warnings)
    if named:
        yield from (f"  {warning}" for warning in one.warnings)
    elif one.warnings:
        command = f"parquet-sink status {shlex.quote(printable(one.status.name))}"
        yield f"  {counted(len(one.warnings), 'warning')} about its configuration: {command}"
    if partitions and one.partitions:
        yield from columns([_TITLES, *map(_partition_row, one.partitions)])


def _error_lines(error: LastError, waits_for: str, now_s: float) -> Iterator[str]:
    """When and what, and since when it is over; what is waited for is not said again."""
    first, *more = error.message.splitlines() or [""]
    when = _moment_text(error.at_s, now_s)
    if error.healed_s is not None:
        yield f"  error  {when}, healed {format_age(max(error.healed_s - error.at_s, 0.0))} later: {first}"
    elif first and first.rstrip(".") in waits_for:
        yield f"  error  {when}: what it waits for"
        return
    else:
        yield f"  error  {when}: {first}"
    yield from (f"         {line}" for line in more)


def _status_lines(status: ConnectorStatus, error: str) -> Iterator[str]:
    """error: the last one's text, which stands in a line of its own and is not said here."""
    running = sum(task.state is State.RUNNING for task in status.tasks)
    tasks = f"{running} of {counted(len(status.tasks), 'task')} running" if status.tasks else "no tasks"
    yield f"{cut(status.name)}  {status.state}  {tasks}, {status.worker_id}"
    yield from (f"  {line}" for line in status.trace.splitlines()[:1] if not _says(error, line))
    failed: dict[str, list[int]] = {}
    for task in status.tasks:
        if task.state is State.FAILED and task.trace != status.trace:
            failed.setdefault(next(iter(task.trace.splitlines()), ""), []).append(task.id)
    for trace, tasks_of_it in failed.items():
        several = "s" if len(tasks_of_it) > 1 else ""
        why = "the last error" if _says(error, trace) else trace
        yield f"  task{several} {', '.join(map(str, tasks_of_it))} {State.FAILED}: {why}"
    if status.waits_for:
        yield f"  waits for {status.waits_for}"


def _says(error: str, trace: str) -> bool:
    """Whether a trace's first line, a kind and a text, says no more than the last error."""
    text = trace.partition(": ")[2] or trace
    return bool(text) and error.startswith(text)


def _archive_text(one: ConnectorProgress) -> str:
    """Empty where nothing is known of an archive."""
    counts = ((one.archived, "archived"), (one.archive_waiting, "waiting for it"), (one.not_archived, "not archived"))
    return "; ".join(f"{counted(count, 'file')} {what}" for count, what in counts if count)


def _lag_text(one: ConnectorProgress, now_s: float) -> str:
    if not one.partitions:
        if one.status.state is State.FAILED and one.last_error is not None:
            return f"not known since {_moment_text(one.last_error.at_s, now_s)}"
        return "not known while it is stopped" if one.status.state is State.STOPPED else "not known"
    waiting = [partition for partition in one.partitions if partition.oldest_s is not None]
    text = f"{counted(sum(partition.lag for partition in one.partitions), 'record')} in "
    text += counted(len(one.partitions), "topic-partition")
    if waiting:
        oldest = max(waiting, key=lambda partition: partition.oldest_s or 0.0)
        text += f"; oldest unflushed {format_age(oldest.oldest_s)} ({oldest.topic} {oldest.partition})"
    away = sum(partition.away for partition in one.partitions)
    return text + (f"; {away:,} unavailable" if away else "")


def _upload_text(upload: LastUpload, now_s: float) -> str:
    size = f"{counted(upload.rows, 'row')}, {format_size(upload.size_bytes)}"
    return (
        f"{_moment_text(upload.at_s, now_s)}: {upload.topic} {upload.partition}, offsets {upload.first_offset} to "
        f"{upload.last_offset}, {size if upload.size_bytes else counted(upload.rows, 'record')}"
    )


def _partition_row(one: PartitionProgress) -> tuple[str, ...]:
    rate = f"{one.records_per_s:,.0f}"
    return (
        f"    {cut(one.topic)}",
        str(one.partition),
        f"{one.lag:,}",
        format_age(one.oldest_s),
        rate,
        "unavailable" if one.away else "" if one.held_at is None else f"held back at offset {one.held_at}",
    )


def _moment_text(at_s: float, now_s: float) -> str:
    """A time in UTC, and how long ago it is by this machine's clock."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC ({format_age(max(now_s - at_s, 0.0))} ago)"


def all_well(progress: Sequence[ConnectorProgress]) -> bool:
    """Whether no connector and no task failed."""
    return not any(state is State.FAILED for one in progress for state in _states(one))


def _states(one: ConnectorProgress) -> Iterator[State]:
    yield one.status.state
    yield from (task.state for task in one.status.tasks)
