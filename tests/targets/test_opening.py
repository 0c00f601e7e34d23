"""Targets by their settings."""

from dataclasses import dataclass

from parquet_sink.config.secret import Secret
from parquet_sink.files.open_file import FinishedFile
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.uploader import target_for


def test_a_process_has_one_target_for_equal_settings() -> None:
    """Equal settings, built anew for each micro-batch, share connections; others do not."""
    one, equal, other = (PushSettings("https://x/i", Secret("AppKey k"), t) for t in ("t", "t", "u"))
    assert target_for(one) is target_for(equal)
    assert target_for(one) is not target_for(other)


@dataclass(frozen=True)
class OtherSettings:
    """Of a target that a connector class of another package brings."""

    target_table: str

    def open(self) -> "OtherTarget":
        return OtherTarget(self.target_table)


class OtherTarget:
    """Takes everything, and keeps nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        return Outcome(Verdict.ACCEPTED, "taken")

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "there")

    def close(self) -> None:
        pass


def test_other_settings_open_their_own_target() -> None:
    """Settings of a class that nobody here knows say what they stand for; equal ones share a target as others do."""
    target = target_for(OtherSettings("t"))
    assert isinstance(target, OtherTarget)
    assert target.name == "t"
    assert target_for(OtherSettings("t")) is target
    assert target_for(OtherSettings("u")) is not target
