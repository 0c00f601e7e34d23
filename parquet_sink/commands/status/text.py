"""How a connector stands, in lines for a person."""

from collections.abc import Iterator
from datetime import UTC, datetime

from parquet_sink.commands.connectors.printing import columns
from parquet_sink.herder.values import ConnectorProgress, ConnectorStatus, LastUpload, PartitionProgress, State
from parquet_sink.runtime.layout import format_age
from parquet_sink.runtime.totals import format_size

_TITLES = ("    TOPIC", "TOPIC-PARTITION", "LAG", "OLDEST", "RECORDS/S", "")


def connector_lines(one: ConnectorProgress, now_s: float, *, partitions: bool) -> Iterator[str]:
    """State and tasks, what is behind, what was sent last, what went wrong last. now_s: epoch seconds."""
    yield from _status_lines(one.status)
    aside = f"; {_count(one.set_aside, 'record')} set aside" if one.set_aside else ""
    sent = f"{_count(one.files, 'file')}, {_count(one.rows, 'row')}, {format_size(one.size_bytes)}"
    yield f"  sent   {_count(one.records, 'record') if one.records else sent}{aside}"
    if archive := _archive_text(one):
        yield f"  kept   {archive}"
    yield f"  lag    {_lag_text(one)}"
    if one.last_upload is not None:
        yield f"  last   {_upload_text(one.last_upload, now_s)}"
    if one.last_error is not None:
        first, *more = one.last_error.message.splitlines() or [""]
        yield f"  error  {_moment_text(one.last_error.at_s, now_s)}: {first}"
        yield from (f"         {line}" for line in more)
    if partitions and one.partitions:
        yield from columns([_TITLES, *map(_partition_row, one.partitions)])


def _status_lines(status: ConnectorStatus) -> Iterator[str]:
    running = sum(task.state is State.RUNNING for task in status.tasks)
    tasks = f"{running} of {_count(len(status.tasks), 'task')} running" if status.tasks else "no tasks"
    yield f"{status.name}  {status.state}  {tasks}, {status.worker_id}"
    yield from (f"  {line}" for line in status.trace.splitlines()[:1])
    for task in status.tasks:
        if task.state is State.FAILED and task.trace != status.trace:
            yield f"  task {task.id} {task.state}: {next(iter(task.trace.splitlines()), '')}"
    if status.waits_for:
        yield f"  waits for {status.waits_for}"


def _archive_text(one: ConnectorProgress) -> str:
    """Empty where nothing is known of an archive."""
    told = ((one.archived, "archived"), (one.archive_waiting, "waiting for it"), (one.not_archived, "not archived"))
    return "; ".join(f"{_count(count, 'file')} {what}" for count, what in told if count)


def _lag_text(one: ConnectorProgress) -> str:
    if not one.partitions:
        return "not known while it is stopped" if one.status.state is State.STOPPED else "not known"
    waiting = [partition for partition in one.partitions if partition.oldest_s is not None]
    text = f"{_count(sum(partition.lag for partition in one.partitions), 'record')} in "
    text += _count(len(one.partitions), "topic-partition")
    if waiting:
        oldest = max(waiting, key=lambda partition: partition.oldest_s or 0.0)
        text += f"; oldest unflushed {format_age(oldest.oldest_s)} ({oldest.topic} {oldest.partition})"
    away = sum(partition.away for partition in one.partitions)
    return text + (f"; {away:,} away" if away else "")


def _upload_text(upload: LastUpload, now_s: float) -> str:
    size = f"{_count(upload.rows, 'row')}, {format_size(upload.size_bytes)}"
    return (
        f"{_moment_text(upload.at_s, now_s)}: {upload.topic} {upload.partition}, offsets {upload.first_offset} to "
        f"{upload.last_offset}, {size if upload.size_bytes else _count(upload.rows, 'record')}"
    )


def _partition_row(one: PartitionProgress) -> tuple[str, ...]:
    rate = f"{one.records_per_s:,.0f}"
    return (
        f"    {one.topic}",
        str(one.partition),
        f"{one.lag:,}",
        format_age(one.oldest_s),
        rate,
        "away" if one.away else "",
    )


def _moment_text(at_s: float, now_s: float) -> str:
    """A time in UTC, and how long ago it is by this machine's clock."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC ({format_age(max(now_s - at_s, 0.0))} ago)"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
