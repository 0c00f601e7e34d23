"""What can be known before Spark starts: every file, folder and client setting that a configuration names.

The files of a configuration were judged key by key before; here is what needs the machine and the libraries that will
use them. Nothing is connected to, made or written.
"""

import os
import ssl
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from parquet_sink.archive.settings import URL, ArchiveSettings, why_same
from parquet_sink.config.providers import without_provided
from parquet_sink.connectors.check import Checked
from parquet_sink.connectors.kinds import part
from parquet_sink.connectors.loading import Loaded
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.settings import TMP_DIR
from parquet_sink.kafka.client.check import dead_letter_problems
from parquet_sink.kafka.client.check import problems as client_problems
from parquet_sink.kafka.client_settings import Client
from parquet_sink.kafka.settings import NAME_KEY, DeadLetterSettings, KafkaSettings
from parquet_sink.parked.names import any_parked
from parquet_sink.parked.settings import DIR, MAX_BYTES
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.settings import TargetSettings, may_pass, place_of, problems_of
from parquet_sink.worker_config.worker import STORE_FOLDER, Worker

_TLS = "schema.registry.ssl."
_PROTOCOL = "security.protocol"


@dataclass(kw_only=True)
class Found:
    """Problems by whose they are, each once, in the order in which they were found. warnings: the connector's.

    passing: those of the connector's folders, which may be mounted again. defaults: of the worker file. on_cluster,
    keeps: as of `inspect`.
    """

    defaults: Worker
    environment: Mapping[str, str]
    on_cluster: bool
    keeps: bool
    connector: dict[str, None] = field(default_factory=dict)
    worker: dict[str, None] = field(default_factory=dict)
    machine: dict[str, None] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    def note_folder(self, problem: str) -> None:
        """Note a problem of a folder, which may pass without a change of the configuration."""
        self.connector[problem] = None
        self.passing.add(problem)


def inspect(
    checked: Checked, environment: Mapping[str, str] = os.environ, *, on_cluster: bool = False, keeps: bool = True
) -> Checked:
    """The same with every problem that the machine and the libraries know of. Raises nothing.

    A problem of the worker file or of the environment is told once, however many connectors it concerns. on_cluster:
    whether Spark's tasks run on other machines. keeps: whether the program will keep anything on this machine; if not,
    `tmp.dir` and the folder of parked records are not looked at.
    """
    defaults = checked.worker.worker
    worker, machine = dict.fromkeys(checked.worker.problems), dict.fromkeys(checked.shared)
    connectors: list[Loaded] = []
    for loaded in checked.connectors:
        found = Found(
            defaults=defaults,
            environment=environment,
            on_cluster=on_cluster,
            keeps=keeps,
            worker=worker,
            machine=machine,
        )
        if loaded.settings is not None:
            _inspect(loaded.settings, found)
        connectors.append(_with_found(loaded, found))
    problems = without_provided(worker, checked.worker.resolved)
    return Checked(replace(checked.worker, problems=problems), tuple(connectors), tuple(machine))


def _with_found(loaded: Loaded, found: Found) -> Loaded:
    """Return the connector with its problems and warnings; it is tried again if all its problems may pass."""
    told = (without_provided(texts, loaded.resolved) for texts in (found.connector, found.warnings))
    own, warnings = (*loaded.problems, *next(told)), (*loaded.warnings, *next(told))
    settings, again = loaded.settings, loaded.again
    if settings is not None and own and found.connector.keys() <= found.passing:
        again = settings.restart
    return replace(loaded, problems=own, warnings=warnings, settings=None if own else settings, again=again)


def _inspect(settings: ConnectorSettings, found: Found) -> None:
    if found.keeps:
        _tmp_dir(settings, found)
    part(settings, "problems")(settings, found)


def _tmp_dir(settings: ConnectorSettings, found: Found) -> None:
    reason = _unusable(settings.tmp_dir, settings.name)
    if reason is not None:
        found.note_folder(f"Invalid [connect.ems.tmp.dir]. {reason}")
    elif (told := _may_be_emptied(settings.tmp_dir, found.defaults)) is not None:
        found.warnings.append(told)


def sink_problems(settings: SinkSettings, found: Found) -> None:
    """Adds those of a sink that writes Parquet files."""
    _topics(settings, found)
    found.connector |= dict.fromkeys(filter(None, map(settings.why_unusable, settings.kafka.topics)))
    _note(settings.target, problems_of(settings.target, found.environment), found)
    if settings.archive is not None:
        _archive(settings.archive, settings.target, found)
    if found.keeps:
        _parked(settings, tempfile.gettempdir(), found)


def record_sink_problems(settings: RecordSinkSettings, found: Found) -> None:
    """Adds those of a sink that takes records."""
    _topics(settings, found)
    _note(settings.sink, settings.sink.problems(), found)


def _topics(settings: SinkSettings | RecordSinkSettings, found: Found) -> None:
    """What any sink has: clients of Kafka, and registries."""
    if not _kafka(settings.kafka, found) and settings.errors.dead_letters is not None:
        check_producer(settings.errors.dead_letters, found)
    for side, converter in (("value", settings.value), ("key", settings.key)):
        if converter is not None and (registry := converter.schema_registry) is not None:
            _registry(side, registry, found)


def _kafka(kafka: KafkaSettings, found: Found) -> bool:
    """Whether there are any. A setting is the connector's own, unless the worker file has the very same."""
    problems = client_problems(kafka)
    for name, reason in problems:
        shared = _is_of_worker(name, kafka.client, found.defaults.consumer)
        prefix = "consumer." if shared else "consumer.override."
        (found.worker if shared else found.connector)[f"Invalid [{prefix}{name or '*'}]. {reason}"] = None
    return bool(problems)


def _is_of_worker(name: str, given: Client, of_worker: Client) -> bool:
    """Whether a setting is the worker's. One that is missing belongs where signing in is set up."""
    name = name if name in given else _PROTOCOL
    return name in of_worker and of_worker[name] == given.get(name)


def check_producer(settings: DeadLetterSettings, found: Found) -> None:
    """Adds what is wrong with the clients that write records. What they share with a consumer was judged before."""
    defaults = found.defaults
    for client, name, reason in dead_letter_problems(settings):
        given, of_worker = (
            (settings.producer, defaults.producer) if client == "producer" else (settings.admin, defaults.admin)
        )
        shared = _is_of_worker(name, given, of_worker)
        prefix = f"{client}." if shared else f"{client}.override."
        (found.worker if shared else found.connector)[f"Invalid [{prefix}{name or '*'}]. {reason}"] = None


def _archive(archive: ArchiveSettings, target: TargetSettings, found: Found) -> None:
    """Whether it can be used, and is another place than the target's also where names tell nothing."""
    problems = [*archive.place.problems(found.environment)]
    _note(archive.place, problems, found)
    place = place_of(target)
    reason = None if problems or place is None else why_same(_real(archive.address), _real(place), archive.address)
    if reason is not None:
        found.connector[f"Invalid [{URL}]. {reason}"] = None


def _real(address: str) -> str:
    """An address with a path of this machine without links in it."""
    scheme, _, path = address.partition(":")
    return f"{scheme}:{os.path.realpath(path)}" if path.startswith("/") and not path.startswith("//") else address


def _note(place: object, problems: Iterable[str], found: Found) -> None:
    """What is told of a variable of the environment is not the connector's."""
    for text in problems:
        variable = text.partition("]")[0].removeprefix("Invalid [")
        if variable in found.environment:
            found.machine[text] = None
        elif may_pass(place):
            found.note_folder(text)
        else:
            found.connector[text] = None


def _registry(side: str, registry: RegistrySettings, found: Found) -> None:
    from parquet_sink.convert.registry.http import registry_context  # half a second, for few connectors

    prefix = f"{side}.converter."
    shared = any(name.startswith(f"{prefix}{_TLS}") for name in found.defaults.converters.given)
    for one in (replace(registry, certificate_file=None), replace(registry, ca_file=None)):
        for text in _problems(partial(registry_context, one)):
            named = text.replace(f"[{_TLS}", f"[{prefix}{_TLS}", 1)
            (found.worker if shared else found.connector)[named] = None


def _problems(make: Callable[[], ssl.SSLContext]) -> Iterator[str]:
    try:
        make()
    except InvalidConfiguration as error:
        yield from error.problems


def _parked(settings: SinkSettings, system_tmp: str, found: Found) -> None:
    """Whether parked records can be kept, and whether there are some. system_tmp: the system's temporary folder."""
    base = settings.parked.base
    if settings.errors.parks and base is not None:
        reason = _unusable(base, settings.name)
        if reason is not None:
            found.note_folder(f"Invalid [{DIR}]. {reason}")
            return
    if settings.errors.parks and base is None and settings.files.tmp_dir == system_tmp:
        found.warnings.append(
            f"Warning [{DIR}]. It is missing, so diverted records are kept in the system's temporary "
            f"folder, {system_tmp}, which the system may empty; name a folder that stays."
        )
    if any_parked(settings.parked_folder):
        found.warnings.append(f"Warning [{DIR}]. {_waiting(settings)}")
    if found.on_cluster and settings.errors.parks and base is None:
        found.warnings.append(
            f"Warning [{DIR}]. It is missing, so connector {settings.name} parks records in {settings.parked_folder}, "
            f"which other machines of a Spark cluster do not have; there it stops at the first record to be parked. "
            f"Name a folder that all of them share, or a dead-letter topic ({NAME_KEY})."
        )


def _waiting(settings: SinkSettings) -> str:
    from parquet_sink.parked.scan import scan  # loads Arrow, where there is something to count

    found = scan(settings.parked_folder)
    share = 100 * found.size_bytes / max(settings.parked.max_bytes, 1)
    skipped = f", beside {len(found.skipped):,} files that are none of ours or torn" if found.skipped else ""
    one = found.rows == 1
    return (
        f"{found.rows:,} record{'' if one else 's'} of the connector {'is' if one else 'are'} parked in "
        f"{settings.parked_folder}{skipped} ({share:.0f} % of {MAX_BYTES}): parquet-sink parked list says why; correct "
        f"the cause, then parquet-sink parked replay sends them; parquet-sink parked drop removes what cannot be "
        f"corrected."
    )


def _unusable(tmp_dir: str, connector: str) -> str | None:
    """Why `tmp.dir`, or the connector's folder in it, cannot be used, with the cure; None for no reason.

    A disk that is full now is no reason: that may pass.
    """
    return _base_problem(tmp_dir) or _own_problem(naming.connector_folder(tmp_dir, connector))


def _may_be_emptied(tmp_dir: str, worker: Worker) -> str | None:
    """A warning for a folder that the system empties, as it does with what is below /tmp; None for another one.

    It names the worker's key where the folder is below that of the worker's connectors.
    """
    if os.path.realpath(tmp_dir).split(os.sep)[1:2] != ["tmp"]:
        return None
    store = worker.machine.absolute(worker.store_folder or os.sep)
    hosted = tmp_dir == worker.machine.tmp_dir and store != os.sep and tmp_dir.startswith(store + os.sep)
    key, where = (STORE_FOLDER, " in the worker file") if hosted else (TMP_DIR, "")
    return (
        f"Warning [{key}]. {tmp_dir} holds the connector's lock, state and history, and many systems remove what is "
        "below /tmp when they start, or when it is some days old. Name a folder that stays, such as one below "
        f"/var/lib{where}."
    )


def _base_problem(tmp_dir: str) -> str | None:
    place = os.path.abspath(tmp_dir)
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is not a folder; name a folder, or one that can be made."
    if not os.access(place, os.W_OK | os.X_OK):
        what = "Folder" if place == os.path.abspath(tmp_dir) else f"Folder {tmp_dir} is not there, and"
        return f"{what} {place} cannot be written by this user; make it writable, or name another folder."
    return None


def _own_problem(folder: str) -> str | None:
    """`tmp.dir` may be open to everybody, so what others have put there is not used."""
    try:
        found = os.lstat(folder)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"{folder} is a symbolic link, so it is not used; remove it, or name a folder of your own."
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder; remove it, or name another folder."
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to another user, so it is not used; remove it, or name a folder of your own."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written; give this user the right to, or name another folder."
    return None
