"""The settings of the Spark session."""

import importlib.util
import re

from parquet_sink.spark.session import FORCED, SETTINGS


def test_every_setting_has_a_name_that_spark_reads() -> None:
    """Spark ignores a setting whose name it does not know, so each is `spark.` and words with dots between."""
    wrong = [key for key in {**SETTINGS, **FORCED} if not re.fullmatch(r"spark(\.[A-Za-z]\w*)+", key)]
    assert wrong == []


def test_workers_come_from_our_daemon_and_are_used_again() -> None:
    """Without the first a signal for the service ends workers, without the second each task starts a process."""
    module = SETTINGS["spark.python.daemon.module"]
    assert module == "parquet_sink.spark.daemon"
    assert importlib.util.find_spec(module) is not None
    assert SETTINGS["spark.python.worker.reuse"] == "true"
