"""`/connectors` over real sockets: statuses, headers and bodies are those of Kafka Connect."""

import json
from threading import Barrier, Thread
from urllib.parse import quote

import pytest

from parquet_sink import __version__
from parquet_sink.worker.herder.errors import ShuttingDown, TimedOut
from parquet_sink.worker.herder.values import TargetState
from tests.messages import assert_line_says, assert_says
from tests.worker.rest.fake_herder import WORKER, FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client

ODD_NAMES = ("a/b", "50%", " blank within ", "ü-ß-漢", "a;b=c", "..", "%2F", "x" * 300, "q?x=1#y", "+")
KAFKA_CONNECT_BEGIN = "Connector configuration is invalid and contains the following 1 error(s):\n"
KAFKA_CONNECT_END = "at the endpoint `/connector-plugins/{connectorType}/config/validate`"


def _made(api: Client, name: str, **config: str) -> None:
    assert api.ask("POST", "/connectors", {"name": name, "config": {**GOOD, **config}}).status == 201


def test_a_connector_that_is_made_is_told_with_its_address(api: Client, herder: FakeHerder) -> None:
    """201, an absolute Location, numbers and booleans as texts, the password hidden."""
    config = {**GOOD, "tasks.max": 2, "connect.ems.commit.records": 1.50, "connect.ems.embed.kafka.metadata": True}
    got = api.ask("POST", "/connectors", {"name": " orders ", "config": config})
    assert got.status == 201
    assert got.headers["Location"] == f"http://127.0.0.1:{api.port}/connectors/orders"
    assert got.headers["Content-Type"] == "application/json"
    shown = got.json["config"]
    assert list(got.json) == ["name", "config", "tasks", "type"]
    assert (shown["tasks.max"], shown["connect.ems.embed.kafka.metadata"]) == ("2", "true")
    assert (shown["connect.ems.authorization.key"], shown["name"]) == ("[hidden]", "orders")
    assert herder.kept["orders"].config["connect.ems.authorization.key"] == "AppKey secret-key"
    assert got.json["tasks"] == [{"connector": "orders", "task": 0}, {"connector": "orders", "task": 1}]


def test_numbers_of_a_configuration_keep_their_digits(api: Client, herder: FakeHerder) -> None:
    """What JSON calls a number is taken as it is written."""
    numbers = b'"a":1.50,"b":123456789012345678901234,"c":1e3'
    raw = b'{"name":"n","config":{"connector.class":"EmsSink","topics":"t",' + numbers + b"}}"
    assert api.ask("POST", "/connectors", raw=raw).status == 201
    config = herder.kept["n"].config
    assert (config["a"], config["b"], config["c"]) == ("1.50", "123456789012345678901234", "1e3")


@pytest.mark.parametrize(
    ("state", "target"),
    [("paused", TargetState.PAUSED), ("STOPPED", TargetState.STOPPED), ("Running", TargetState.STARTED)],
)
def test_a_connector_may_begin_in_any_state(api: Client, herder: FakeHerder, state: str, target: TargetState) -> None:
    """The initial state is not case-sensitive."""
    assert api.ask("POST", "/connectors", {"name": "c", "config": GOOD, "initial_state": state}).status == 201
    assert herder.kept["c"].target is target


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names_like_others(api: Client, herder: FakeHerder, name: str) -> None:
    """A connector of any name can be made, looked at by its Location, changed and removed."""
    stripped = name.strip()
    got = api.ask("POST", "/connectors", {"name": name, "config": GOOD})
    assert (got.status, list(herder.kept)) == (201, [stripped])
    path = got.headers["Location"].partition(f":{api.port}")[2]
    assert api.get(path).json["name"] == stripped
    assert api.get(f"{path}/status").json["name"] == stripped
    assert api.ask("PUT", f"{path}/config", GOOD).status == 200
    assert api.ask("PUT", f"{path}/pause").status == 202
    assert api.ask("DELETE", path).status == 204
    assert herder.kept == {}


def test_a_connector_that_is_there_is_not_made_again(api: Client) -> None:
    """409, in Kafka Connect's words."""
    _made(api, "orders")
    got = api.ask("POST", "/connectors", {"name": "orders", "config": GOOD})
    assert got.error == (409, "Connector orders already exists")


def test_two_requests_at_once_make_one_connector(api: Client, herder: FakeHerder) -> None:
    """Whoever comes second is told so."""
    both = Barrier(2, timeout=10)
    herder.waits = lambda: both.wait() and None
    statuses: list[int] = []

    def make() -> None:
        statuses.append(api.ask("POST", "/connectors", {"name": "c", "config": GOOD}).status)

    threads = [Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(statuses) == [201, 409]


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"", ("empty", "send name and config")),
        (b"null", ("empty", "send name and config")),
        (b'{"name": "x", ', ("line 1, column 15", "correct it")),
        (b"[1]", ("not a JSON object",)),
        (b'"x"', ("not a JSON object",)),
        (b'{"name": "x"}', ("empty", "send config")),
        (b'{"name": "x", "config": []}', ("not a JSON object", "send config")),
        (b'{"name": "x", "config": {}, "foo": 1}', ('"foo"', "not a field", "name, config, initial_state")),
        (b'{"name": "x", "config": {"a": ["t"]}}', ('"a"', "a JSON list", "as a text")),
        (b'{"name": "x", "config": {"a": NaN}}', ("NaN is not JSON",)),
        (b'{"name": "x", "config": {}, "initial_state": "gone"}', ('"gone"', "initial_state", "RUNNING, PAUSED")),
        (b'{"name": {}, "config": {}}', ('"name"', "is a JSON object")),
        (b"\xff\xfe", ("not UTF-8",)),
        (b'{"name": "\\ud800", "config": {}}', ("surrogates",)),
        (b"[" * 200_000, ("nested too deeply",)),
    ],
)
def test_a_body_that_cannot_be_read_is_told_why(
    api: Client, herder: FakeHerder, body: bytes, parts: tuple[str, ...]
) -> None:
    """Kafka Connect's status 500, with a cause and a cure; nothing is made."""
    got = api.ask("POST", "/connectors", raw=body, headers={"Content-Type": "application/json", "Accept": "*/*"})
    if not body:
        connection = api.connection()
        connection.request("POST", "/connectors", b"", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read().decode()
        connection.close()
    else:
        status, text = got.error
    assert status == 500
    assert_says(text, *parts)
    assert herder.kept == {}


@pytest.mark.parametrize(
    ("config", "status", "message"),
    [
        ({}, 400, "contains no connector type"),
        ({"connector.class": " "}, 400, "contains no connector type"),
        (
            {"connector.class": "Nothing"},
            400,
            "Failed to find any class that implements Connector and which name matches",
        ),
        ({"connector.class": "EmsSink"}, 400, "contains the following 2 error(s):\nInvalid [topics]. "),
        (
            {"connector.class": "EmsSink", "name": "y"},
            400,
            "Connector name configuration (y) doesn't match connector name",
        ),
        ({**GOOD, "tasks.max": None}, 400, "Invalid [tasks.max]. Null value can not be supplied"),
    ],
)
def test_a_wrong_configuration_is_refused_whole(
    api: Client, herder: FakeHerder, config: dict[str, object], status: int, message: str
) -> None:
    """By POST as by PUT, and what is there stays as it was."""
    herder.kept["x"] = Kept({**GOOD, "name": "x"})
    new = {**config, **({"name": "z"} if "name" in config else {})}
    for got in (
        api.ask("POST", "/connectors", {"name": "new", "config": new}),
        api.ask("PUT", "/connectors/x/config", config),
    ):
        found, text = got.error
        assert (found, message.replace("(y)", "(z)") in text or message in text) == (status, True), text
    assert {name: kept.config for name, kept in herder.kept.items()} == {"x": {**GOOD, "name": "x"}}


def test_a_connector_needs_a_name(api: Client, herder: FakeHerder) -> None:
    """An empty one would become the name that files without one get."""
    for body in (
        {"name": "", "config": GOOD},
        {"name": " \t", "config": GOOD},
        {"config": GOOD},
        {"name": None, "config": GOOD},
    ):
        status, message = api.ask("POST", "/connectors", body).error
        assert status == 400
        assert message.startswith(KAFKA_CONNECT_BEGIN)
        assert message.endswith(KAFKA_CONNECT_END)
        assert_line_says(message, "[name]", "empty", "name the connector")
    assert herder.kept == {}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("%20x", "begins or ends with a blank"),
        ("x%C2%A0", "begins or ends with a blank"),
        ("$%7Benv:HOME%7D", "placeholder"),
    ],
)
def test_a_name_is_what_the_configuration_reads(api: Client, herder: FakeHerder, path: str, reason: str) -> None:
    """Blanks around it are no part of a value, and a placeholder stands for something else."""
    status, message = api.ask("PUT", f"/connectors/{path}/config", GOOD).error
    assert (status, reason in message, herder.kept) == (400, True, {})


def test_put_makes_or_changes(api: Client, herder: FakeHerder) -> None:
    """201 with a Location for a new connector, 200 without one for a change."""
    first = api.ask("PUT", "/connectors/new/config", GOOD)
    assert (first.status, first.headers["Location"]) == (201, f"http://127.0.0.1:{api.port}/connectors/new")
    again = api.ask("PUT", "/connectors/new/config", {**GOOD, "topics": "other"})
    assert (again.status, again.headers["Location"]) == (200, None)
    assert herder.kept["new"].config["topics"] == "other"


def test_patch_changes_some_keys_and_removes_those_that_are_null(api: Client, herder: FakeHerder) -> None:
    """200 with the whole; the name stays; of a connector that is not there nothing is made."""
    _made(api, "c", **{"tasks.max": "3"})
    got = api.ask("PATCH", "/connectors/c/config", {"tasks.max": None, "connect.ems.commit.records": 7})
    assert (got.status, got.json["config"]["connect.ems.commit.records"]) == (200, "7")
    assert "tasks.max" not in herder.kept["c"].config
    assert api.ask("PATCH", "/connectors/c/config", {"topics": None}).status == 400
    assert api.ask("PATCH", "/connectors/c/config", {"name": None}).status == 400
    assert api.ask("PATCH", "/connectors/c/config", {"connector.class": None}).status == 400
    assert api.ask("PATCH", "/connectors/no/config", {"a": "b"}).error == (404, "Connector no not found")


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/config", "Connector x not found"),
        ("DELETE", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/tasks", "Connector x not found"),
        ("GET", "/connectors/x/offsets", "Connector x not found"),
        ("DELETE", "/connectors/x/offsets", "Connector x not found"),
        ("GET", "/connectors/x/status", "No status found for connector x"),
        ("PUT", "/connectors/x/pause", "Unknown connector x"),
        ("PUT", "/connectors/x/resume", "Unknown connector x"),
        ("PUT", "/connectors/x/stop", "Unknown connector x"),
        ("POST", "/connectors/x/restart", "Unknown connector: x"),
        ("POST", "/connectors/x/restart?includeTasks=true", "Unknown connector: x"),
        ("POST", "/connectors/x/tasks/0/restart", "Unknown connector: x"),
        ("GET", "/connectors/x/tasks/0/status", "No status found for task x-0"),
        ("POST", "/connectors/there/tasks/9/restart", "Unknown task: there-9"),
        ("GET", "/connectors/there/tasks/9/status", "No status found for task there-9"),
        ("GET", "/connectors/there/tasks/x/status", "HTTP 404 Not Found"),
        ("POST", "/connectors/there/tasks/1.5/restart", "HTTP 404 Not Found"),
        ("GET", "/connectors/there/nothing", "HTTP 404 Not Found"),
        ("GET", "/connectors//status", "HTTP 404 Not Found"),
        ("GET", "/connectors/../health", "HTTP 404 Not Found"),
        ("GET", "/connectors/%7B%7D/status", "No status found for connector {}"),
    ],
)
def test_what_is_not_there_is_404_in_each_endpoints_words(api: Client, method: str, path: str, message: str) -> None:
    """Kafka Connect has five texts for it, and clients compare some of them."""
    _made(api, "there")
    assert api.ask(method, path).error == (404, message)


@pytest.mark.parametrize(
    ("query", "status", "asked"),
    [
        ("", 204, (False, False)),
        ("?includeTasks=false&onlyFailed=nonsense", 204, (False, False)),
        ("?includeTasks=TRUE", 202, (True, False)),
        ("?onlyFailed=true", 202, (False, True)),
        ("?includeTasks=true&onlyFailed=true", 202, (True, True)),
    ],
)
def test_a_restart_tells_the_state_only_when_it_was_asked_for_more(
    api: Client, herder: FakeHerder, query: str, status: int, asked: tuple[bool, bool]
) -> None:
    """204 and nothing as long ago, 202 and the status with a parameter that is true."""
    _made(api, "c")
    got = api.ask("POST", f"/connectors/c/restart{query}")
    assert (got.status, herder.asked) == (status, [("restart", "c", *asked)])
    assert (json.loads(got.raw)["connector"]["state"] if got.raw else None) == ("RESTARTING" if status == 202 else None)


def test_states_are_told_without_what_is_not_there(api: Client, herder: FakeHerder) -> None:
    """No trace where nothing failed; a stopped connector has no tasks."""
    _made(api, "c")
    one = {"state": "RUNNING", "worker_id": WORKER, "version": __version__}
    assert api.get("/connectors/c/status").json == {
        "name": "c",
        "connector": one,
        "tasks": [{"id": 0, **one}],
        "type": "sink",
    }
    assert api.get("/connectors/c/tasks/0/status").json == {"id": 0, **one}
    herder.kept["c"].trace = "it broke"
    assert api.get("/connectors/c/status").json["tasks"][0] == {
        "id": 0,
        "state": "FAILED",
        "worker_id": WORKER,
        "version": __version__,
        "trace": "it broke",
    }
    herder.kept["c"].trace = ""
    assert api.ask("PUT", "/connectors/c/stop").status == 204
    stopped = api.get("/connectors/c/status").json
    assert (stopped["connector"]["state"], stopped["tasks"]) == ("STOPPED", [])


def test_all_connectors_are_listed_or_expanded(api: Client) -> None:
    """Names, or what is asked of each; an unknown part is passed over, as is a slash at the end."""
    _made(api, "b")
    _made(api, "a")
    assert api.get("/connectors").json == ["a", "b"]
    assert api.get("/connectors/").json == ["a", "b"]
    both = api.get("/connectors?expand=info&expand=status").json
    assert {name: set(parts) for name, parts in both.items()} == {"a": {"info", "status"}, "b": {"info", "status"}}
    assert both["a"]["info"]["config"]["connect.ems.authorization.key"] == "[hidden]"
    assert api.get("/connectors?expand=nonsense").json == {"a": {}, "b": {}}


def test_a_connector_of_a_class_that_is_gone_is_of_unknown_type(api: Client, herder: FakeHerder) -> None:
    """It can still be looked at and removed."""
    herder.kept["old"] = Kept({"connector.class": "com.gone.Sink", "a.password": "p", "name": "old"})
    got = api.get("/connectors/old").json
    assert (got["type"], got["config"]["a.password"]) == ("unknown", "[hidden]")
    assert api.ask("DELETE", "/connectors/old").status == 204


def test_tasks_have_the_configuration_without_passwords(api: Client) -> None:
    """One entry for each."""
    _made(api, "c", **{"tasks.max": "2"})
    tasks = api.get("/connectors/c/tasks").json
    assert [one["id"] for one in tasks] == [{"connector": "c", "task": 0}, {"connector": "c", "task": 1}]
    assert tasks[1]["config"]["connect.ems.authorization.key"] == "[hidden]"
    by_task = api.get("/connectors/c/tasks-config").json
    assert by_task == {"c-0": tasks[0]["config"], "c-1": tasks[1]["config"]}
    api.ask("PUT", "/connectors/c/stop")
    assert api.get("/connectors/c/tasks").json == []
    assert api.get("/connectors/c/tasks-config").error == (404, "Connector c not found")


def test_topics_are_told_and_forgotten(api: Client) -> None:
    """A connector that is not there has none, and nothing to forget."""
    _made(api, "c")
    assert api.get("/connectors/c/topics").json == {"c": {"topics": ["orders"]}}
    reset = api.ask("PUT", "/connectors/c/topics/reset")
    assert (reset.status, reset.raw) == (202, b"")
    assert api.get("/connectors/c/topics").json == {"c": {"topics": []}}
    assert api.get("/connectors/no/topics").json == {"no": {"topics": []}}
    assert api.ask("PUT", "/connectors/no/topics/reset").status == 202


@pytest.mark.parametrize("path", ["/connectors", "/connectors/c", "/connectors/c/status", "/connectors/c/topics"])
def test_a_worker_that_is_late_or_ends_is_told(api: Client, herder: FakeHerder, path: str) -> None:
    """500 when the time is over, 503 when the worker ends, and 500 without details for a defect."""
    herder.fails = TimedOut()
    assert api.get(path).error[0] == 500
    assert api.get(path).json["message"].startswith("Request timed out")
    herder.fails = ShuttingDown()
    assert api.get(path).error[0] == 503
    herder.fails, herder.crashes = None, RuntimeError("secret-key")
    status, message = api.get(path).error
    assert (status, "secret" in message, "its log has the cause" in message) == (500, False, True)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "BREW"])
def test_a_method_that_is_not_there_is_405(api: Client, method: str) -> None:
    """With the methods that there are."""
    got = api.ask(method, "/connectors")
    assert got.error == (405, "HTTP 405 Method Not Allowed")
    assert got.headers["Allow"] == "GET, HEAD, OPTIONS, POST"


def test_media_types_other_than_json_are_refused(api: Client, herder: FakeHerder) -> None:
    """415 for what is sent, 406 for what is wanted."""
    body = json.dumps({"name": "c", "config": GOOD}).encode()
    for sent in ("text/plain", "application/x-www-form-urlencoded", ""):
        got = api.ask("POST", "/connectors", raw=body, headers={"Content-Type": sent})
        assert got.error == (415, "HTTP 415 Unsupported Media Type")
    assert herder.kept == {}
    assert api.get("/connectors", Accept="text/html").error == (406, "HTTP 406 Not Acceptable")
    for accepted in ("*/*", "text/html, application/json;q=0.5", "application/*", ""):
        assert api.get("/connectors", Accept=accepted).status == 200
    charset = {"Content-Type": "application/json; charset=utf-8"}
    assert api.ask("POST", "/connectors", raw=body, headers=charset).status == 201


def test_a_path_with_a_wrong_escape_is_refused(api: Client) -> None:
    """So is one that is not UTF-8."""
    status, message = api.get("/connectors/%").error
    assert status == 400
    assert_says(message, "path", "%", "no escape", "write it as %25")
    assert api.get("/connectors/%zz").error[0] == 400
    assert api.get("/connectors/%ff").error[0] == 400


def test_head_and_options_are_answered(api: Client) -> None:
    """HEAD as GET without a body; OPTIONS with the methods."""
    head = api.ask("HEAD", "/connectors")
    assert (head.status, head.raw) == (200, b"")
    assert api.ask("OPTIONS", f"/connectors/{quote('x')}").headers["Allow"] == "DELETE, GET, HEAD, OPTIONS"


def test_a_purge_says_what_stays(api: Client, herder: FakeHerder) -> None:
    """An answer of its own; without the parameter it is Kafka Connect's."""
    herder.kept |= {"a": Kept({**GOOD}), "b": Kept({**GOOD})}
    got = api.ask("DELETE", "/connectors/a?purge=true")
    assert (got.status, got.json) == (200, {"left": ["/tmp/kept.parquet"], "warnings": []})
    assert herder.asked == [("look", "a"), ("purge", "a")]
    assert api.ask("DELETE", "/connectors/b").status == 204
    assert api.ask("DELETE", "/connectors/a?purge=true").status == 404
