"""How far a replay got, in a folder of the connector, so that it goes on where it was stopped; and one at a time.

The plan is written once, so that what goes on is what was begun; how far it got, after files were accepted. Losing it
costs a replay from the start, never a record.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from parquet_sink.addons.replay.plan import ReplayPlan, ReplayRange, range_from_dict, range_to_dict
from parquet_sink.errors import AnotherInstance, InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.storage import prepare_connector, storage_trouble
from parquet_sink.history.records import known_from_json, known_to_dict
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema

FORMAT: Final = 1
PLAN: Final = "plan.json"
PROGRESS: Final = "progress.json"
FILES: Final = "files"
LOCK: Final = ".lock"
NOTHING_BEGUN: Final = (
    "Invalid [--resume]. No replay of connector {connector} was stopped before its end; leave --resume out, and choose "
    "what to send."
)
UNREADABLE: Final = (
    "Invalid [--resume]. What is kept of the replay in {folder} cannot be read ({error}); leave --resume out, and "
    "choose again: files that were sent are sent again, which does no harm."
)


@dataclass(frozen=True)
class Order:
    """What is to be done. times: how often all of it is sent. target: its address, None for the connector's own.

    settings_digest, version: of the settings and the program that it was begun with.
    """

    plan: ReplayPlan
    times: int = 1
    target: str | None = None
    settings_digest: str = ""
    version: str = ""


@dataclass(frozen=True)
class Position:
    """Of one topic-partition within a round: ranges that are done, and how far the next one got.

    begin: where that range begins anew, behind a record that has no row; None for its own start. accepted: everything
    of it below is accepted; None for nothing yet.
    """

    done: int = 0
    begin: int | None = None
    accepted: int | None = None


@dataclass
class Progress:
    """round: the current one, from 1. known: what topics taught in this round. files, rows, size_bytes: accepted."""

    round: int = 1
    positions: dict[PartitionKey, Position] = field(default_factory=dict)
    known: dict[str, LearnedSchema] = field(default_factory=dict)
    files: int = 0
    rows: int = 0
    size_bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        places = [[*key, one.done, one.begin, one.accepted] for key, one in self.positions.items()]
        known = {topic: known_to_dict(one) for topic, one in self.known.items()}
        sums = {"files": self.files, "rows": self.rows, "size_bytes": self.size_bytes}
        return {"round": self.round, "positions": places, "known": known, **sums}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Progress":
        """The inverse of `to_dict`. Raises ValueError, KeyError or TypeError for anything else."""
        places = {(str(topic), int(number)): Position(*rest) for topic, number, *rest in fields["positions"]}
        known = {topic: known_from_json(json.dumps(one)) for topic, one in fields["known"].items()}
        sums = (int(fields[name]) for name in ("files", "rows", "size_bytes"))
        return cls(int(fields["round"]), places, known, *sums)


class Journal:
    """In the folder of one connector's replay."""

    def __init__(self, tmp_dir: str, connector: str) -> None:
        self._tmp_dir, self._connector = tmp_dir, connector
        self.folder = Path(naming.replay_journal_folder(tmp_dir, connector))

    @property
    def work_dir(self) -> str:
        """Where the replay makes its files."""
        return str(self.folder / FILES)

    @property
    def unfinished(self) -> bool:
        """Whether a replay was stopped before its end."""
        return (self.folder / PLAN).exists()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other replay of the connector runs on this machine within. Raises AnotherInstance, StorageFailed."""
        prepare_connector(self._tmp_dir, self._connector)
        with storage_trouble(str(self.folder), "open the lock file of replays"):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.folder / LOCK, flags, 0o600)
        try:
            self._lock(descriptor)
            shutil.rmtree(self.work_dir, ignore_errors=True)
            try:
                yield
            finally:
                shutil.rmtree(self.work_dir, ignore_errors=True)
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AnotherInstance(
                f"Connector {self._connector} is being replayed by another process already (lock file "
                f"{self.folder / LOCK}); nothing was sent. Wait until that has ended, or end it."
            ) from None

    def begin(self, order: Order) -> None:
        """Puts down what is to be done, in place of what was. Raises StorageFailed."""
        known = {one: number for number, one in enumerate(dict.fromkeys(r.planned.known for r in order.plan.ranges))}
        ranges = [[known[one.planned.known], range_to_dict(_without_known(one))] for one in order.plan.ranges]
        body = {**_without_plan(order), "format": FORMAT, "known": list(map(known_to_dict, known)), "ranges": ranges}
        self.forget()
        self._write(PLAN, body)

    def save(self, progress: Progress) -> None:
        """How far it got. Raises StorageFailed."""
        self._write(PROGRESS, progress.to_dict())

    def load(self) -> tuple[Order, Progress]:
        """What was begun, and how far it got. Raises InvalidConfiguration when nothing was, or it cannot be read."""
        if not self.unfinished:
            raise InvalidConfiguration([NOTHING_BEGUN.format(connector=self._connector)])
        try:
            body = json.loads((self.folder / PLAN).read_text(encoding="utf-8"))
            _check_format(body["format"])
            known = [known_from_json(json.dumps(one)) for one in body["known"]]
            ranges = tuple(_with_known(range_from_dict(one), known[number]) for number, one in body["ranges"])
            return Order(
                plan=ReplayPlan(ranges),
                times=int(body["times"]),
                target=body["target"],
                settings_digest=str(body["recipe"]),
                version=str(body["version"]),
            ), self._progress()
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidConfiguration([UNREADABLE.format(folder=self.folder, error=error)]) from None

    def _progress(self) -> Progress:
        path = self.folder / PROGRESS
        return Progress.from_dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Progress()

    def forget(self) -> None:
        """It has ended. Raises StorageFailed."""
        with storage_trouble(str(self.folder), "remove what is kept of a replay"):
            for name in (PLAN, PROGRESS):
                (self.folder / name).unlink(missing_ok=True)

    def _write(self, name: str, body: Mapping[str, Any]) -> None:
        """All of it or nothing, whenever the process ends."""
        path = self.folder / name
        with storage_trouble(str(self.folder), "note how far a replay got"):
            new = path.with_suffix(".new")
            new.write_text(json.dumps(body), encoding="utf-8")
            os.replace(new, path)


def _without_known(one: ReplayRange) -> ReplayRange:
    """What thousands of ranges have in common is written once."""
    return replace(one, planned=replace(one.planned, known=LearnedSchema()))


def _with_known(one: ReplayRange, known: LearnedSchema) -> ReplayRange:
    return replace(one, planned=replace(one.planned, known=known))


def _check_format(found: object) -> None:
    if found != FORMAT:
        raise ValueError("it is of another version")


def _without_plan(order: Order) -> dict[str, Any]:
    """The fields of an order beside its plan."""
    return {"times": order.times, "target": order.target, "recipe": order.settings_digest, "version": order.version}
