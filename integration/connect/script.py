"""The script: good requests, wrong ones, in every state, two at once; then the calls of known clients (`clients.py`).

It is the same for both sides but for the connector class and its keys.
"""

import json
from collections.abc import Callable, Collection
from typing import Any, Final
from urllib.parse import quote

from integration.connect.clients import kafka_ui, kcctl
from integration.connect.plugins import plugins, validation
from integration.connect.steps import (
    TOPIC,
    Produce,
    Script,
    Side,
    UntilCommitted,
    UntilFailed,
    UntilState,
    UntilTopics,
)

OTHER_TOPIC: Final = "judged.other"
Part = Callable[[Script, Side], None]
TOPICS: Final = {TOPIC: 2, OTHER_TOPIC: 1}
"""With their numbers of topic-partitions."""
LONG: Final = "long" * 75
GOOD: Final = tuple(json.dumps({"n": n}).encode() for n in range(10))
_ALTERED: Final = {"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": {"kafka_offset": 3}}


def script(side: Side, without: Collection[Part] = ()) -> Script:
    """All of it, for one side. without: parts that are left out."""
    made = Script()
    parts: tuple[Part, ...] = (
        _worker,
        plugins,
        validation,
        _creation,
        _reading,
        _configurations,
        _topics,
        _life_cycle,
        _tasks,
        _failures,
        _offsets,
        _loggers,
        _odd,
        _wrong,
        _restarting,
        _at_once,
        kcctl,
        kafka_ui,
        _deletion,
    )
    for part in parts:
        if part not in without:
            part(made, side)
    return made


def _worker(made: Script, side: Side) -> None:
    made.ask("worker", "GET /")
    made.ask("worker, by a browser", "GET /", accept="text/html,*/*;q=0.8")
    made.ask("worker, HEAD", "HEAD /")
    made.ask("health", "GET /health")
    made.ask("no connectors", "GET /connectors")
    made.ask("no connectors, slash at the end", "GET /connectors/")
    made.ask("no connectors, with info", "GET /connectors?expand=info")
    made.ask("a path that is none", "GET /nonsense")
    made.ask("a path that is none, below a connector", "GET /connectors/main/nonsense")
    made.ask("options of connectors", "OPTIONS /connectors")
    made.ask("a method that is none here", "DELETE /connectors")
    made.ask("a method that is none at the root", "POST /", {})


def _creation(made: Script, side: Side) -> None:
    made.ask("create without topics", "POST /connectors", {"name": "main", "config": side.config(None)})
    made.ask("create with two errors more", "POST /connectors", {"name": "main", "config": _wrong_config(side)})
    made.ask("create without a class", "POST /connectors", {"name": "main", "config": {"topics": TOPIC}})
    made.ask("create with a class that is none", "POST /connectors", _named({"connector.class": "x.Y", "topics": "t"}))
    made.ask("create without a configuration", "POST /connectors", {"name": "main"})
    made.ask("create with a null configuration", "POST /connectors", {"name": "main", "config": None})
    made.ask("create without a name", "POST /connectors", {"config": side.config()})
    made.ask("create with an empty name", "POST /connectors", {"name": "", "config": side.config()})
    made.ask("create with a blank name", "POST /connectors", {"name": "  ", "config": side.config()})
    made.ask(
        "create with a name that moves a cursor", "POST /connectors", {"name": "a\u0007b", "config": side.config()}
    )
    made.ask("create with two names", "POST /connectors", {"name": "main", "config": side.config(name="other")})
    made.ask("create with an unknown field", "POST /connectors", {**_named(side.config()), "colour": "red"})
    made.ask("create with a state that is none", "POST /connectors", {**_named(side.config()), "initial_state": "GONE"})
    made.ask("create with torn JSON", "POST /connectors", b'{"name": "main", "config": {')
    made.ask("create with a list", "POST /connectors", [1, 2])
    made.ask("create with a text", "POST /connectors", "main")
    made.ask("create with a nested value", "POST /connectors", _named({**side.config(), "a": {"b": 1}}))
    made.ask("create with an empty body", "POST /connectors", b"")
    made.ask("create as plain text", "POST /connectors", _named(side.config()), content_type="text/plain")
    made.ask("create for a reader of XML", "POST /connectors", {"name": "", "config": {}}, accept="application/xml")
    made.ask("create", "POST /connectors", _named(side.config(name="main")))
    made.add(UntilState("main", "RUNNING"))
    made.ask("create again", "POST /connectors", _named(side.config(name="main")))
    paused = {"name": "paused", "config": side.config(), "initial_state": "paused"}
    made.ask("create paused", "POST /connectors", paused)
    made.add(UntilState("paused", "PAUSED", None))
    stopped = {"name": "stopped", "config": side.config(tasks_max=2), "initial_state": "STOPPED"}
    made.ask("create stopped", "POST /connectors", stopped)
    made.add(UntilState("stopped", "STOPPED", 0))


def _named(config: dict[str, Any], name: str = "main") -> dict[str, Any]:
    return {"name": name, "config": config}


def _wrong_config(side: Side) -> dict[str, Any]:
    return side.config(tasks_max="many", errors_tolerance="some")


def _reading(made: Script, side: Side) -> None:
    for name in ("main", "paused", "stopped", "nobody"):
        made.ask(f"{name}", f"GET /connectors/{name}")
        made.ask(f"{name}, configuration", f"GET /connectors/{name}/config")
        made.ask(f"{name}, status", f"GET /connectors/{name}/status")
        made.ask(f"{name}, tasks", f"GET /connectors/{name}/tasks")
    made.ask("list", "GET /connectors")
    made.ask("list, with status", "GET /connectors?expand=status")
    made.ask("list, with both", "GET /connectors?expand=status&expand=info")
    made.ask("list, with what is none", "GET /connectors?expand=colour")
    made.ask("list, with what is none and status", "GET /connectors?expand=colour&expand=status")
    made.ask("slash behind a connector", "GET /connectors/main/")
    made.ask("slash behind a status", "GET /connectors/main/status/")
    made.ask("doubled slash", "GET /connectors//main")


def _configurations(made: Script, side: Side) -> None:
    made.ask("put", "PUT /connectors/main/config", side.config(errors_log_enable="true"))
    made.add(UntilState("main", "RUNNING"))
    made.ask("configuration after put", "GET /connectors/main/config")
    made.ask("put an invalid one", "PUT /connectors/main/config", side.config(None))
    made.ask("configuration after an invalid put", "GET /connectors/main/config")
    made.ask("put another's name", "PUT /connectors/main/config", side.config(name="other"))
    made.ask("put nothing", "PUT /connectors/main/config")
    made.ask("put null", "PUT /connectors/main/config", b"null")
    made.ask("put torn JSON", "PUT /connectors/main/config", b"{")
    made.ask("put a new one", "PUT /connectors/second/config", side.config())
    made.add(UntilState("second", "RUNNING"))
    made.ask(
        "patch", "PATCH /connectors/main/config", {"errors.log.enable": None, "errors.log.include.messages": "true"}
    )
    made.add(UntilState("main", "RUNNING"))
    made.ask("configuration after patch", "GET /connectors/main/config")
    made.ask("patch what makes it invalid", "PATCH /connectors/main/config", {"topics": None})
    made.ask("patch with a number", "PATCH /connectors/main/config", {"errors.retry.timeout": 0})
    made.add(UntilState("main", "RUNNING"))
    made.ask("patch nobody", "PATCH /connectors/nobody/config", {"a": "b"})
    made.ask("patch with a list", "PATCH /connectors/main/config", [])
    made.ask("patch with nothing", "PATCH /connectors/main/config")


def _topics(made: Script, side: Side) -> None:
    made.ask("topics before a record", "GET /connectors/main/topics")
    made.add(Produce(TOPIC, GOOD), UntilCommitted("main", {0: 10}), UntilTopics("main", frozenset({TOPIC})))
    made.ask("topics after records", "GET /connectors/main/topics")
    made.ask("topics are forgotten", "PUT /connectors/main/topics/reset")
    made.add(UntilTopics("main", frozenset()))
    made.ask("topics after that", "GET /connectors/main/topics")
    made.ask("topics of nobody", "GET /connectors/nobody/topics")
    made.ask("topics of nobody are forgotten", "PUT /connectors/nobody/topics/reset")


def _life_cycle(made: Script, side: Side) -> None:
    for name in ("main", "nobody"):
        settled = name == "main"
        for action, state, tasks in (("pause", "PAUSED", 1), ("stop", "STOPPED", 0), ("resume", "RUNNING", 1)):
            made.ask(f"{action} {name}", f"PUT /connectors/{name}/{action}")
            if settled:
                made.add(UntilState(name, state, tasks))
                made.ask(f"status after {action}", f"GET /connectors/{name}/status")
                made.ask(f"tasks after {action}", f"GET /connectors/{name}/tasks")
                made.ask(f"{action} {name} once more", f"PUT /connectors/{name}/{action}")
                made.add(UntilState(name, state, tasks))
        made.ask(f"restart {name}", f"POST /connectors/{name}/restart")
        made.add(*([UntilState(name, "RUNNING")] if settled else []))
        made.ask(f"restart {name} with tasks", f"POST /connectors/{name}/restart?includeTasks=true")
        made.add(*([UntilState(name, "RUNNING")] if settled else []))
    made.ask("restart what failed where nothing did", "POST /connectors/main/restart?includeTasks=true&onlyFailed=true")
    made.add(UntilState("main", "RUNNING"))
    made.ask("restart with a word for a flag", "POST /connectors/main/restart?includeTasks=perhaps")
    made.add(UntilState("main", "RUNNING"))
    made.ask("restart one that is paused", "POST /connectors/paused/restart?includeTasks=true")
    made.add(UntilState("paused", "PAUSED", None))
    made.ask("restart one that is stopped", "POST /connectors/stopped/restart?includeTasks=true")
    made.add(UntilState("stopped", "STOPPED", 0))
    made.ask("pause with GET", "GET /connectors/main/pause")
    made.ask("restart with PUT", "PUT /connectors/main/restart")


def _tasks(made: Script, side: Side) -> None:
    made.ask("status of a task", "GET /connectors/main/tasks/0/status")
    made.ask("status of a task that is none", "GET /connectors/main/tasks/9/status")
    made.ask("status of a task that is no number", "GET /connectors/main/tasks/x/status")
    made.ask("status of nobody's task", "GET /connectors/nobody/tasks/0/status")
    made.ask("restart a task", "POST /connectors/main/tasks/0/restart")
    made.add(UntilState("main", "RUNNING"))
    made.ask("restart a task that is none", "POST /connectors/main/tasks/9/restart")
    made.ask("restart a task that is no number", "POST /connectors/main/tasks/x/restart")
    made.ask("restart nobody's task", "POST /connectors/nobody/tasks/0/restart")
    made.ask("put tasks from outside", "POST /connectors/main/tasks", [])


def _failures(made: Script, side: Side) -> None:
    made.add(Produce(OTHER_TOPIC, (b"no json",)))
    made.ask("create one that will fail", "POST /connectors", _named(side.config(OTHER_TOPIC), "failing"))
    made.add(UntilFailed("failing"))
    made.ask("status of one that failed", "GET /connectors/failing/status")
    made.ask("status of a task that failed", "GET /connectors/failing/tasks/0/status")
    made.ask("restart what failed", "POST /connectors/failing/restart?includeTasks=true&onlyFailed=true")
    made.add(UntilFailed("failing"))
    made.ask("pause one that failed", "PUT /connectors/failing/pause")
    made.ask("resume one that failed", "PUT /connectors/failing/resume")
    made.ask("stop one that failed", "PUT /connectors/failing/stop")
    made.add(UntilState("failing", "STOPPED", 0))
    made.ask("delete one that failed", "DELETE /connectors/failing")
    made.add(UntilState("failing", None))


def _offsets(made: Script, side: Side) -> None:
    path = "/connectors/main/offsets"
    made.ask("offsets", f"GET {path}")
    made.ask("offsets of one without any", "GET /connectors/stopped/offsets")
    made.ask("offsets of nobody", "GET /connectors/nobody/offsets")
    made.ask("alter offsets while running", f"PATCH {path}", {"offsets": [_ALTERED]})
    made.ask("reset offsets while running", f"DELETE {path}")
    made.ask("stop for offsets", "PUT /connectors/main/stop")
    made.add(UntilState("main", "STOPPED", 0))
    made.ask("alter offsets", f"PATCH {path}", {"offsets": [_ALTERED]})
    made.ask("offsets after that", f"GET {path}")
    texts = {"partition": {"kafka_topic": TOPIC, "kafka_partition": "0"}, "offset": {"kafka_offset": "5"}}
    made.ask("alter offsets by texts", f"PATCH {path}", {"offsets": [texts]})
    made.ask("offsets after texts", f"GET {path}")
    for title, partition, offset in (
        ("of no topic", {"kafka_topic": "nowhere", "kafka_partition": 0}, {"kafka_offset": 1}),
        ("of no topic-partition", {"kafka_topic": TOPIC, "kafka_partition": 99}, {"kafka_offset": 1}),
        ("below nothing", {"kafka_topic": TOPIC, "kafka_partition": 0}, {"kafka_offset": -1}),
        ("with a word", {"kafka_topic": TOPIC, "kafka_partition": 0}, {"kafka_offset": "many"}),
        ("without a topic", {"kafka_partition": 0}, {"kafka_offset": 1}),
        ("without an offset", {"kafka_topic": TOPIC, "kafka_partition": 0}, {}),
        ("with a null for a topic-partition", None, {"kafka_offset": 1}),
        ("with another key", {"kafka_topic": TOPIC, "kafka_partition": 0, "colour": 1}, {"kafka_offset": 1}),
    ):
        entry = {"partition": partition, "offset": offset}
        made.ask(f"alter offsets {title}", f"PATCH {path}", {"offsets": [entry]})
    made.ask("alter no offsets", f"PATCH {path}", {"offsets": []})
    made.ask("alter offsets without a list", f"PATCH {path}", {})
    made.ask("alter offsets with a null", f"PATCH {path}", {"offsets": None})
    made.ask("alter offsets with an empty body", f"PATCH {path}")
    made.ask("alter offsets of nobody", "PATCH /connectors/nobody/offsets", {"offsets": [_ALTERED]})
    made.ask("remove one offset", f"PATCH {path}", {"offsets": [{**_ALTERED, "offset": None}]})
    made.ask("offsets after a removal", f"GET {path}")
    made.ask("reset offsets", f"DELETE {path}")
    made.ask("reset offsets once more", f"DELETE {path}")
    made.ask("offsets after a reset", f"GET {path}")
    made.ask("reset offsets of nobody", "DELETE /connectors/nobody/offsets")
    made.ask("resume after offsets", "PUT /connectors/main/resume")
    made.add(UntilState("main", "RUNNING"), UntilCommitted("main", {0: 10}))


def _loggers(made: Script, side: Side) -> None:
    made.ask("loggers", "GET /admin/loggers")
    made.ask("logger of the root", "GET /admin/loggers/root")
    made.ask("logger that is none", "GET /admin/loggers/no.such.logger")
    one = f"/admin/loggers/{side.logger}"
    made.ask("set a level", f"PUT {one}", {"level": "debug"})
    made.ask("logger after that", f"GET {one}")
    made.ask("set a level with a scope that is none", f"PUT {one}?scope=galaxy", {"level": "WARN"})
    made.ask("set a level that is none", f"PUT {one}", {"level": "LOUD"})
    made.ask("set no level", f"PUT {one}", {})
    made.ask("set a level by a list", f"PUT {one}", ["INFO"])
    made.ask("set the level of a logger that is none", "PUT /admin/loggers/judged", {"level": "INFO"})
    made.ask("set a level for the cluster", f"PUT {one}?scope=cluster", {"level": "INFO"})


def _odd(made: Script, side: Side) -> None:
    odd = quote(side.odd, safe="")
    path = f"/connectors/{odd}"
    made.ask("create an odd name", "POST /connectors", _named(side.config(), side.odd))
    made.add(UntilState(odd, "RUNNING"))
    made.ask("status of an odd name", f"GET {path}/status")
    made.ask("pause an odd name", f"PUT {path}/pause")
    made.ask("delete an odd name", f"DELETE {path}")
    made.add(UntilState(odd, None))
    made.ask("create a name of 300 characters", "POST /connectors", {**_named(side.config(), LONG)})
    made.ask("delete a name of 300 characters", f"DELETE /connectors/{LONG}")
    made.add(UntilState(LONG, None))
    made.ask("a name with a slash", "GET /connectors/a%2Fb/status")
    made.ask("a name with a percent sign", "GET /connectors/a%25b/status")
    made.ask("a name that goes up", "GET /connectors/%2E%2E/status")
    made.ask("a name that goes up in clear", "GET /connectors/../connectors")
    made.ask("a name with a semicolon", "GET /connectors/a;b=c/status")
    made.ask("a name with a null byte", "GET /connectors/a%00b/status")
    made.ask("a name that is no UTF-8", "GET /connectors/a%FFb/status")


def _wrong(made: Script, side: Side) -> None:
    made.ask("a body that is no UTF-8", "POST /connectors", b'{"name": "\xff", "config": {}}')
    made.ask("a body with a mark", "POST /connectors", b'\xef\xbb\xbf{"name": "", "config": {}}')
    made.ask("a body with twice the same", "POST /connectors", b'{"name": "a", "name": "", "config": {}}')
    made.ask("a body nested deeply", "POST /connectors", b"[" * 5_000)
    made.ask("a body that says XML", "PUT /connectors/main/config", b"<a/>", content_type="application/xml")
    made.ask("a charset", "PUT /connectors/nobody/config", {}, content_type="application/json; charset=utf-8")


def _restarting(made: Script, side: Side) -> None:
    """While a restart goes on; what is told of states then is a matter of luck, so it is not asked."""
    restart = "POST /connectors/main/restart?includeTasks=true"
    for title, request, body in (
        ("read it", "GET /connectors/main", None),
        ("read its configuration", "GET /connectors/main/config", None),
        ("read its tasks", "GET /connectors/main/tasks", None),
        ("reset its topics", "PUT /connectors/main/topics/reset", None),
        ("alter its offsets", "PATCH /connectors/main/offsets", {"offsets": [_ALTERED]}),
        ("reset its offsets", "DELETE /connectors/main/offsets", None),
        ("restart it once more", restart, None),
        ("restart a task", "POST /connectors/main/tasks/0/restart", None),
        ("create it", "POST /connectors", _named(side.config())),
        ("put an invalid one", "PUT /connectors/main/config", side.config(None)),
    ):
        made.ask(f"restart, and then {title}", restart)
        made.ask(f"while it restarts: {title}", request, body)
    made.add(UntilState("main", "RUNNING"))
    for action, state, tasks in (("pause", "PAUSED", 1), ("resume", "RUNNING", 1), ("stop", "STOPPED", 0)):
        made.ask(f"restart, and then {action}", restart)
        made.ask(f"while it restarts: {action}", f"PUT /connectors/main/{action}")
        made.add(UntilState("main", state, tasks))
    made.ask("resume after restarts", "PUT /connectors/main/resume")
    made.add(UntilState("main", "RUNNING"))


def _at_once(made: Script, side: Side) -> None:
    """Pairs for one connector at the same time: which comes first is a matter of luck, the two answers are not."""
    twin = _named(side.config(), "twin")
    made.ask("create what will be asked twice", "POST /connectors", twin)
    made.add(UntilState("twin", "RUNNING"))
    made.ask("put it twice at once", "PUT /connectors/twin/config", side.config(errors_log_enable="true"), times=2)
    made.add(UntilState("twin", "RUNNING"))
    made.ask("restart it twice at once", "POST /connectors/twin/restart?includeTasks=true", times=2)
    made.add(UntilState("twin", "RUNNING"))
    for action, state, tasks in (("pause", "PAUSED", 1), ("resume", "RUNNING", 1), ("stop", "STOPPED", 0)):
        made.ask(f"{action} it twice at once", f"PUT /connectors/twin/{action}", times=2)
        made.add(UntilState("twin", state, tasks))
    made.ask("delete what was asked twice", "DELETE /connectors/twin")
    made.add(UntilState("twin", None))


def _deletion(made: Script, side: Side) -> None:
    made.ask("delete nobody", "DELETE /connectors/nobody")
    made.ask("delete", "DELETE /connectors/main")
    made.add(UntilState("main", None))
    made.ask("status after deletion", "GET /connectors/main/status")
    made.ask("topics after deletion", "GET /connectors/main/topics")
    made.ask("delete once more", "DELETE /connectors/main")
    made.ask("create it again", "POST /connectors", {**_named(side.config()), "initial_state": "STOPPED"})
    made.add(UntilState("main", "STOPPED", 0))
    made.ask("its offsets are still there", "GET /connectors/main/offsets")
    for name in ("main", "paused", "stopped", "second"):
        made.ask(f"delete {name} in the end", f"DELETE /connectors/{name}")
        made.add(UntilState(name, None))
    made.ask("nothing is left", "GET /connectors?expand=info&expand=status")
