"""The files in config/ are ready to use."""

from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files
from tests.messages import assert_says

CONFIG = Path(__file__).parents[2] / "config"
MACHINE = Machine(environ={"EMS_AUTHORIZATION_KEY": "AppKey demo"})


def test_the_shipped_files_run_together_without_a_warning() -> None:
    """Worker and both connectors are valid side by side."""
    paths = [str(CONFIG / "orders.properties"), str(CONFIG / "orders-with-keys.json")]
    checked = check_files(paths, str(CONFIG / "worker.properties"), machine=MACHINE)
    assert (checked.problems, checked.warnings) == ((), ())
    orders, with_keys = checked.require()
    assert orders.kafka.topics == with_keys.kafka.topics == ("orders",)
    assert orders.target.primary_keys == with_keys.target.primary_keys == ("order_id",)
    assert (orders.target.order_column, with_keys.target.order_column) == ("__celonis_order", "updated_at")
    assert orders.target.authorization == with_keys.target.authorization


@pytest.mark.parametrize("path", sorted(CONFIG.glob("orders*")), ids=lambda path: path.name)
def test_each_shipped_connector_is_valid_alone(path: Path) -> None:
    """With the shipped worker file, every connector file."""
    checked = check_files([str(path)], str(CONFIG / "worker.properties"), machine=MACHINE)
    assert checked.problems == ()


def test_a_missing_key_of_the_example_is_named() -> None:
    """The example that takes its credential from the environment says so when it is not there."""
    machine = replace(MACHINE, environ={})
    checked = check_files([str(CONFIG / "orders-with-keys.json")], str(CONFIG / "worker.properties"), machine=machine)
    (problem,) = checked.problems
    assert_says(problem, "[connect.ems.authorization.key]", "EMS_AUTHORIZATION_KEY", "not set", "before the start")
