"""What holds for all unit tests."""

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)  # no test asserts on time: a busy machine is no defect
settings.load_profile("house")


@pytest.fixture(autouse=True)
def _not_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests have doubles of Kafka's consumer, which cannot be read in C."""
    monkeypatch.setenv("PARQUET_SINK_NATIVE", "0")
