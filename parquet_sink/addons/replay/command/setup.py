"""What a replay works with: the connector's settings, its history, what Kafka has, and so the plan."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from parquet_sink.addons.replay.copies import copies_of
from parquet_sink.addons.replay.plan import Cutting, Past, ReplayPlan, make_plan, of_topic
from parquet_sink.addons.replay.selection import Selection, chosen
from parquet_sink.addons.replay.survey import past_of, survey
from parquet_sink.archive.archive import ArchivedFile, open_archive
from parquet_sink.cli.beside import check_beside, given_settings
from parquet_sink.config.files import read_configuration
from parquet_sink.errors import HistoryUnusable, InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.naming import parts_of
from parquet_sink.files.settings import CODEC
from parquet_sink.history.sqlite import read_history
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite import learned_of
from parquet_sink.targets.target_class import PUSH, TYPE, TargetClass, find_target, of_address
from parquet_sink.validate.preflight import inspect

log = logging.getLogger(__name__)

KEY: Final = "connect.ems.authorization.key"
_BY_FILE: Final = (
    "Invalid [--resume]. The replay that was stopped goes to another target, whose key a worker is not given; go on "
    "with it on the worker's machine, with the connector file."
)
_OWN_TARGET: Final = (
    "Invalid [--target]. The connector's class has a target of its own; give a connector file for the other."
)


def settings_for(args: argparse.Namespace, target: str | None) -> SinkSettings:
    """Of the connector file; with another target, where that is wanted. Raises InvalidConfiguration."""
    if given := given_settings(args):
        if target is None:
            return given[0]
        raise InvalidConfiguration([_BY_FILE])
    if target is None:
        return _settings(args, {})
    found = of_address(target) or find_target(PUSH)
    overrides = _overrides(found, target, args.target_key)
    own_type = read_configuration(args.connector).properties.get(TYPE, "").strip().lower()
    if found.codec is not None or own_type not in ("", PUSH):  # files are those of the connector, wherever they go
        overrides[CODEC] = _settings(args, {}).files.codec
    settings = _settings(args, overrides)
    if found.settings_class is not None and not isinstance(settings.target, found.settings_class):
        raise InvalidConfiguration([_OWN_TARGET])
    return settings


def _settings(args: argparse.Namespace, overrides: dict[str, str]) -> SinkSettings:
    checked = inspect(
        check_beside([args.connector], args.worker, bootstrap_servers=args.bootstrap_servers, overrides=overrides)
    )
    for warning in checked.warnings:
        log.debug("%s", warning)
    if overrides and checked.problems:
        raise InvalidConfiguration([_of_options(problem, overrides) for problem in checked.problems])
    (settings,) = checked.require()
    return settings


def _of_options(problem: str, overrides: Mapping[str, str]) -> str:
    """What is said of a key that an option took the place of is said of the option."""
    key = problem.partition("]")[0].removeprefix("Invalid [")
    if key not in overrides:
        return problem
    if key == TYPE:  # a class of connectors may permit one type alone
        return _OWN_TARGET
    return problem.rpartition(" (in ")[0].replace(key, "--target-key" if key == KEY else "--target")


def _overrides(found: TargetClass, target: str, key: str | None) -> dict[str, str]:
    """The connector's own credential is never sent to another address; that of a bucket is for whichever bucket."""
    overrides = found.at(target)
    if overrides is None or (reason := found.wrong(target)) is not None:
        raise InvalidConfiguration([f"Invalid [--target]. {reason if overrides else 'It names no target.'}"])
    if KEY not in overrides:
        return {**overrides}
    if key is None:
        raise InvalidConfiguration(
            ["Invalid [--target-key]. It is missing; the connector's own credential is not sent to another address."]
        )
    return {**overrides, KEY: key}


def plan_for(settings: SinkSettings, selection: Selection, *, elsewhere: bool) -> ReplayPlan:
    """By what Kafka, the history and the archive have.

    Raises InvalidConfiguration for what is not there, KafkaFailed, ArchiveUnusable, HistoryUnusable where only a
    history helps.
    """
    archived = _archived(settings)
    found = survey(settings.kafka, selection, _ends(archived))
    past = _past(settings, list(found.held), needed=selection.by_files)
    files = {key: of_topic(past[key], held.topic_id).files for key, held in found.held.items() if key in past}
    copies = copies_of(archived, files)
    spans = chosen(selection, found, past, elsewhere=elsewhere, copies=copies)
    plan = make_plan(spans, found.held, past, Cutting(settings.flush, _learned(settings)), copies)
    if plan.missing and selection.named and not selection.skip_missing:
        raise InvalidConfiguration(_gone(settings, selection, plan))
    return plan


def _archived(settings: SinkSettings) -> list[ArchivedFile]:
    """What the connector's archive has; nothing without one."""
    if settings.archive is None:
        return []
    with closing(open_archive(settings.archive)) as archive:
        return list(archive.files())


def _ends(archived: Sequence[ArchivedFile]) -> dict[PartitionKey, int]:
    """The offset behind the last file of each topic-partition."""
    ends: dict[PartitionKey, int] = {}
    for parts in filter(None, (parts_of(one.where.rpartition("/")[2]) for one in archived)):
        key = parts.topic, parts.partition
        ends[key] = max(ends.get(key, 0), parts.last_offset + 1)
    return ends


def _gone(settings: SinkSettings, selection: Selection, plan: ReplayPlan) -> list[str]:
    option = "--from" if selection.first is not None else "--last" if selection.newest is not None else "--file"
    nor = ", nor has the archive" if settings.archive is not None else ""
    cure = "add --skip-missing to send the rest" if plan.ranges else "nothing of it is left, choose others"
    return [
        f"Invalid [{option}]. Kafka no longer has a part of what was chosen{nor}: {one}; {cure}."
        for one in plan.missing
    ]


def _past(settings: SinkSettings, keys: Sequence[PartitionKey], *, needed: bool) -> dict[PartitionKey, Past]:
    """What the history has, nothing without one. Where it is not needed, one that is torn is only told of."""
    path = Path(settings.history_file)
    if not path.exists():
        return {}
    try:
        with closing(read_history(path)) as history:
            return past_of(history, keys)
    except HistoryUnusable as error:
        if needed:
            raise
        log.warning("connector %s: %s Ranges are cut again, and nothing is compared.", settings.name, error)
        return {}


def _learned(settings: SinkSettings) -> dict[str, LearnedSchema]:
    return learned_of(Path(naming.connector_folder(settings.files.tmp_dir, settings.name), naming.STATE_FILE))
