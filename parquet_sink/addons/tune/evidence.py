"""The load and the durations that a simulation starts from, from where the operator says: topics, history, or words."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from parquet_sink.addons.tune import past
from parquet_sink.addons.tune.measured import durations_of
from parquet_sink.addons.tune.model import Arrivals, Durations, Load, PartitionLoad, arrivals_of, between_marks
from parquet_sink.addons.tune.parquet_sizes import Measured, measure
from parquet_sink.addons.tune.quantities import duration_text
from parquet_sink.addons.tune.sampling import PartitionSample, Progress, Sample, sample
from parquet_sink.errors import HistoryUnusable, NothingSampled
from parquet_sink.files import naming
from parquet_sink.history.records import UploadRecord
from parquet_sink.history.sqlite import read_history
from parquet_sink.history.store import HistoryQuery
from parquet_sink.planner.admission import tick_ms
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite import events_of
from parquet_sink.task.record_steps import StopAtRejected, steps_for

READ_US: Final = 1.1
"""CPU time of taking a record from the Kafka client: measured, see `kafka.client.options.reader_options`."""
LEAST_TIMED: Final = 5_000
"""So few records say nothing of what one costs."""
UPLOADS_KNOWN: Final = 2_000
"""The latest uploads, of which their durations are taken."""


@dataclass(frozen=True)
class Evidence:
    """What is known. notes: what a reader should know of where it comes from, sentence by sentence.

    uploads, batches: where the durations of uploads and micro-batches come from. cost_us: CPU time of a record as
    measured, None for assumed. weighed: whether it is known how large records are in Kafka.
    """

    load: Load
    durations: Durations
    notes: tuple[str, ...] = ()
    uploads: str = ""
    batches: str = ""
    cost_us: float | None = None
    weighed: bool = True


def from_topics(
    settings: SinkSettings, *, within_s: float | None, most_records: int, now_ms: int, progress: Progress
) -> Evidence:
    """By reading the latest records. Raises NothingSampled, KafkaFailed, ConnectorError, SetupError."""
    steps = steps_for(settings, StopAtRejected())
    found = sample(
        settings.kafka, steps.needs, within_s=within_s, most_records=most_records, now_ms=now_ms, progress=progress
    )
    measured: dict[str, Measured] = {}
    for done, (topic, batches) in enumerate(sorted(found.kept.items()), 1):
        one = measure(settings, steps, batches)
        progress("writing Parquet of samples", done, len(found.kept))
        if one is not None:
            measured[topic] = one
    if not measured:
        raise NothingSampled(_no_rows(settings, found))
    load = _load(found, measured)
    cost = _cost_us(measured)
    durations = Durations() if cost is None else replace(Durations(), record_us=cost, cpu_record_us=cost)
    return Evidence(load, durations, _notes(found, measured, within_s), cost_us=cost)


def from_history(settings: SinkSettings, within_s: float | None, now_ms: int) -> Evidence:
    """By what was uploaded. Raises NothingSampled, HistoryUnusable."""
    since = None if within_s is None else now_ms - int(within_s * 1000)
    records = _history(settings, HistoryQuery(since_ms=since))
    where = naming.history_file(settings.files.tmp_dir, settings.name)
    if records is None:
        raise NothingSampled(
            f"Connector {settings.name} has no history in {where}: it has not run on this machine, or its history is "
            "off. Take a sample of the topics (--sample 10m), or state the load (--rate)."
        )
    when = "" if within_s is None else f" of the last {duration_text(within_s)}"
    found = past.load_of(records, f"The history in {where}{when}")
    notes = (f"{found.untimed:,} files without timestamps are left out",) if found.untimed else ()
    return Evidence(found.load, Durations(), notes, weighed=False)


def with_measured(evidence: Evidence, settings: SinkSettings) -> Evidence:
    """With how long micro-batches took in the connector's last run, and uploads by its history, where these tell."""
    return _with_uploads(_with_batches(evidence, settings), settings)


def _with_batches(evidence: Evidence, settings: SinkSettings) -> Evidence:
    folder = naming.connector_folder(settings.files.tmp_dir, settings.name)
    events = events_of(Path(folder) / naming.STATE_FILE)
    durations, batches = durations_of([events], evidence.durations, tick_ms(settings.flush))
    measured = f"{batches:,} micro-batches of the last run" if batches else ""
    return replace(evidence, durations=durations, batches=measured)


def _with_uploads(evidence: Evidence, settings: SinkSettings) -> Evidence:
    try:
        records = _history(settings, HistoryQuery(newest=UPLOADS_KNOWN))
    except HistoryUnusable:
        return evidence
    durations, uploads = past.durations_of(records or (), evidence.durations)
    return replace(evidence, durations=durations, uploads=uploads)


def _history(settings: SinkSettings, query: HistoryQuery) -> list[UploadRecord] | None:
    try:
        history = read_history(Path(naming.history_file(settings.files.tmp_dir, settings.name)))
    except FileNotFoundError:
        return None
    try:
        return list(history.files(query))
    finally:
        history.close()


def _load(found: Sample, measured: dict[str, Measured]) -> Load:
    """Topics without a row in their sample are left out."""
    span_ms = found.window.span_ms
    partitions = tuple(
        PartitionLoad(one.topic, one.partition, _arrivals(one, span_ms), measured[one.topic].sizes)
        for one in found.partitions
        if one.topic in measured
    )
    described = f"{found.window.offsets:,} records of {duration_text(span_ms / 1000)}"
    return Load(partitions, described, found.window.begin_ms)


def _arrivals(one: PartitionSample, span_ms: float) -> Arrivals:
    if one.offsets:
        return between_marks([at for at, _ in one.offsets], [count for _, count in one.offsets], span_ms)
    return arrivals_of(one.at_ms, span_ms)


def _cost_us(measured: dict[str, Measured]) -> float | None:
    """Of a record, on the average of what was written; None for too few to tell."""
    known = [(one.cpu_record_us, one.records) for one in measured.values() if one.cpu_record_us is not None]
    if sum(records for _, records in known) < LEAST_TIMED:
        return None
    costs, weights = zip(*known, strict=True)
    return READ_US + float(np.average(costs, weights=weights))


def _notes(found: Sample, measured: dict[str, Measured], within_s: float | None) -> tuple[str, ...]:
    notes = []
    if found.window.shortened and within_s is not None:
        notes.append(
            f"The topics hold nothing older: {duration_text(found.window.span_ms / 1000)} in place of "
            f"{duration_text(within_s)}"
        )
    if found.incomplete:
        notes.append(
            f"{found.records:,} of {found.window.offsets:,} records were read; of {found.incomplete} topic-partitions "
            "when the others came was asked of the broker (--records N reads more)"
        )
    for topic, one in measured.items():
        if one.rejected:
            notes.append(f"{one.rejected:,} of {one.records:,} sampled records of {topic} have no row ({one.why})")
    notes += [
        f"Topic {topic} is left out: none of its sampled records has a row"
        for topic in found.kept
        if topic not in measured
    ]
    return tuple(notes)


def _no_rows(settings: SinkSettings, found: Sample) -> str:
    topics = ", ".join(sorted(found.kept))
    return (
        f"None of the {found.records:,} records that were read of {topics} has a row, so no file would be written. "
        f"Look at one with `parquet-sink try --topic {min(found.kept)} --offset N`, and correct the connector file."
    )


def slots_of(connectors: int) -> int:
    """Spark's local slots for so many connectors: three more."""
    return connectors + 3
