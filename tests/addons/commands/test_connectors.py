"""`parquet-sink connectors`: options that do not go together, which worker is asked, and how long is waited."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import pytest

from parquet_sink.addons.commands.connectors.life_cycle import wait_until
from parquet_sink.cli.main import main
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.cli.worker_api.settings import ApiSettings, settings_of
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import Parsed
from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration, WorkerRefused
from parquet_sink.worker.herder.values import State
from tests.messages import assert_says, saying


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["pause"], ("[pause]", "names of connectors", "--all")),
        (["pause", "--all", "x"], ("[--all]",)),
        (["show", ""], ('[""]',)),
        (["stop", "x", "--wait", "0"], ("[--wait]", "0 is not more")),
        (["restart", "x", "--task", "-1"], ("[--task]", "-1 is less than 0")),
        (["restart", "x", "--task", "1", "--include-tasks"], ("[--task]", "one task alone")),
        (["update", "x", "--set", "a=b", "--create"], ("[--create]",)),
        (["offsets", "x", "--yes"], ("[--yes]",)),
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is named with the cure, before any worker is asked."""
    assert main(["connectors", *words, "--url", "http://127.0.0.1:1"]) == 2
    assert_says(capsys.readouterr().err, "Invalid", *wrong)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["stop", "x", "--wait", "nan"],
        ["nonsense"],
        ["show"],
        ["show", "a", "b"],
        ["create"],
        ["list", "x"],
        ["pause", "x", "--task", "1"],
        ["offsets", "x", "--reset", "--to", "t:0:1"],
        *(["offsets", "x", "--to", text] for text in ("t", "t:0", "t:x:1", "t:0:-1", ":0:1", f"t:0:{1 << 63}")),
        ["update", "x", "--set", "verysecret"],
        ["update", "x", "--set", "=verysecret"],
    ],
)
def test_words_that_are_no_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They end in the parser, with status 2; a value that may be a secret is not repeated."""
    with pytest.raises(SystemExit) as ended:
        main(["connectors", *words])
    assert ended.value.code == 2
    assert "verysecret" not in capsys.readouterr().err


def settings(
    url: str | None = None, timeout: float = 5.0, file: Mapping[str, str] | None = None, **environment: str
) -> ApiSettings:
    """The settings by option, client file and environment."""
    parsed = None if file is None else Parsed(file)
    machine = Machine(environ={f"PARQUET_SINK_{name}": value for name, value in environment.items()})
    return settings_of(Namespace(url=url, timeout=timeout), machine, parsed, "c.properties")[0]


def test_what_is_nearer_wins() -> None:
    """The option before the file before the environment before what goes without saying; a user with his password."""
    file = {"url": "https://file", "username": "of-file", "password": "p"}
    environment = {"URL": "https://env", "USER": "of-env", "PASSWORD": "q"}
    assert settings("https://option/", file=file, **environment).url == "https://option"
    assert settings(file=file, **environment).url == "https://file"
    assert settings(**environment).url == "https://env"
    assert settings().url == "http://localhost:8083"
    assert (settings(file=file, **environment).username, settings(file=file, **environment).password) == (
        "of-file",
        Secret("p"),
    )
    assert settings(file={"username": "of-file"}, URL="https://env", PASSWORD="q").password == Secret("q")
    assert settings(file={"password": "p"}, **environment).password == Secret("q")


@pytest.mark.parametrize(
    "url", ["localhost:8083", "ftp://x", "http://", "http://x:0", "http://x:99999", "http://[", "http://x?a=b", "x"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """Where it was given is named: option, key with its file, or variable."""
    with pytest.raises(InvalidConfiguration, match=r"^Invalid \[--url\]"):
        settings(url)
    with pytest.raises(InvalidConfiguration, match=saying("Invalid [url]", "c.properties")):
        settings(file={"url": url})
    with pytest.raises(InvalidConfiguration, match=r"^Invalid \[PARQUET_SINK_URL\]"):
        settings(URL=url)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    """It would stand in the list of processes, and in messages."""
    with pytest.raises(InvalidConfiguration) as found:
        settings("https://ada:verysecret@x")
    assert "verysecret" not in str(found.value)
    assert "PARQUET_SINK_PASSWORD" in str(found.value)


def test_a_password_goes_in_clear_to_this_machine_alone() -> None:
    """Http is enough on loopback, and refused elsewhere."""
    assert settings("http://127.0.0.1:8083", USER="ada").username == "ada"
    with pytest.raises(InvalidConfiguration, match=saying("[--url]", "in clear", "use https")):
        settings("http://10.0.0.1:8083", USER="ada")
    assert settings("http://10.0.0.1:8083").username is None


class Looks(WorkerApi):
    """A worker whose status is one after the other, the last for good. waits_for: in its progress, if it has that."""

    def __init__(self, *states: str | None, waits_for: str | None = None) -> None:
        self.states, self.now_s, self.waits_for = list(states), 0.0, waits_for

    def get(self, *path: str, **query: Any) -> Any:
        if path == ("progress",):
            if self.waits_for is None:
                raise WorkerRefused("HTTP 404 Not Found", 404)
            return [{"status": {"name": name, "waits_for": self.waits_for}} for name in ("other", "x")]
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state is None:
            raise WorkerRefused("No status found for connector x", 404)
        one = {"state": state, "trace": "Boom\nat x"} if state == "FAILED" else {"state": state}
        return {"connector": one, "tasks": [] if state == "STOPPED" else [{"id": 0, **one}]}

    def clock(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def wait(looks: Looks, wanted: State, *, stale: bool = False) -> str:
    """The state that was waited for."""
    status = wait_until(looks, "x", wanted, 60, stale=stale, clock=looks.clock, pause=looks.pause)
    return str(status["connector"]["state"])


def test_a_connector_without_a_status_yet_is_waited_for() -> None:
    """A new one has none for a moment."""
    assert wait(Looks(None, None, "UNASSIGNED", "RUNNING"), State.RUNNING) == "RUNNING"


def test_a_failure_from_before_a_restart_is_no_failure() -> None:
    """For some seconds the old state may be told; one that lasts is a failure."""
    assert wait(Looks("FAILED", "RESTARTING", "RUNNING"), State.RUNNING, stale=True) == "RUNNING"
    with pytest.raises(WorkerRefused, match="it failed: Boom"):
        wait(Looks("FAILED", "RUNNING"), State.RUNNING)
    lasting = Looks("FAILED")
    with pytest.raises(WorkerRefused, match="it failed: Boom"):
        wait(lasting, State.RUNNING, stale=True)
    assert 4 < lasting.now_s < 7


def test_a_state_that_does_not_come_ends_the_wait() -> None:
    """After the time, with what it is instead."""
    looks = Looks("RUNNING")
    with pytest.raises(WorkerRefused, match=saying("not STOPPED", "60 s", "RUNNING")):
        wait(looks, State.STOPPED)
    assert 59 < looks.now_s < 62
    looks = Looks("UNASSIGNED", waits_for="No broker answers.")
    with pytest.raises(WorkerRefused, match=saying("not RUNNING", "60 s", "UNASSIGNED", "No broker answers.")):
        wait(looks, State.RUNNING)
