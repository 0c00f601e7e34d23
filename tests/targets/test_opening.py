"""Targets by their settings."""

from parquet_sink.config.secret import Secret
from parquet_sink.targets.opening import target_for
from parquet_sink.targets.push.settings import PushSettings


def test_a_process_has_one_target_for_equal_settings() -> None:
    """Equal settings, built anew for each micro-batch, share connections; others do not."""
    one, equal, other = (PushSettings("https://x/i", Secret("AppKey k"), t) for t in ("t", "t", "u"))
    assert target_for(one) is target_for(equal)
    assert target_for(one) is not target_for(other)
