"""From the options to the report: where the load comes from, what is simulated, what is recommended."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.addons.tune import evidence
from parquet_sink.addons.tune.command.report import Report
from parquet_sink.addons.tune.declared_load import DeclaredLoad, load_of
from parquet_sink.addons.tune.evidence import Evidence
from parquet_sink.addons.tune.grid import grid, sweep
from parquet_sink.addons.tune.model import Durations, Machine, Simulated, Thresholds
from parquet_sink.addons.tune.objectives import Aim, Objective, percentile_of
from parquet_sink.addons.tune.pareto_front import choose
from parquet_sink.addons.tune.plot import Picture
from parquet_sink.addons.tune.reasons import described
from parquet_sink.addons.tune.sampling import Progress
from parquet_sink.addons.tune.simulate import Simulator
from parquet_sink.process.usage import usable_cores
from parquet_sink.settings.sink import SinkSettings

MOST_READ: Final = 500_000
"""Records of a sample, where --records does not say how many."""

DEFAULT_SAMPLE_S: Final = 600.0
USUAL_SIZE: Final = 10_000_000
USUAL_RECORDS: Final = 100_000


def tuned(
    args: argparse.Namespace, settings: SinkSettings | None, now_ms: int, progress: Progress
) -> tuple[Report, Picture]:
    """The report, and what would be drawn of it. Raises NothingSampled, KafkaFailed, ConnectorError, SetupError."""
    found = _evidence(args, settings, now_ms, progress)
    machine = machine_of(args, settings)
    objectives = _objectives(args)
    present = None if settings is None else settings.flush
    simulator = Simulator(found.load, found.durations, machine)
    settings_tried = grid(objectives, present)
    results = sweep(simulator, settings_tried, lambda done, of: progress("simulating settings", done, of))
    choice = choose(results, objectives, found.load)
    front, chosen = [roomy(one, results, present) for one in choice.front], roomy(choice.chosen, results, present)
    now = None if present is None else next(one for one in results if one.thresholds == present)
    kept = [(described(objective), well) for objective, well in zip(objectives, choice.kept, strict=True)]
    report = Report(
        evidence=found,
        machine=machine,
        objectives=kept,
        front=front,
        chosen=chosen,
        present=now,
        why=choice.why,
        limits=choice.limits,
        tried=len(results),
        as_json=is_json_name(args.file),
    )
    return report, _picture(report, results, objectives)


def roomy(one: Simulated, results: Sequence[Simulated], present: Thresholds | None) -> Simulated:
    """Of settings that give the very same, those whose records and bytes are as they are now, or of a usual size.

    What ends no file under this load ends files after an outage: with the lowest thresholds a backlog would become
    thousands of small ones.
    """
    usual = Thresholds(USUAL_SIZE, USUAL_RECORDS, one.thresholds.commit_interval_ms) if present is None else present
    same = [other for other in results if replace(other, thresholds=one.thresholds) == one]
    return min(same, key=lambda other: _far(other.thresholds, usual), default=one)


def _far(one: Thresholds, usual: Thresholds) -> float:
    """How many times larger or smaller its records and bytes are."""
    return abs(math.log(one.commit_records / usual.commit_records)) + abs(
        math.log(one.commit_size_bytes / usual.commit_size_bytes)
    )


def is_json_name(path: str | None) -> bool:
    """Whether what is to be pasted goes into a file of JSON."""
    return path is not None and path.lower().endswith(".json")


def _objectives(args: argparse.Namespace) -> list[Objective]:
    """In the order in which they were given."""
    found = []
    for name in getattr(args, "order", ()):
        if name == "freshness":
            of, seconds = args.freshness
            found.append(Objective(Aim.FRESHNESS, seconds, of))
        elif name == "max_files_per_hour":
            found.append(Objective(Aim.FILES_PER_HOUR, args.max_files_per_hour))
        else:
            found.append(Objective(Aim.FILE_SIZE, float(args.file_size)))
    return found


def _picture(report: Report, results: Sequence[Simulated], objectives: Sequence[Objective]) -> Picture:
    value = {objective.aim: objective.value for objective in objectives}
    return Picture(
        title=report.evidence.load.described,
        tried=results,
        front=report.front,
        chosen=report.chosen,
        present=report.present,
        freshness=percentile_of(objectives),
        freshness_s=value.get(Aim.FRESHNESS),
        files_per_hour=value.get(Aim.FILES_PER_HOUR),
    )


def _evidence(args: argparse.Namespace, settings: SinkSettings | None, now_ms: int, progress: Progress) -> Evidence:
    """The load, with durations as they were measured or given."""
    if args.rate is not None:
        declared = DeclaredLoad(
            args.rate,
            args.record_bytes,
            args.partitions,
            args.bursts,
            args.parquet_bytes,
            args.skew or 0.0,
        )
        found = Evidence(load_of(declared), Durations())
    else:
        assert settings is not None
        if args.history is not None:
            found = evidence.from_history(settings, args.history or None, now_ms)
        else:
            found = _sampled(args, settings, now_ms, progress)
    if settings is not None:
        found = evidence.with_measured(found, settings)
    return _with_given(args, found)


def _sampled(args: argparse.Namespace, settings: SinkSettings, now_ms: int, progress: Progress) -> Evidence:
    within_s = DEFAULT_SAMPLE_S if args.sample is None and args.records is None else args.sample
    most = args.records or MOST_READ
    return evidence.from_topics(settings, within_s=within_s, most_records=most, now_ms=now_ms, progress=progress)


def _with_given(args: argparse.Namespace, found: Evidence) -> Evidence:
    """What the operator says of durations wins."""
    at, uploads = found.durations, args.upload is not None or args.upload_speed is not None
    if args.upload is not None:
        at = replace(at, upload_ms=args.upload * 1000)
    if args.upload_speed is not None:
        at = replace(at, upload_bytes_per_s=float(args.upload_speed))
    if args.batch is not None:
        share = args.batch * 1000 / (at.plan_ms + at.finish_ms)
        at = replace(at, plan_ms=at.plan_ms * share, finish_ms=at.finish_ms * share)
    return replace(
        found,
        durations=at,
        uploads="given" if uploads else found.uploads,
        batches="given" if args.batch is not None else found.batches,
    )


def machine_of(args: argparse.Namespace, settings: SinkSettings | None) -> Machine:
    """As the options say; slots as the sink takes them by itself, if they do not."""
    slots = args.slots or evidence.slots_of(args.connectors)
    tasks_max = None if settings is None else settings.kafka.tasks_max
    return Machine(slots, usable_cores(), args.connectors, tasks_max)
