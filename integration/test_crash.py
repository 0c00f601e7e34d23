"""The short form of `make crash`."""

from pathlib import Path

import pytest

from integration.crash.__main__ import campaign
from integration.crash.kills import Kind
from integration.crash.report import Sizes
from integration.oracle.records import (
    is_dropped,
    value_of,
)
from integration.s3.site import S3Site
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess


@pytest.mark.slow
@pytest.mark.parametrize(("raw", "archive"), [(False, "required"), (True, "behind")], ids=["shaped", "raw"])
@pytest.mark.timeout(1_200)  # about a minute where it is quiet; every start of the sink takes longer where it is not
def test_kill_9_loses_alters_and_invents_nothing(raw: bool, archive: str, tmp_path: Path) -> None:
    """Whichever process is killed, every record arrives, the archive has what was accepted, SIGTERM is clean."""
    sizes = Sizes(kills=len(Kind), records=2_000, seed=6, raw=raw, archive=archive)
    with Broker() as broker, TargetProcess(tmp_path / "target", deleted_column="__deleted") as target:
        report = campaign(sizes, broker, target, tmp_path)
    assert report.passed, "\n".join([report.summary(), *report.lines()])
    assert {hit.kind for hit in report.hits} == set(Kind)
    assert any(is_dropped(number) and value_of(number) is None for number in range(report.records))
    assert "parquet-sink: Spark's Java process ended" in (tmp_path / "sink.log").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_kill_9_loses_alters_and_invents_nothing_in_a_bucket(tmp_path: Path) -> None:
    """Nor does it leave parts of unfinished uploads; what killed the target cuts everybody off from it."""
    sizes = Sizes(kills=len(Kind), records=2_000, seed=7)
    with Broker() as broker, S3Site() as target:
        report = campaign(sizes, broker, target, tmp_path)
    assert report.passed, "\n".join([report.summary(), *report.lines()])
    assert {hit.kind for hit in report.hits} == set(Kind)
