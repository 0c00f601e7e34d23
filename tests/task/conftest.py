"""A Spark task to run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink.kafka.several_ranges import ReadAhead, ReadInTurn
from parquet_sink.task import task as task_module
from tests.spark_task import SparkTask
from tests.task.fakes import Run


@pytest.fixture
def spark_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkTask]:
    """A connector with a real target, to which records are produced, and whose tasks run in this thread."""
    task = SparkTask(tmp_path, monkeypatch)
    yield task
    task.close()


@pytest.fixture(params=[ReadInTurn, ReadAhead])
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """One task over batches that a test makes, against a target that answers as it is told; in one thread or three."""
    monkeypatch.setattr(task_module, "reading", request.param)
    return Run(tmp_path)
