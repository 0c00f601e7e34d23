"""Both readers of JSON: a module that imports `json_reader` runs each of its tests with either."""

import pytest

from parquet_sink.convert.json import fast
from parquet_sink.process.native import SWITCH


@pytest.fixture(autouse=True, params=["0", "1"])
def json_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select Arrow's, or the one in C before it."""
    if request.param == "1" and fast.extension() is None:
        pytest.skip("it was not built")
    monkeypatch.setenv(SWITCH, request.param)
