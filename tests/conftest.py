"""What holds for all unit tests."""

import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.thorough import examples

# No test asserts on time: a busy machine is no defect.
LENIENT = [HealthCheck.too_slow]
FAILED = DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis" / "examples")  # of this copy alone
settings.register_profile(
    "house", deadline=None, max_examples=examples(100), suppress_health_check=LENIENT, database=FAILED
)
settings.load_profile("house")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nearly all that is made while tests are collected stays: no search for garbage looks at it, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """A process of `make test` that gets no unit test does not read them: see `integration/by_file.py`."""
    return None if getattr(config, "workerinput", {}).get("with_unit_tests", True) else True


@pytest.fixture(autouse=True)
def _not_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have doubles of Kafka's consumer, which cannot be read in C."""
    monkeypatch.setenv("PARQUET_SINK_NATIVE", "0")
