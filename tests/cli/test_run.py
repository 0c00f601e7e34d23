"""`parquet-sink run`, up to where the worker takes over."""

from pathlib import Path

import pytest

from parquet_sink.cli.main import main
from parquet_sink.worker.loop import worker
from tests.cli.connector_file import connector_lines
from tests.messages import assert_says


class Ends:
    """A worker that has nothing to do."""

    def __init__(self, *args: object, **more: object) -> None:
        """Whatever it is given."""

    def run(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("master", "keys", "warns"),
    [
        ("spark://there:7077", {"errors.tolerance": "all"}, True),
        ("spark://there:7077", {}, False),
        ("spark://there:7077", {"errors.tolerance": "all", "connect.ems.parked.dir": "{tmp}/shared"}, False),
        (
            "spark://there:7077",
            {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"},
            False,
        ),
        ("local[2]", {"errors.tolerance": "all"}, False),
        (None, {"errors.tolerance": "all"}, False),
    ],
)
def test_on_a_cluster_a_folder_of_one_machine_is_warned_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    master: str | None,
    keys: dict[str, str],
    warns: bool,
) -> None:
    """Before the first record that would have to be parked stops the connector there."""
    monkeypatch.setattr(worker, "Worker", Ends)
    (tmp_path / "out").mkdir()
    lines = connector_lines(tmp_path) | {key: value.format(tmp=tmp_path) for key, value in keys.items()}
    path = tmp_path / "orders.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    where = [] if master is None else ["--master", master]
    assert main(["run", "--no-live", *where, "--bootstrap-servers", "there:9092", str(path)]) == 0
    told = [one for one in caplog.messages if one.startswith("[connect.ems.parked.dir]")]
    assert bool(told) is warns
    for one in told:
        assert_says(one, "missing", "other machines", "Spark cluster")


def test_a_rest_api_without_bounded_providers_is_warned_about_with_the_line_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It lists the providers that the files use; the level of the line is not said twice."""
    monkeypatch.setattr(worker, "Worker", Ends)
    monkeypatch.setenv("TABLE", "ORDERS")
    (tmp_path / "out").mkdir()
    path, shared = tmp_path / "orders.properties", tmp_path / "worker.properties"
    lines = connector_lines(tmp_path) | {"connect.ems.target.table": "${env:TABLE}"}
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    shared.write_text("bootstrap.servers=there:9092\nlisteners=http://localhost:8083\n")
    assert main(["run", "--until-caught-up", "--no-live", "--worker", str(shared), str(path)]) == 0
    (told,) = [one for one in caplog.messages if one.startswith("[config.providers]")]
    assert_says(told, "Write config.providers=env", "worker file")


def test_a_worker_file_of_a_cluster_makes_no_cluster_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said, and the connectors of the files run."""
    monkeypatch.setattr(worker, "Worker", Ends)
    (tmp_path / "out").mkdir()
    path, shared = tmp_path / "orders.properties", tmp_path / "worker.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in connector_lines(tmp_path).items()))
    topics = "".join(f"{one}.storage.topic={one}\n" for one in ("config", "status", "offset"))
    shared.write_text(f"bootstrap.servers=there:9092\ngroup.id=g\n{topics}")
    assert main(["run", "--no-live", "--worker", str(shared), str(path)]) == 0
    (told,) = [one for one in caplog.messages if one.startswith("[group.id]")]
    assert_says(told, "start `parquet-sink worker`", "cluster")
