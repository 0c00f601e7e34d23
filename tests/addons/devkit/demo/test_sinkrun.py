"""What the demo reads in the sink's log, and the shipped files it runs the sink with."""

import shlex
from pathlib import Path

import pytest

from parquet_sink.addons.devkit.demo import stage
from parquet_sink.addons.devkit.demo.sinkrun import SinkRun, counted, rotation_reasons
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import SetupError
from parquet_sink.files.naming import file_name
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.loop.log_lines import describe_file
from tests.messages import saying

CONFIG = Path(__file__).parents[4] / "config"


def test_reasons_are_read_from_the_lines_that_the_sink_writes() -> None:
    """The very line that `run` logs for a file gives its name and its reason; others are passed over."""
    name = file_name("orders", 2, 0, 99, 1_234, 100)
    line = describe_file(Receipt("orders", "orders", 2, name, 0, 99, 100, 100, 100, 1_234, "interval", attempts=3))
    lines = ["2026-01-01 10:00:00,000 INFO connector orders: running", f"2026-01-01 10:00:01,000 INFO {line}"]
    assert rotation_reasons(lines) == {name: "interval"}


def test_reasons_are_counted_most_frequent_first() -> None:
    """In the words of the progress line."""
    assert counted(["records", "interval", "interval"]) == "interval 2, records 1"
    assert counted([]) == ""


def test_the_command_is_what_a_user_would_type(tmp_path: Path) -> None:
    """Paths with blanks are quoted."""
    run = SinkRun(Path("/a b/worker.properties"), Path("/c/orders.properties"), "127.0.0.1:9092", tmp_path)
    assert shlex.split(run.command) == [
        *("parquet-sink", "run", "--worker", "/a b/worker.properties", "--bootstrap-servers", "127.0.0.1:9092"),
        "/c/orders.properties",
    ]


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIG.iterdir() if path.is_file()))
def test_the_package_has_the_shipped_files_unchanged(name: str) -> None:
    """What an installed demo runs is what stands in config/."""
    assert (stage.FOLDER / name).read_bytes() == (CONFIG / name).read_bytes()


def test_a_missing_shipped_file_is_named() -> None:
    """The cure is in the message."""
    with pytest.raises(SetupError, match=saying("other.properties", "not found", "install the package")):
        stage.shipped("other.properties")


def test_only_the_endpoint_of_the_connector_file_changes() -> None:
    """The copy differs from the shipped file in one line, and the two together are valid."""
    text = stage.shipped(stage.CONNECTOR).read_text()
    endpoint = r"http://127.0.0.1:1/\1/items"
    copy = stage.with_endpoint(text, endpoint)
    changed = [new for old, new in zip(text.splitlines(), copy.splitlines(), strict=True) if old != new]
    assert changed == [f"connect.ems.endpoint={endpoint}"]


@pytest.mark.parametrize("text", ["name=x\n", "connect.ems.endpoint=a\nconnect.ems.endpoint=b\n"])
def test_a_connector_file_without_exactly_one_endpoint_is_refused(text: str) -> None:
    """Then the demo would not know what it runs."""
    with pytest.raises(ValueError, match="must stand once"):
        stage.with_endpoint(text, "http://127.0.0.1/")


def test_the_demo_looks_where_the_shipped_connector_writes(tmp_path: Path) -> None:
    """Topic, consumer group and table are those of config/orders.properties."""
    checked = check_files([str(CONFIG / stage.CONNECTOR)], str(CONFIG / stage.WORKER), machine=Machine())
    (settings,) = checked.require()
    found = (settings.kafka.topics, settings.kafka.group, settings.target.target_table)
    assert found == ((stage.TOPIC,), stage.GROUP, stage.TABLE)
    assert stage.POOL in settings.target.endpoint


@pytest.mark.parametrize(
    ("records", "duration_s", "trickle"), [(200_000, 12.0, 6_000), (20_000, 5.0, 2_500), (100, 12.0, 20), (100, 0.0, 0)]
)
def test_most_records_are_backlog_and_the_rest_comes_live(records: int, duration_s: float, trickle: int) -> None:
    """At most 500 a second and at most a fifth come while the sink has caught up."""
    assert stage.Size(records, duration_s, 1).trickle == trickle
