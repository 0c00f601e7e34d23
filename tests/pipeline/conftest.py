"""A Spark task to run."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.pipeline import task as module
from parquet_sink.pipeline.record_steps import RecordSteps
from parquet_sink.pipeline.settings import ErrorSettings
from parquet_sink.pipeline.task import TaskFlush
from parquet_sink.targets.settings import RetrySettings
from tests.pipeline.fakes import ONCE, FakeReader, Feed, Run, Target, made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs one task over ranges, each with its batches, against a target; outcomes by topic-partition."""

    def task(
        target: Target,
        *ranges: Feed,
        records: int = 1_000,
        retry: RetrySettings = ONCE,
        steps: RecordSteps | None = None,
        errors: ErrorSettings | None = None,
        replans: bool = False,
        repeated: bool = False,
    ) -> Any:
        monkeypatch.setattr(module, "target_for", lambda settings: target)
        monkeypatch.setattr(module, "RangeReader", partial(FakeReader, dict(ranges)))
        monkeypatch.setattr(module.SmallRanges, "take", lambda self, planned: None)
        settings = replace(made(tmp_path, records, retry), errors=errors or ErrorSettings())
        found = TaskFlush(settings, steps, replans=replans, repeated=repeated).run([planned for planned, _ in ranges])
        outcomes = {(one.planned.topic, one.planned.partition): one for one in found}
        assert len(outcomes) == len(found)
        return outcomes

    return task
