"""`parquet-sink connectors`, as it is typed, against a worker on a real socket."""

import base64
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from integration import certificates
from integration.scripted_target import answer, cut
from integration.scripted_worker import ScriptedWorker
from parquet_sink.addons.commands.connectors import life_cycle
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.cli.main import main
from parquet_sink.cli.worker_api import api as worker_api
from parquet_sink.config.secret import Secret
from parquet_sink.worker.herder.values import ConnectorProgress, ConnectorStatus, PartitionProgress, State
from parquet_sink.worker_config.rest.settings import RestSettings, Store, TlsSettings
from parquet_sink.worker_config.rest.values import Address
from tests.messages import assert_says
from tests.worker.rest.certificates import make
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import GOOD, serving

Connectors = Callable[..., tuple[int, str, str]]
ODD = "a/b %2F?#& é"
KAFKA_CONNECT_MUST = "Must configure one of topics or topics.regex"


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's environment, and short pauses."""
    for name in ("URL", "USER", "PASSWORD", "CLIENT_FILE"):
        monkeypatch.delenv(f"PARQUET_SINK_{name}", raising=False)
    monkeypatch.setattr(life_cycle, "LOOK_S", 0.01)
    monkeypatch.setattr(worker_api, "REBALANCE_PAUSE_S", 0.01)


@pytest.fixture
def worker() -> Iterator[ScriptedWorker]:
    """A worker with two connectors."""
    with ScriptedWorker() as started:
        started.add("orders", offsets={("orders", 0): 1200, ("orders", 1): 7})
        started.add("audit", state="PAUSED")
        yield started


@pytest.fixture
def run(worker: ScriptedWorker, capsys: pytest.CaptureFixture[str]) -> Connectors:
    """Runs the command against that worker; exit status, standard output and standard error."""

    def run(*words: str, url: str = worker.url) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["connectors", *words, "--url", url])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Writes a connector file; its path."""

    def write(name: str | None = "new", **keys: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.properties"
        named = {} if name is None else {"name": name}
        lines = {**named, "topics": "t", "connect.ems.authorization.key": "${env:KEY}", **keys}
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")
        return str(path)

    return write


def test_connectors_are_listed(run: Connectors, worker: ScriptedWorker) -> None:
    """A line each in alphabetical order, with state, tasks, kind, class and worker."""
    status, out, err = run("list")
    assert (status, err) == (0, "")
    assert [line.split("  ")[0] for line in out.splitlines()] == ["NAME", "audit", "orders"]
    assert out.splitlines()[1].split() == ["audit", "PAUSED", "2", "PAUSED", "sink", "EmsSink", "127.0.0.1:8083"]
    assert worker.asked == ["GET /connectors?expand=info&expand=status", "GET /progress"]


def test_a_list_as_json_is_what_the_worker_answered(run: Connectors) -> None:
    """Pure JSON, by name."""
    found = json.loads(run("list", "--json")[1])
    assert found["orders"]["status"]["connector"]["state"] == "RUNNING"
    assert set(found) == {"orders", "audit"}


def test_no_connectors_are_said_to_be_none(run: Connectors, worker: ScriptedWorker) -> None:
    """An empty worker is told from one that did not answer."""
    worker.connectors.clear()
    status, out, _ = run("list")
    assert status == 0
    assert_says(out, "no connectors", worker.url)


def test_one_connector_is_shown_with_why_it_failed(run: Connectors, worker: ScriptedWorker) -> None:
    """State, tasks, each line of a trace, topics and configuration; nothing raw reaches the terminal."""
    worker.add("orders", trace="org.x.Refused: no \x1b[31m\n\tat Task.java:1")
    out = run("show", "orders")[1]
    assert out.splitlines()[:4] == [
        "connector orders: RUNNING on 127.0.0.1:8083 (sink)",
        "  task 0: FAILED on 127.0.0.1:8083",
        "    org.x.Refused: no \\u001b[31m",
        "    \\tat Task.java:1",
    ]
    assert_says(out, "topics with records", ": orders\n", "configuration:\n    connector.class=parquet_sink.EmsSink\n")
    shown = json.loads(run("show", "orders", "--json")[1])
    assert (shown["name"], shown["topics"], shown["status"]["tasks"][1]["id"]) == ("orders", ["orders"], 1)


def test_topics_that_are_not_tracked_are_left_out(run: Connectors, worker: ScriptedWorker) -> None:
    """A worker without topic tracking answers 403, which is no failure of the command."""
    worker.scripted["GET connectors/orders/topics"] = [(403, {"error_code": 403, "message": "Topic tracking is off"})]
    status, out, err = run("show", "orders")
    assert (status, err) == (0, "")
    assert "topics with" not in out


def test_the_list_has_lag_and_age_where_the_worker_tells_them(run: Connectors, worker: ScriptedWorker) -> None:
    """Of those that run; a worker of Kafka Connect tells neither. Long names are cut."""
    name = "o" * 100
    worker.add(name)
    parts = tuple(
        PartitionProgress("orders", number, lag, oldest_s, 1.0, away=False)
        for number, lag, oldest_s in ((0, 1_000, 12.34), (1, 200, None))
    )
    for one in ("orders", name, "audit"):
        status = ConnectorStatus(one, State.RUNNING, "w", ())
        told = ConnectorProgress(status, 0, 0, 0, 0, None, None, () if one == "audit" else parts)
        worker.progress = [*(worker.progress or ()), json.loads(json.dumps(asdict(told)))]
    lines = [line.split() for line in run("list")[1].splitlines()]
    assert lines[0] == ["NAME", "STATE", "TASKS", "LAG", "OLDEST", "TYPE", "CLASS", "WORKER"]
    assert [(line[0], line[4:-3]) for line in lines[1:]] == [
        ("audit", ["?", "?"]),
        ("o" * 47 + "…", ["1,200", "12.3", "s"]),
        ("orders", ["1,200", "12.3", "s"]),
    ]


def test_names_of_all_sorts_arrive_as_they_are(run: Connectors, worker: ScriptedWorker) -> None:
    """Slashes, percent signs, blanks, letters beyond ASCII and great length are one segment of the path."""
    name = ODD + "x" * 300
    worker.add(name)
    assert run("pause", name)[0] == 0
    assert worker.connectors[name].state == "PAUSED"
    assert worker.connectors["orders"].state == "RUNNING"
    assert run("delete", name)[0] == 0
    assert set(worker.connectors) == {"orders", "audit"}


@pytest.mark.parametrize("name", [".", ".."])
def test_names_that_are_ways_in_a_path_are_refused(name: str, run: Connectors, worker: ScriptedWorker) -> None:
    """`delete ..` must not become a request about something else."""
    status, _, err = run("delete", name)
    assert status == 1
    assert f'Invalid name ["{name}"]' in err
    assert worker.asked == []


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_path_can_hold_stops_no_other(name: str, run: Connectors, worker: ScriptedWorker) -> None:
    """Those before and behind it have their turn; the status tells that one was not done."""
    status, out, err = run("pause", "orders", name, "audit")
    assert status == 1
    assert out.splitlines() == ["connector orders: asked to pause", "connector audit: asked to pause"]
    assert err.startswith(f'parquet-sink: connector {name}: Invalid name ["{name}"]')
    assert worker.asked == ["PUT /connectors/orders/pause", "PUT /connectors/audit/pause"]


def test_a_class_that_no_path_can_hold_stops_no_other(
    run: Connectors, worker: ScriptedWorker, file: Callable[..., str]
) -> None:
    """Of several files that are validated the others are validated."""
    status, out, err = run("validate", file("a", **{"connector.class": ".."}), file("b"))
    assert (status, out.splitlines()[-1].partition(": ")[2]) == (1, "connector b: valid")
    assert err.startswith('parquet-sink: connector a: Invalid name [".."]')


def test_a_file_becomes_a_connector(run: Connectors, worker: ScriptedWorker, file: Callable[..., str]) -> None:
    """Its keys go to the worker as they stand, placeholders unfilled, with the class that goes without saying."""
    status, out, err = run("create", file())
    assert (status, out, err) == (0, "connector new: created\n", "")
    sent = json.loads(worker.requests[0].body)
    assert sent["name"] == "new"
    assert sent["config"]["connect.ems.authorization.key"] == "${env:KEY}"
    assert sent["config"]["connector.class"] == "parquet_sink.EmsSink"
    assert "initial_state" not in sent


def test_a_connector_may_be_created_stopped(run: Connectors, worker: ScriptedWorker, file: Callable[..., str]) -> None:
    """--initial-state is passed on, and is what --wait waits for."""
    worker.lag = 3
    status, out, _ = run("create", file(), "--initial-state", "stopped", "--wait")
    assert status == 0
    assert_says(out, "connector new", "created", "now STOPPED", "0 tasks")
    assert json.loads(worker.requests[0].body)["initial_state"] == "STOPPED"


def test_a_file_may_say_its_first_state(run: Connectors, worker: ScriptedWorker, tmp_path: Path) -> None:
    """As the body of a request to Kafka Connect does; the option wins."""
    path = tmp_path / "x.json"
    path.write_text('{"name": "x", "config": {"topics": "t"}, "initial_state": "paused"}')
    assert run("create", str(path))[0] == 0
    assert worker.connectors.pop("x").state == "PAUSED"
    assert run("create", str(path), "--initial-state", "running")[0] == 0
    assert worker.connectors["x"].state == "RUNNING"


def test_nothing_is_created_when_one_file_is_wrong(
    run: Connectors, worker: ScriptedWorker, file: Callable[..., str]
) -> None:
    """All files are read before anything is sent, and all that is wrong with them is told."""
    status, _, err = run("create", file(), file(None), file("b"), file("b"), "/nowhere.properties")
    assert status == 2
    assert [line.split(" ")[:2] for line in err.splitlines()] == [
        ["Invalid", "[name]."],
        ["Invalid", "[name]."],
        ["Invalid", "file"],
    ]
    assert worker.asked == []


def test_one_that_the_worker_refuses_does_not_keep_the_others(
    run: Connectors, worker: ScriptedWorker, file: Callable[..., str]
) -> None:
    """Each file has its turn; the status is 1, and what was refused is named with the worker's reasons alone."""
    status, out, err = run("create", file("orders"), file("bad", topics=""), file("new"))
    assert (status, out) == (1, "connector bad: created\nconnector new: created\n")
    assert err.count("\n") == 1
    assert_says(err, "connector orders: ", "already exists\n")


def test_problems_of_a_configuration_are_listed(run: Connectors, tmp_path: Path) -> None:
    """Of Kafka Connect's long text only the problems are shown, a line each."""
    path = tmp_path / "x.json"
    path.write_text('{"name": "x", "config": {"tasks.max": 1}}')
    status, out, err = run("create", str(path))
    assert (status, out) == (1, "")
    first, *problems = err.splitlines()
    assert_says(first, "connector x", "configuration is invalid")
    assert problems == [f"  {KAFKA_CONNECT_MUST}"] * 2


def test_an_update_replaces_a_configuration(run: Connectors, worker: ScriptedWorker, file: Callable[..., str]) -> None:
    """The file's keys are all that the connector has then; it stays paused when it was."""
    status, out, _ = run("update", file("audit"), "--wait")
    assert status == 0
    assert_says(out, "connector audit", "file's configuration", "now PAUSED", "2 tasks")
    assert set(worker.connectors["audit"].config) == {
        "name",
        "topics",
        "connector.class",
        "connect.ems.authorization.key",
    }


def test_an_update_makes_no_connector_unless_told_to(
    run: Connectors, worker: ScriptedWorker, file: Callable[..., str]
) -> None:
    """A slip in a name is an error, and --create is the cure."""
    path = file("ordres")
    status, _, err = run("update", path)
    assert status == 1
    assert_says(err, "connector ordres", "not found", "add --create")
    assert "ordres" not in worker.connectors
    assert run("update", path, "--create")[0] == 0
    assert "ordres" in worker.connectors


def test_single_keys_are_changed_and_removed(run: Connectors, worker: ScriptedWorker) -> None:
    """--set and --unset leave all other keys; a value may have equals signs."""
    assert run("update", "orders", "--set", "a=b=c", "--set", "topics=t", "--unset", "tasks.max")[0] == 0
    assert worker.asked == ["PATCH /connectors/orders/config"]
    assert json.loads(worker.requests[0].body) == {"a": "b=c", "topics": "t", "tasks.max": None}


def test_a_key_cannot_be_set_and_removed(run: Connectors, worker: ScriptedWorker) -> None:
    """Nothing is sent where two options contradict each other."""
    assert run("update", "orders", "--set", "a=b", "--unset", "a")[0] == 2
    assert worker.asked == []


def test_files_are_validated_by_the_worker(run: Connectors, file: Callable[..., str], tmp_path: Path) -> None:
    """Valid ones are said to be so; of others each problem with its key and what may stand there; the status is 1."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"name": "bad"}')
    good = file()
    status, out, _ = run("validate", good, str(bad))
    assert status == 1
    assert out.splitlines() == [
        f"{good}: connector new: valid",
        f"{bad}: connector bad: 1 problem",
        f"  topics: {KAFKA_CONNECT_MUST}",
        "    it may be a, b",
    ]
    assert [one["error_count"] for one in json.loads(run("validate", good, str(bad), "--json")[1])] == [0, 1]
    assert run("validate", good)[0] == 0


def test_a_purge_removes_what_a_connector_left(run: Connectors, worker: ScriptedWorker) -> None:
    """It is asked for, and told; a worker of Kafka Connect deletes the connector alone, which is told, too."""
    status, out, err = run("delete", "orders", "--purge")
    assert (status, err) == (0, "")
    assert_says(out, "connector orders", "deleted", "what it left", "offsets stay")
    assert worker.asked == ["DELETE /connectors/orders?purge=true"]
    worker.purges = False
    status, _, err = run("delete", "audit", "--purge")
    assert status == 1
    assert_says(err, "connector audit", "is deleted", "is not removed", "only workers of parquet-sink")


def test_what_the_worker_warns_of_is_told(run: Connectors, file: Callable[..., str]) -> None:
    """Of files that are validated, created and updated, and of keys; as a list of its own in JSON. It is no failure."""
    odd, warning = file(odd="x"), "Warning [odd]. It is unknown."
    for words, first in (
        (["validate", odd], f"{odd}: connector new: valid, 1 warning"),
        (["create", odd], "connector new: created"),
        (["update", odd], "connector new: has the file's configuration"),
        (["update", "new", "--set", "a=b"], "connector new: changed a"),
    ):
        assert run(*words) == (0, f"{first}\n  {warning}\n", "")
    (done,) = json.loads(run("update", odd, "--json")[1])
    assert done["warnings"] == [warning]
    assert "warnings" not in done["connector"]
    (done,) = json.loads(run("update", file(), "--json")[1])
    assert done["warnings"] == []


@pytest.mark.parametrize(
    ("action", "state", "tasks"), [("pause", "PAUSED", 2), ("resume", "RUNNING", 2), ("stop", "STOPPED", 0)]
)
def test_states_are_waited_for(action: str, state: str, tasks: int, run: Connectors, worker: ScriptedWorker) -> None:
    """--wait returns when the worker reports the state of connector and tasks, which takes it a few looks."""
    worker.lag = 4
    worker.connectors["orders"].state = "PAUSED" if action == "resume" else "RUNNING"
    status, out, _ = run(action, "orders", "--wait")
    assert status == 0
    assert out.endswith(f"; now {state}, {tasks} tasks\n")
    assert len(worker.asked) == 1 + worker.lag + 1


def test_a_wait_ends_in_time(run: Connectors, worker: ScriptedWorker) -> None:
    """A state that does not come is an error that says what it is instead."""
    worker.lag = 1_000_000
    status, out, err = run("pause", "orders", "--wait", "0.05")
    assert (status, out) == (1, "")
    assert_says(err, "connector orders", "not PAUSED", "0.05 s", "RUNNING")


def test_a_wait_ends_when_it_failed(run: Connectors, worker: ScriptedWorker) -> None:
    """A task that fails is told with its cause, before the time is over."""
    worker.add("orders", state="PAUSED", trace="KafkaFailed: no\nmore")
    status, _, err = run("resume", "orders", "--wait")
    assert (status, "more" in err) == (1, False)
    assert_says(err, "connector orders", "failed", "KafkaFailed: no\n")


def test_all_connectors_are_told(run: Connectors, worker: ScriptedWorker) -> None:
    """--all is every connector that the worker has at that moment; the JSON has one entry for each."""
    status, out, _ = run("stop", "--all", "--json")
    assert status == 0
    assert json.loads(out) == [{"name": "audit", "action": "stop"}, {"name": "orders", "action": "stop"}]
    assert {one.state for one in worker.connectors.values()} == {"STOPPED"}


def test_trouble_is_in_the_json_too(run: Connectors) -> None:
    """Standard output is one JSON document whatever happened, with the error of the connector that has one."""
    status, out, _ = run("pause", "nobody", "orders", "--json")
    assert status == 1
    assert json.loads(out) == [
        {"name": "nobody", "action": "pause", "error": "Connector nobody not found"},
        {"name": "orders", "action": "pause"},
    ]


def test_what_did_not_fail_is_not_said_to_be_restarted(run: Connectors, worker: ScriptedWorker) -> None:
    """Of several with --only-failed only those that failed are told; tasks count where they are asked for."""
    worker.connectors["orders"].trace = "boom"
    status, out, _ = run("restart", "--all", "--include-tasks", "--only-failed")
    assert status == 0
    assert_says(out.splitlines()[0], "connector audit", "not restarted", "nothing failed")
    assert out.splitlines()[1].startswith("connector orders: asked to restart")
    assert [one for one in worker.asked if one.startswith("POST")] == [
        "POST /connectors/orders/restart?includeTasks=true&onlyFailed=true"
    ]
    worker.connectors["orders"].trace = "boom"
    assert run("restart", "orders", "--only-failed")[1].startswith("connector orders: not restarted")
    [done] = json.loads(run("restart", "audit", "--only-failed", "--json")[1])
    assert done == {"name": "audit", "action": "restart", "restarted": False}


def test_restarts_say_what_they_are_about(run: Connectors, worker: ScriptedWorker) -> None:
    """The connector alone, its tasks, only what failed, or one task."""
    assert run("restart", "orders")[0] == 0
    worker.connectors["orders"].trace = "boom"
    assert "now RUNNING" in run("restart", "orders", "--include-tasks", "--only-failed")[1]
    assert run("restart", "orders", "--task", "1")[0] == 0
    status, _, err = run("restart", "orders", "--task", "9")
    assert (status, err) == (1, "parquet-sink: connector orders: Unknown task: orders-9\n")
    assert [one for one in worker.asked if one.startswith("POST")] == [
        "POST /connectors/orders/restart?includeTasks=false&onlyFailed=false",
        "POST /connectors/orders/restart?includeTasks=true&onlyFailed=true",
        "POST /connectors/orders/tasks/1/restart",
        "POST /connectors/orders/tasks/9/restart",
    ]


def test_a_deletion_is_waited_for(run: Connectors, worker: ScriptedWorker) -> None:
    """--wait returns when the worker has no status any more."""
    status, out, _ = run("delete", "orders", "--wait")
    assert status == 0
    assert_says(out, "connector orders", "deleted", "offsets stay")
    assert worker.asked == ["DELETE /connectors/orders", "GET /connectors/orders/status"]


def test_offsets_are_told(run: Connectors) -> None:
    """A line for each topic-partition, in their order."""
    status, out, _ = run("offsets", "orders")
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["TOPIC", "TOPIC-PARTITION", "OFFSET"],
        ["orders", "0", "1200"],
        ["orders", "1", "7"],
    ]
    assert run("offsets", "audit")[1] == "no offsets\n"


def test_offsets_go_back_without_a_question(run: Connectors, worker: ScriptedWorker) -> None:
    """To send again is harmless."""
    worker.connectors["orders"].state = "STOPPED"
    status, out, _ = run("offsets", "orders", "--to", "orders:0:1000", "--to", "orders:1:7")
    assert (status, "altered successfully" in out) == (0, True)
    assert worker.connectors["orders"].offsets == {("orders", 0): 1000, ("orders", 1): 7}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--to", "orders:0:1300"], ("orders 0", "100 records", "1,200 to 1,299", "skipped", "never be sent")),
        (["--to", "orders:2:5"], ("orders 2", "no offset is known", "before 5", "skipped")),
        (["--to", "orders:0:none"], ("orders 0", "offset would be removed")),
        (["--reset"], ("all offsets", "be removed")),
    ],
)
def test_what_may_lose_records_needs_yes(
    options: list[str], why: tuple[str, ...], run: Connectors, worker: ScriptedWorker
) -> None:
    """What would be skipped is said in numbers, and nothing is changed without --yes."""
    worker.connectors["orders"].state = "STOPPED"
    before = dict(worker.connectors["orders"].offsets)
    status, out, _ = run("offsets", "orders", *options)
    assert status == 1
    assert_says(out, *why)
    assert worker.connectors["orders"].offsets == before
    assert run("offsets", "orders", *options, "--yes")[0] == 0
    assert worker.connectors["orders"].offsets != before


def test_offsets_are_told_with_end_and_lag(run: Connectors, worker: ScriptedWorker) -> None:
    """Where the worker knows them; JSON is Kafka Connect's, which --from takes."""
    worker.connectors["orders"].ends = {("orders", 0): 12_345}
    assert [line.split() for line in run("offsets", "orders")[1].splitlines()] == [
        ["TOPIC", "TOPIC-PARTITION", "OFFSET", "END", "LAG"],
        ["orders", "0", "1200", "12345", "11,145"],
        ["orders", "1", "7", "?", "?"],
    ]
    assert "end" not in run("offsets", "orders", "--json")[1]
    worker.connectors["orders"].ends = {}
    assert run("offsets", "orders")[1].splitlines()[0].split() == ["TOPIC", "TOPIC-PARTITION", "OFFSET"]


@pytest.mark.parametrize("yes", [[], ["--yes"]])
def test_an_offset_behind_the_end_is_no_loss_but_a_slip(
    yes: list[str], run: Connectors, worker: ScriptedWorker
) -> None:
    """Nothing is said of records that are not there; the end is named, and nothing is asked of the worker."""
    worker.connectors["orders"].state = "STOPPED"
    worker.connectors["orders"].ends = {("orders", 0): 1_300}
    status, out, err = run("offsets", "orders", "--to", "orders:0:1301", *yes)
    assert (status, out) == (1, "")
    assert_says(err, "orders 0", "1,301", "is not there", "ends at 1,300")
    assert [one for one in worker.asked if one.startswith("PATCH")] == []
    assert run("offsets", "orders", "--to", "orders:0:1300", "--yes")[0] == 0
    worker.connectors["orders"].offsets[("orders", 0)] = 1_299
    assert_says(run("offsets", "orders", "--to", "orders:0:1300")[1], "record at 1,299", "be skipped")


def test_offsets_that_were_saved_come_back(run: Connectors, worker: ScriptedWorker, tmp_path: Path) -> None:
    """What --json printed is what --from takes."""
    worker.connectors["orders"].state = "STOPPED"
    saved = tmp_path / "offsets.json"
    saved.write_text(run("offsets", "orders", "--json")[1])
    assert run("offsets", "orders", "--reset", "--yes")[0] == 0
    assert run("offsets", "orders", "--from", str(saved), "--yes")[0] == 0
    assert worker.connectors["orders"].offsets == {("orders", 0): 1200, ("orders", 1): 7}


@pytest.mark.parametrize("text", ["", "no", "[]", '{"offsets": []}', '{"offsets": [{"partition": 1}]}', "[" * 9_999])
def test_what_are_no_saved_offsets_is_refused(text: str, run: Connectors, tmp_path: Path) -> None:
    """The file is named, with what belongs into it."""
    (tmp_path / "x.json").write_text(text)
    status, _, err = run("offsets", "orders", "--from", str(tmp_path / "x.json"))
    assert (status, err.startswith(f"Invalid file [{tmp_path}/x.json].")) == (2, True)


def test_offsets_of_one_that_runs_are_refused_with_the_cure(run: Connectors) -> None:
    """The worker's reason, and the command that stops it."""
    status, _, err = run("offsets", "orders", "--to", "orders:0:1")
    assert status == 1
    assert "must be in the STOPPED state" in err
    assert err.endswith("parquet-sink connectors stop orders --wait\n")


def test_a_rebalance_is_waited_out(run: Connectors, worker: ScriptedWorker) -> None:
    """Kafka Connect's 409 and its 500 with these words mean: in a moment."""
    words = "Request cannot be completed because a rebalance is expected"
    worker.scripted["PUT connectors/orders/pause"] = [
        (500, {"error_code": 500, "message": words}),
        (
            409,
            {
                "error_code": 409,
                "message": "Cannot complete request because of a conflicting operation (rebalance)",
            },
        ),
    ]
    assert run("pause", "orders")[0] == 0
    assert len(worker.asked) == 3


def test_a_rebalance_without_an_end_is_told(
    run: Connectors, worker: ScriptedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tries are bounded."""
    monkeypatch.setattr(worker_api, "REBALANCE_TRIES", 3)
    words = "Request cannot be completed because a rebalance is expected"
    worker.scripted["PUT connectors/orders/pause"] = [(500, {"error_code": 500, "message": words})] * 9
    status, _, err = run("pause", "orders")
    assert (status, err) == (1, f"parquet-sink: connector orders: {words}\n")
    assert len(worker.asked) == 3


def test_a_worker_that_is_away_is_said_to_be(run: Connectors) -> None:
    """The address, the cause and the cure; the status tells it from a worker that says no."""
    url = f"http://127.0.0.1:{free_port()}"
    status, _, err = run("list", url=url)
    assert status == 2
    assert_says(err, url, "cannot be reached", "nobody answers", "Connection refused", "--url")


def test_what_is_no_worker_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A page that another server gives is quoted, without what would move the terminal's cursor."""
    with ScriptedWorker(answer(404, b"<h1>Not\x1b[2J here</h1>")) as other:
        status = main(["connectors", "list", "--url", other.url])
    err = capsys.readouterr().err
    assert status == 1
    assert_says(err, other.url, "no REST API", "status 404", "<h1>Not\\x1b[2J here</h1>", "Correct --url")


@pytest.mark.parametrize("page", [answer(200, b"hello"), answer(200, b'{"half": ')])
def test_success_without_json_is_no_success(page: object, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy's page with status 200 is not taken for an empty list."""
    with ScriptedWorker(page) as other:  # type: ignore[arg-type]
        assert main(["connectors", "list", "--url", other.url]) == 1
    assert "is no REST API" in capsys.readouterr().err


@pytest.mark.parametrize("page", [b'["orders"]', b'{"orders": 1}', b"7"])
def test_json_of_another_shape_does_no_harm(page: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever JSON another server gives: the status is 0 or 1, and no traceback."""
    with ScriptedWorker(*[answer(200, page)] * 20) as other:
        for words in (["list"], ["show", "x"], ["offsets", "x"], ["pause", "--all"], ["stop", "x", "--wait", "0.1"]):
            assert main(["connectors", *words, "--url", other.url]) in (0, 1)
        assert main(["status", "--url", other.url]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_json_that_is_not_understood_is_said_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    """A list where Kafka Connect has an object by name."""
    with ScriptedWorker(answer(200, b'["orders"]')) as other:
        assert main(["connectors", "list", "--url", other.url]) == 1
    assert_says(capsys.readouterr().err, other.url, "another version", "JSON is not", "Correct --url")


def test_an_answer_that_never_comes_ends_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    """--timeout bounds the wait, and the message says that it may have been done."""
    with ScriptedWorker(lambda connection: connection.server.closing.wait(20)) as silent:  # type: ignore[arg-type, return-value]
        status = main(["connectors", "pause", "orders", "--url", silent.url, "--timeout", "0.2"])
        silent.closing.set()
    assert status == 1
    assert_says(capsys.readouterr().err, silent.url, "not answer in time", "may have done")


def test_a_connection_that_breaks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether the request was done is not known, and that is said."""
    with ScriptedWorker(cut(None)) as broken:
        assert main(["connectors", "delete", "orders", "--url", broken.url]) == 1
    assert "the connection broke" in capsys.readouterr().err


def test_the_password_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """User and password are sent as basic authentication, and shown nowhere when they are wrong."""
    credential = "Basic " + base64.b64encode("ada:pä:ss".encode()).decode()
    monkeypatch.setenv("PARQUET_SINK_USER", "ada")
    monkeypatch.setenv("PARQUET_SINK_PASSWORD", "pä:ss")
    with ScriptedWorker(credential=credential) as worker:
        monkeypatch.setenv("PARQUET_SINK_URL", worker.url)
        assert main(["connectors", "list"]) == 0
        monkeypatch.setenv("PARQUET_SINK_PASSWORD", "wrong-secret")
        capsys.readouterr()
        assert main(["connectors", "list"]) == 2
    said = "".join(capsys.readouterr())
    assert "wants another user or password" in said
    assert "wrong-secret" not in said


def test_a_client_file_names_it_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Address, user, password by a placeholder, and whom to trust; the option's address wins over the file's."""
    folder = certificates.make(tmp_path)
    (tmp_path / "password").write_text("secret\n")
    lines = {
        "url": "https://127.0.0.1:1",
        "username": "ada",
        "password": f"${{directory:{tmp_path}:password}}",
        "tls.ca.file": str(folder / "ca.pem"),
        "usrname": "x",
    }
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    credential = "Basic " + base64.b64encode(b"ada:secret").decode()
    with ScriptedWorker(tls=certificates.server_context(folder, "good"), credential=credential) as worker:
        words = ["connectors", "list", "--client-file", str(path)]
        assert main([*words, "--url", worker.url]) == 0
        assert_says(capsys.readouterr().err, "[usrname]", "unknown", "Did you mean username?", f"{path}")
        assert main(words) == 2
        assert "https://127.0.0.1:1 cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["expired", "other"])
def test_a_worker_must_prove_who_it_is(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate that is expired, or another host's, ends it; the cause is in the message."""
    folder = certificates.make(tmp_path)
    path = tmp_path / "client.properties"
    path.write_text(f"tls.ca.file={folder}/ca.pem\n")
    with ScriptedWorker(tls=certificates.server_context(folder, name)) as worker:
        assert main(["connectors", "list", "--url", worker.url, "--client-file", str(path)]) == 2
    assert "TLS failed (" in capsys.readouterr().err


def test_a_worker_may_want_our_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With that of the client file it answers; without one, or with a file that is none, the cause is told."""
    folder = certificates.make(tmp_path)
    context = certificates.server_context(folder, "good")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    path = tmp_path / "client.properties"
    trusting = f"tls.ca.file={folder}/ca.pem\n"
    with ScriptedWorker(tls=context) as worker:
        words = ["connectors", "list", "--url", worker.url, "--client-file", str(path)]
        path.write_text(f"{trusting}tls.certificate.file={folder}/good.crt\ntls.key.file={folder}/good.key\n")
        assert main(words) == 0
        path.write_text(trusting)
        assert main(words) != 0
        assert "certificate required" in capsys.readouterr().err
        path.write_text(f"{trusting}tls.certificate.file={folder}/ca.srl\n")
        assert main(words) == 2
        assert "Invalid [tls.certificate.file]" in capsys.readouterr().err


def test_a_password_never_travels_in_clear(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With http beyond this machine the command is refused before anything is sent."""
    monkeypatch.setenv("PARQUET_SINK_USER", "ada")
    assert main(["connectors", "list", "--url", "http://sink.example:8083"]) == 2
    assert_says(capsys.readouterr().err, "http://sink.example:8083", "the password", "in clear", "use https")


def test_our_own_server_lets_in_whom_it_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over TLS, by certificate and password; a wrong password, and no certificate, are each said to be that."""
    made = make(tmp_path)
    tls = TlsSettings(
        Store("key", file=str(made.server)), authorities=Store("ca", file=str(made.authority)), client_auth="required"
    )
    settings = RestSettings(
        listeners=(Address("https", "localhost", 0),), tls=tls, users=(("ada", Secret("right-one")),)
    )
    file = tmp_path / "client.properties"
    trusting = f"tls.ca.file={made.authority}\nusername=ada\n"
    with serving(FakeHerder(), settings) as server:
        words = ["--url", f"https://localhost:{server.port}", "--client-file", str(file)]
        file.write_text(f"{trusting}password=right-one\ntls.certificate.file={made.client}\n")
        assert main(["connectors", "list", *words]) == 0
        assert main(["status", *words]) == 0
        file.write_text(f"{trusting}password=wrong-one\ntls.certificate.file={made.client}\n")
        assert main(["status", *words]) == 2
        assert "wants another user or password" in capsys.readouterr().err
        file.write_text(f"{trusting}password=right-one\n")
        assert main(["status", *words]) != 0
        assert "right-one" not in capsys.readouterr().err


def test_our_own_rest_api_is_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each action does over our server what it does over a scripted one."""
    herder = FakeHerder()
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"name": ODD, "config": GOOD, "initial_state": "stopped"}))
    with serving(herder) as server:

        def does(*words: str) -> int:
            return main([*words, "--url", f"http://127.0.0.1:{server.port}"])

        assert does("connectors", "validate", str(file)) == 0
        assert does("connectors", "create", str(file), "--wait") == 0
        assert does("connectors", "create", str(file)) == 1
        herder.kept[ODD].offsets = {("orders", 0): 10}
        assert does("connectors", "offsets", ODD, "--to", "orders:0:5") == 0
        assert herder.kept[ODD].offsets == {("orders", 0): 5}
        assert does("connectors", "resume", ODD, "--wait") == 0
        assert does("connectors", "update", ODD, "--set", "connect.ems.commit.records=77", "--wait") == 0
        assert herder.kept[ODD].config["connect.ems.commit.records"] == "77"
        assert does("connectors", "update", str(file), "--wait") == 0
        assert herder.kept[ODD].config["connect.ems.commit.records"] == "1000"
        assert does("connectors", "restart", ODD, "--include-tasks", "--wait") == 0
        assert does("connectors", "restart", ODD, "--task", "9") == 1
        assert does("connectors", "pause", "--all", "--wait") == 0
        capsys.readouterr()
        assert does("connectors", "show", ODD) == 0
        assert does("connectors", "list") == 0
        assert does("status", ODD, "--partitions") == 0
        said = capsys.readouterr().out
        assert (said.count("PAUSED"), "secret-key" in said) == (5, False)
        assert does("connectors", "delete", ODD, "--wait") == 0
    assert herder.kept == {}


def complete(line: str, worker: ScriptedWorker, folder: Path) -> list[str]:
    """What the shell would offer at the end of a line."""
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    asked |= {
        "COMP_TYPE": "9",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(folder / "offered"),
        "ARGCOMPLETE_USE_TEMPFILES": "1",
    }
    environment = {**os.environ, **asked, "PARQUET_SINK_URL": worker.url}
    subprocess.run([sys.executable, "-m", "parquet_sink"], env=environment, cwd=folder, timeout=60, check=True)
    return sorted((folder / "offered").read_text().split())


def test_the_shell_completes_actions_names_and_files(worker: ScriptedWorker, tmp_path: Path) -> None:
    """Commands, actions, options, names that the worker has and that were not typed yet, and connector files."""
    (tmp_path / "a.properties").touch()
    (tmp_path / "a.txt").touch()
    assert complete("parquet-sink conn", worker, tmp_path) == ["connectors"]
    assert complete("parquet-sink connectors re", worker, tmp_path) == ["restart", "resume"]
    assert complete("parquet-sink connectors pause ", worker, tmp_path) == ["audit", "orders"]
    assert complete("parquet-sink connectors pause orders ", worker, tmp_path) == ["audit"]
    assert complete("parquet-sink connectors show o", worker, tmp_path) == ["orders"]
    assert complete("parquet-sink connectors create ", worker, tmp_path) == ["a.properties"]
    assert complete("parquet-sink connectors restart --on", worker, tmp_path) == ["--only-failed"]
    assert complete("parquet-sink status ", worker, tmp_path) == ["audit", "orders"]
    assert complete(f"parquet-sink connectors show --url http://127.0.0.1:{free_port()} ", worker, tmp_path) == []
