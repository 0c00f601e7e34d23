"""Where a source stands, as an operator sees and sets it while nothing of it runs: what its offset storage has."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from parquet_sink.addons.sources.flow.positions import memory_of
from parquet_sink.addons.sources.flow.tasks import task_class
from parquet_sink.addons.sources.offsets.connect_form import text_of
from parquet_sink.addons.sources.offsets.storage import OffsetStorage, opened
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Judging
from parquet_sink.errors import WrongPlace
from parquet_sink.worker.herder.values import StoredOffset


class OfSource:
    """Implements `worker.loop.flow.StoredOffsets`."""

    def __init__(self, settings: SourceSettings) -> None:
        self._name, self._storage, self._task = settings.name, settings.storage, settings.task
        self._settings = settings

    def read(self) -> tuple[StoredOffset, ...]:
        if self._storage is None:
            return ()
        with self._opened() as storage:
            places = storage.read(self._name)
        return tuple(StoredOffset(json.loads(partition), place) for partition, place in places.items())

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        """A partition is meant as it is stored, whatever the order of its fields in the request.

        Raises WrongPlace, in Kafka Connect's words, for what the source's task could not begin with.
        """
        self._judge(offsets)
        with self._opened() as storage:
            known = [json.loads(one) for one in storage.read(self._name)]
            same = {text_of(one.partition): one for one in offsets}
            changes = {
                text_of(next((stored for stored in known if stored == one.partition), one.partition)): one.offset
                for one in same.values()
            }
            if None in changes.values():
                memory_of(self._settings, storage).forget()
            storage.write(self._name, changes)

    def reset(self) -> None:
        """What was remembered without any position would find an earlier file again, so it goes, too."""
        with self._opened() as storage:
            memory_of(self._settings, storage).forget()
            storage.write(self._name, dict.fromkeys(storage.read(self._name)))

    def _judge(self, offsets: Sequence[StoredOffset]) -> None:
        task = task_class(self._task)()
        if not isinstance(task, Judging):
            return
        for one in offsets:
            if one.offset is not None and (why := task.wrong_place(one.partition, one.offset)) is not None:
                raise WrongPlace(why)

    @contextmanager
    def _opened(self) -> Iterator[OffsetStorage]:
        if self._storage is None:
            raise WrongPlace(
                "Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used "
                "for input and offsets are not tracked."
            )
        with closing(opened(self._storage)) as storage:
            yield storage
