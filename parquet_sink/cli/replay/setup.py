"""What a replay works with: the connector's settings, its history, what Kafka has, and so the plan."""

import argparse
import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from parquet_sink.archive.address import bucket_of, is_bucket, wrong
from parquet_sink.archive.opening import open_archive
from parquet_sink.archive.store import ArchivedFile
from parquet_sink.cli.beside import check_beside
from parquet_sink.config.declared import keys_of
from parquet_sink.errors import HistoryUnusable, InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.naming import parts_of
from parquet_sink.history.sqlite.store import read_history
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Known
from parquet_sink.net.settings import ClientCredentials
from parquet_sink.replay.choice import chosen
from parquet_sink.replay.copies import copies_of
from parquet_sink.replay.plan import Cutting, Past, ReplayPlan, make_plan, of_topic
from parquet_sink.replay.selection import Selection
from parquet_sink.replay.survey import past_of, survey
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state.sqlite.store import learned_of
from parquet_sink.targets.directory import address
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.keys import S3
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3 import settings as s3
from parquet_sink.targets.s3.settings import S3Settings
from parquet_sink.validate.preflight import inspect

log = logging.getLogger(__name__)

ENDPOINT: Final = "connect.ems.endpoint"
KEY: Final = "connect.ems.authorization.key"
TYPE: Final = "connect.ems.target.type"
CODEC: Final = "connect.ems.parquet.compression.codec"
_OF_CLIENTS: Final = tuple(key.name for key in keys_of(ClientCredentials))


def settings_for(args: argparse.Namespace, target: str | None) -> SinkSettings:
    """Of the connector file; with another target, where that is wanted. Raises InvalidConfiguration."""
    overrides = _overrides(target, args.target_key)
    if target is not None and is_bucket(target):  # files are those of the connector, whatever is usual for a bucket
        overrides[CODEC] = _settings(args, {}).files.codec
    settings = _settings(args, overrides)
    if overrides and not isinstance(settings.target, PushSettings | DirectorySettings | S3Settings):
        raise InvalidConfiguration(
            ["Invalid [--target]. The connector's class has a target of its own; give a connector file for the other."]
        )
    return settings


def _settings(args: argparse.Namespace, overrides: dict[str, str]) -> SinkSettings:
    checked = inspect(
        check_beside([args.connector], args.worker, bootstrap_servers=args.bootstrap_servers, overrides=overrides)
    )
    for warning in checked.warnings:
        log.debug("%s", warning)
    if overrides and checked.problems:
        raise InvalidConfiguration([_of_options(problem) for problem in checked.problems])
    (settings,) = checked.require()
    return settings


def _of_options(problem: str) -> str:
    """What is said of a key that an option took the place of is said of the option."""
    for key, option in (
        (ENDPOINT, "--target"),
        (KEY, "--target-key"),
        (s3.BUCKET, "--target"),
        (s3.PREFIX, "--target"),
    ):
        if problem.startswith(f"Invalid [{key}]"):
            return problem.rpartition(" (in ")[0].replace(key, option)
    return problem


def _overrides(target: str | None, key: str | None) -> dict[str, str]:
    """The connector's own credential is never sent to another address; that of S3 is for whichever bucket."""
    if target is None:
        return {}
    if address.is_directory(target):
        return {ENDPOINT: target}
    if is_bucket(target):
        if (reason := wrong(target)) is not None:
            raise InvalidConfiguration([f"Invalid [--target]. {reason}"])
        bucket, prefix = bucket_of(target)
        return {TYPE: S3, s3.BUCKET: bucket, s3.PREFIX: prefix or "{topic}"}
    if key is None:
        raise InvalidConfiguration(
            ["Invalid [--target-key]. It is missing; the connector's own credential is not sent to another address."]
        )
    return {ENDPOINT: target, **dict.fromkeys(_OF_CLIENTS, ""), KEY: key}


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
        log.warning("connector %s: %s Ranges are cut anew, and nothing is compared.", settings.name, error)
        return {}


def _learned(settings: SinkSettings) -> dict[str, Known]:
    return learned_of(Path(naming.connector_folder(settings.files.tmp_dir, settings.name), naming.STATE_FILE))
