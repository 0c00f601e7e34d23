"""Tries what a connector names, for `parquet-sink check --connect`: brokers, topics, group, registry, tmp.dir, target.

Nothing is read from topics, committed, or stored at the target. Each finding is one line: what was tried, whether it
is as it should be, and the cure where it is not.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, TypeVar

from parquet_sink.archive.archive import Archive, open_archive
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.connectors.kinds import find_kind
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.errors import InvalidConfiguration, RegistryFailed, StorageFailed
from parquet_sink.files.lock import require_locks
from parquet_sink.files.storage import free_space, prepare
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.plugins import named
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Health, ProbeResult
from parquet_sink.targets.settings import Target, TargetSettings, probe_topic
from parquet_sink.validate.probe_kafka import Finding, probe_dead_letters, probe_kafka

TARGET_S: Final = 20.0
T = TypeVar("T", Target, Archive)


def probe(settings: ConnectorSettings) -> Iterator[Finding]:
    """Tries everything, in the order in which `run` would need it; each wait is bounded."""
    found: str = find_kind(settings.kind).probe
    if found:
        yield from named(found)(settings)


def probe_sink(settings: SinkSettings) -> Iterator[Finding]:
    """Of a sink that writes Parquet files."""
    topic = next(iter(settings.kafka.topics), "")
    for found in _probe_topics(settings, settings):
        topic = topic or found.topic
        yield found
    if settings.errors.parks:
        yield probe_parked(settings)
    yield probe_target(settings.target, topic, settings.table_of(topic) if topic else "")
    if settings.archive is not None:
        yield probe_archive(settings.archive)
    if settings.notify is not None:
        yield from probe_notices(settings.notify)


def probe_record_sink(settings: RecordSinkSettings) -> Iterator[Finding]:
    """Of a sink that takes records."""
    yield from _probe_topics(settings)
    found = settings.sink.probe(TARGET_S)
    yield Finding(found.health, f"sink {settings.sink.address}", found.text)


def _probe_topics(settings: SinkSettings | RecordSinkSettings, tables: SinkSettings | None = None) -> Iterator[Finding]:
    """What any sink has: brokers, topics, registries, a folder. tables: where topics have tables."""
    yield from probe_kafka(settings.kafka, tables)
    if (letters := settings.errors.dead_letters) is not None:
        fine, text = probe_dead_letters(letters)
        yield Finding(Health.OK if fine else Health.FAILED, f"dead-letter topic {letters.topic}", text)
    yield from probe_registries(settings)
    yield probe_folder(settings.tmp_dir)


def probe_registries(settings: SinkSettings | RecordSinkSettings) -> Iterator[Finding]:
    """Asks each schema registry that a converter names for a schema, whichever it is."""
    named = (settings.value.schema_registry, settings.key.schema_registry if settings.key else None)
    for registry in dict.fromkeys(found for found in named if found is not None):
        yield probe_registry(registry)


def probe_registry(settings: RegistrySettings) -> Finding:
    """Whether a registry answers, lets us in and has schemas to ask for."""
    from parquet_sink.convert.registry import client as registry

    item = "schema registry"
    try:
        item = f"{item} {registry.shown(settings)}"
        return Finding(Health.OK, item, registry.probe(settings))
    except (InvalidConfiguration, RegistryFailed) as error:
        return Finding(Health.FAILED, item, str(error))


def probe_folder(tmp_dir: str) -> Finding:
    """Whether the folder for temporary files can be made and written."""
    try:
        prepare(tmp_dir)
        require_locks(tmp_dir, tmp_dir)
    except StorageFailed as error:
        return Finding(Health.FAILED, "tmp.dir", str(error))
    return Finding(Health.OK, "tmp.dir", f"{tmp_dir} can be written, {free_space(tmp_dir)}")


def probe_parked(settings: SinkSettings) -> Finding:
    """Whether the folder for records that are passed over can be made and written."""
    from parquet_sink.parked.folder import ParkedFolder

    folder = settings.parked_folder
    try:
        ParkedFolder(folder, settings.name, settings.parked.max_bytes).prepare()
    except StorageFailed as error:
        return Finding(Health.FAILED, "parked.dir", str(error))
    return Finding(Health.OK, "parked.dir", f"{folder} can be written, {free_space(folder)}")


def probe_notices(settings: NotifySettings) -> Iterator[Finding]:
    """Whether the topic is there, and the webhook takes an event of another type."""
    from parquet_sink.notify.topic import TopicNotices
    from parquet_sink.notify.webhook import Webhook

    try:
        if settings.topic is not None:
            found = TopicNotices(settings).probe()
            yield Finding(found.health, f"topic for notices {settings.topic}", found.text)
        if settings.url is not None:
            with closing(Webhook(settings)) as webhook:
                found = webhook.probe()
            yield Finding(found.health, f"webhook for notices {settings.url}", found.text)
    except InvalidConfiguration as error:
        yield Finding(Health.FAILED, "notices", str(error))


def probe_archive(settings: ArchiveSettings) -> Finding:
    """What the archive itself finds when it is tried; nothing is kept there."""
    return _tried("archive", lambda: open_archive(settings), lambda archive: archive.probe(TARGET_S))


def probe_target(settings: TargetSettings, topic: str = "", table: str = "") -> Finding:
    """What the target itself finds when it is tried, as for a file of this topic; nothing is stored there."""
    return _tried("target", settings.open, lambda target: probe_topic(target, topic, table, TARGET_S))


def _tried(what: str, opened: Callable[[], T], tried: Callable[[T], ProbeResult]) -> Finding:
    try:
        target = opened()
    except InvalidConfiguration as error:
        return Finding(Health.FAILED, what, str(error))
    with closing(target):
        result = tried(target)
    return Finding(result.health, f"{what} {target.name}", result.text)
