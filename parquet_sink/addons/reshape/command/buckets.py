"""Buckets that a reshape reads or fills, each opened once."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from parquet_sink.addons.reshape.command.settings import access
from parquet_sink.targets.s3.client import connect
from parquet_sink.targets.s3.objects import Objects


class Buckets:
    """Of one connector file, which says how they are reached. A context manager."""

    def __init__(self, connector: str, worker: str | None) -> None:
        self._connector, self._worker = connector, worker
        self._opened: dict[str, Objects] = {}

    def open(self, bucket: str) -> Objects:
        """Raises InvalidConfiguration, SetupError without boto3."""
        if bucket not in self._opened:
            settings = access(self._connector, self._worker, bucket)
            self._opened[bucket] = Objects(settings, connect(settings))
        return self._opened[bucket]

    @property
    def opened(self) -> Mapping[str, Objects]:
        """By name."""
        return self._opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._opened.values():
            one.close()
