"""The sink broken on purpose: mends of defects that lost or altered records, taken out again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.storage import remove_unsent
from parquet_sink.planner.range_plans import RangePlans
from parquet_sink.planner.start_offsets import StartOffsets
from parquet_sink.planner.unavailable import EndOffsets
from parquet_sink.state.database import Database
from parquet_sink.targets import uploader
from parquet_sink.task.range_flush import RangeFlush
from parquet_sink.task.task import TaskFlush

Breaks = Callable[[pytest.MonkeyPatch], None]


def unreported_is_done(patch: pytest.MonkeyPatch) -> None:
    """A state file that was removed is made again by whoever needs it, and a range that it does not name is done."""
    real = Database.__init__

    def opened(self: Database, path: str | Path, expected: Any = None) -> None:
        real(self, path)

    def removed(self: Database) -> Sequence[Path]:
        return [] if self._path.exists() else [self._path]

    def reports(self: RangePlans, ended: Any) -> Any:
        return {(one.topic, one.partition): one for one in self._context.state.accepted()}

    patch.setattr(Database, "__init__", opened)
    patch.setattr(Database, "removed", removed)
    patch.setattr(RangePlans, "_reports", reports)


def range_stays_as_planned(patch: pytest.MonkeyPatch) -> None:
    """A range comes again as it was planned, also where a file that ends in the middle of its own was committed."""
    real = TaskFlush.__init__

    def made(self: TaskFlush, *args: Any, **named: Any) -> None:
        real(self, *args, **{**named, "replans": False})

    def send(self: RangeFlush, files: Sequence[FinishedFile]) -> None:
        for file in files:
            unsent = file.last_offset < self.planned.accepted
            if unsent or self.ended or not self._uploader.submit(self._upload(file)):
                remove_unsent(file.path)

    patch.setattr(TaskFlush, "__init__", made)
    patch.setattr(RangeFlush, "_send", send)


def conflict_is_of_the_file(patch: pytest.MonkeyPatch) -> None:
    """An answer of 409 is always about what is in a file."""
    patch.setattr(uploader, "_in_doubt", lambda file, sent, reset: sent.outcome)


def deleted_beginning_ends_a_range(patch: pytest.MonkeyPatch) -> None:
    """A start whose offset retention has deleted cuts what is left of the range anew."""
    real = StartOffsets.resolve

    def resolve(self: StartOffsets, keys: Any, *more: Any) -> Any:
        starts, plans = real(self, keys, *more)
        committed = self._group.read(keys)
        return starts, {key: plan for key, plan in plans.items() if committed[key].offset == starts[key]}

    patch.setattr(StartOffsets, "resolve", resolve)


def drain_ends_at_open_transactions(patch: pytest.MonkeyPatch) -> None:
    """The end of a topic-partition is up to where it may be read."""
    real = EndOffsets.fetch

    def fetch(self: EndOffsets, keys: Any, starts: Any) -> Any:
        self.highs = real(self, keys, starts)
        return self.highs

    patch.setattr(EndOffsets, "fetch", fetch)


def latest_is_of_each_start(patch: pytest.MonkeyPatch) -> None:
    """With `auto.offset.reset=latest` whatever has no committed offset begins at its end."""
    real = StartOffsets._reset

    def reset_offset(self: StartOffsets, key: Any, reset: str, first: int, last: int) -> int:
        return real(self, key, self._kafka.offset_reset, first, last)

    patch.setattr(StartOffsets, "_reset", reset_offset)
    patch.setattr(StartOffsets, "_is_forgotten", lambda *args: False)


def forgotten_group_is_new(patch: pytest.MonkeyPatch) -> None:
    """A group without offsets is one that never had any."""
    patch.setattr(StartOffsets, "_is_forgotten", lambda *args: False)


BROKEN: dict[str, Breaks] = {
    "the state file is removed during an upload that is to be tried again": unreported_is_done,
    "a record that stopped the connector is good at the next start": range_stays_as_planned,
    "a target that knows names says so after a lost answer": conflict_is_of_the_file,
    "a target that knows names says so after a crash": conflict_is_of_the_file,
    "retention takes the beginning of a range that is sent before a crash": deleted_beginning_ends_a_range,
    "a drain ends while a transaction is open": drain_ends_at_open_transactions,
    "a topic-partition is added while a connector of the latest records is stopped": latest_is_of_each_start,
    "the brokers forget a group of the latest records": latest_is_of_each_start,
    "the brokers forget a group": forgotten_group_is_new,
}
"""By the name of the known life that finds it."""
RARE = {"retention takes the beginning of a range that is sent before a crash"}
"""Those that random lives find once in some thousand."""
