"""The REST API over the worker's own loop, whose queries are doubles: what a client reads after what it asked for."""

from tests.worker.loop.worker_doubles import BROKEN, Loop
from tests.worker.rest.serving import serving

CONFIG = {"connector.class": "EmsSink", "topics": "orders", "tasks": "2", "connect.ems.authorization.key": "AppKey k"}


def test_a_connectors_life_over_http(loop: Loop) -> None:
    """Made, run, paused, stopped, resumed, changed, restarted and removed; each answer is there to read at once."""
    with serving(loop.requests) as api:  # type: ignore[arg-type]
        made = api.ask("POST", "/connectors", {"name": "a/b", "config": CONFIG})
        assert (made.status, api.get("/connectors").json) == (201, ["a/b"])
        path = "/connectors/a%2Fb"
        assert api.get(path).json["config"]["connect.ems.authorization.key"] == "[hidden]"
        loop.round(8)
        status = api.get(f"{path}/status").json
        assert (status["connector"]["state"], len(status["tasks"])) == ("RUNNING", 2)
        for action, code, state, tasks in (
            ("pause", 202, "PAUSED", 2),
            ("stop", 204, "STOPPED", 0),
            ("resume", 202, "RUNNING", 2),
        ):
            assert api.ask("PUT", f"{path}/{action}").status == code
            loop.round(12)
            status = api.get(f"{path}/status").json
            assert (status["connector"]["state"], len(status["tasks"])) == (state, tasks)
        shown = api.get(f"{path}/config").json
        assert api.ask("PUT", f"{path}/config", {**shown, "records": "7"}).status == 200
        assert loop.registry.connectors["a/b"].stored.config["connect.ems.authorization.key"] == "AppKey k"
        refused = api.ask("PUT", f"{path}/config", {**shown, "bad": "x"})
        assert (refused.status, BROKEN in refused.json["message"]) == (400, True)
        assert api.get(f"{path}/config").json["records"] == "7"
        loop.round(12)
        restarted = api.ask("POST", f"{path}/restart?includeTasks=true")
        assert (restarted.status, restarted.json["connector"]["state"]) == (202, "RESTARTING")
        assert [one["status"]["name"] for one in api.get("/progress").json] == ["a/b"]
        assert api.ask("PATCH", f"{path}/offsets", {"offsets": []}).status == 400
        assert api.ask("DELETE", path).status == 204
        assert api.get(path).error == (404, "Connector a/b not found")


def test_warnings_go_to_whoever_typed(loop: Loop) -> None:
    """In the answer to each change of a connector, and later in its progress; without any there is no field."""
    with serving(loop.requests) as api:  # type: ignore[arg-type]
        warning = "Warning [odd]. It is unknown."
        odd = {**CONFIG, "odd": "x"}
        answers = [
            api.ask("POST", "/connectors", {"name": "c", "config": odd}),
            api.ask("PUT", "/connectors/c/config", {**odd, "records": "7"}),
            api.ask("PATCH", "/connectors/c/config", {"records": "8"}),
        ]
        assert [(one.status, one.json["warnings"]) for one in answers] == [
            (201, [warning]), (200, [warning]), (200, [warning])
        ]  # fmt: skip
        loop.round(8)
        assert api.get("/progress").json[0]["warnings"] == [warning]
        assert "warnings" not in api.get("/connectors/c").json
        assert "warnings" not in api.ask("PATCH", "/connectors/c/config", {"odd": None}).json
        assert api.get("/progress").json[0]["warnings"] == []
