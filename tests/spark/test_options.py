"""Options for Spark: what is wrong with them is told by option, value and cure, before Spark starts."""

from pathlib import Path

import pytest

from parquet_sink.spark.options import problems
from parquet_sink.spark.session import LOCAL_MASTER, SETTINGS, Session
from parquet_sink.spark.slots import local_master, share
from tests.messages import assert_line_says, assert_says


@pytest.mark.parametrize(
    "master",
    [
        *(LOCAL_MASTER, "local", "local[2]", "local[*]", "local[*, 4]", "local-cluster[2, 1, 1024]", "yarn"),
        *("spark://master:7077", "spark://a:7077,b:7077", "k8s://https://10.0.0.1:6443", None),
    ],
)
def test_masters_that_spark_knows_are_taken(master: str | None) -> None:
    """Every form that Spark's documentation lists."""
    assert problems(master, []) == []


@pytest.mark.parametrize(
    "master", ["locl[4]", "local[]", "local[four]", "local[0]", "local[4", "spark:/m:1", "spark://m", ""]
)
def test_a_master_that_is_none_is_named(master: str) -> None:
    """With what to write."""
    [problem] = problems(master, [])
    assert_says(problem, "Invalid [--master]", repr(master), "no Spark master", "local[N,ATTEMPTS]", "spark://")


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [
        ("spark.driver.memory", "lots", False),
        ("spark.driver.memory", "512", False),
        ("spark.driver.memory", "1g", True),
        ("spark.driver.memory", "512M", True),
        ("spark.driver.memory", "1gb", False),
        ("spark.executor.memoryOverhead", "384", True),
        ("spark.executor.memoryOverhead", "some", False),
        ("spark.executor.cores", "two", False),
        ("spark.executor.cores", "2", True),
        ("spark.master", "local[2]", False),
        ("spark.app.name", "lots", True),
    ],
)
def test_values_that_spark_would_trip_over_are_named(key: str, value: str, good: bool) -> None:
    """Sizes and numbers; of other settings Spark is the judge."""
    assert [problem.partition("]")[0] for problem in problems(None, [(key, value)])] == (
        [] if good else [f"Invalid [--conf {key}"]
    )


def test_our_own_settings_are_right() -> None:
    """What the sink itself sets passes the same rules."""
    assert problems(None, list(SETTINGS.items())) == []


def test_slots_are_shared_so_that_none_waits_for_another() -> None:
    """One connector alone has four; each further one adds one, and each leaves one to every other."""
    assert [local_master(count) for count in (1, 2, 4, 40)] == ["local[4,4]", "local[5,4]", "local[7,4]", "local[43,4]"]
    for count in range(1, 50):
        slots = int(local_master(count).removeprefix("local[").partition(",")[0])
        assert share(slots, count) == 4
        assert slots - share(slots, count) >= count - 1
    assert share(2, 5) == 1, "a master with fewer slots than connectors still gives each one"


def test_speculation_stays_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A second attempt beside a living one would send a range's files twice at once, so that cannot be asked for."""
    with caplog.at_level("WARNING"):
        settings = Session(None, tmp_path, {"spark.speculation": "true", "spark.ui.enabled": "true"})._settings(
            local=True
        )
    assert (settings["spark.speculation"], settings["spark.ui.enabled"]) == ("false", "true")
    assert_line_says(caplog.text, "spark.speculation=true", "not honoured")
