"""Clients that change connectors by REST at random workers while those are lost, and note what they were told.

Two kinds of connectors: some of the load, which are paused, resumed, restarted and changed, and some that nothing is
sent to (`EMPTY` is their topic), which are made and deleted, too.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

import requests
from urllib3.exceptions import NewConnectionError

from integration.cluster_faults.rest_history import NEVER, Act, Asked, Told, troubles
from integration.cluster_faults.workers import ASK_S, Workers
from parquet_sink.distributed.state import ConfigState
from parquet_sink.worker.herder.values import TargetState

KEY: Final = "connect.ems.commit.records"
"""A value that is written is another each time: it tells configurations apart."""
EMPTY: Final = "nothing"
_FIRST_VALUE: Final = 1_000
_BACK_S: Final = 120.0
_OF_LOAD: Final = (Act.READ, Act.READ, Act.PUT, Act.PATCH, Act.TARGET, Act.RESTART)
_OF_OTHERS: Final = (Act.READ, Act.READ, Act.READ, Act.CREATE, Act.PUT, Act.PATCH, Act.TARGET, Act.DELETE)
_ACTIONS: Final = {TargetState.STARTED: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


class Clients:
    """Some, each in a thread of its own. loaded, others: configurations by name; those of the load are there.

    many: how many. pause_s: the most between two requests of one. history: what was asked and told. answers: how often
    each status came to a write; 0 stands for none.
    """

    def __init__(
        self,
        workers: Workers,
        loaded: Mapping[str, Mapping[str, str]],
        others: Mapping[str, Mapping[str, str]],
        seed: int,
        many: int,
        pause_s: float,
    ) -> None:
        self._pause_s = pause_s
        self._workers, self._loaded, self._configs = workers, loaded, {**loaded, **others}
        self._values = count(_FIRST_VALUE)
        self.history = [_made(name, config[KEY]) for name, config in loaded.items()]
        self.answers: Counter[int] = Counter()
        self._ends = threading.Event()
        chances = [random.Random(f"{seed}-{number}") for number in range(many)]
        self._threads = [threading.Thread(target=self._run, args=(one,), name="client", daemon=True) for one in chances]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """What is stored in the end is noted; then those of the load run again. Raises TimeoutError."""
        self._ends.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self.history += _looked(self._configs, self._workers.config_state())
        for name in self._loaded:
            self._workers.insist("PUT", f"/connectors/{name}/resume", {}, _BACK_S)

    def troubles(self) -> list[str]:
        """What no order of the requests explains."""
        return list(troubles(self.history))

    def _run(self, chance: random.Random) -> None:
        names = sorted(self._configs)
        while names and not self._ends.wait(chance.uniform(0.0, self._pause_s)):
            name = chance.choice(names)
            act = chance.choice(_OF_LOAD if name in self._loaded else _OF_OTHERS)
            states = list(_ACTIONS) if name not in self._loaded else [TargetState.STARTED, TargetState.PAUSED]
            target = chance.choice(states) if act is Act.TARGET else TargetState.STARTED
            self._ask(name, act, target, chance.randrange(len(self._workers.links)))

    def _ask(self, name: str, act: Act, target: TargetState, number: int) -> None:
        value = str(next(self._values)) if act in {Act.CREATE, Act.PUT, Act.PATCH} else ""
        method, path, body = _request(name, act, target, {**self._configs[name], KEY: value})
        begun_s = time.monotonic()
        answer = _answer(method, self._workers[number].url + path, body)
        status, ended_s = 0 if answer is None else answer.status_code, time.monotonic()
        if act is not Act.READ:
            self.answers[status] += 1
        told = Told.UNKNOWN if answer is None else told_by(act, answer)
        if told is None:
            return
        if answer is not None and act is Act.READ and told is Told.DONE:
            value = answer.json()[KEY]
        until_s = NEVER if told is Told.UNKNOWN else ended_s
        self.history.append(Asked(name, f"w{number}", act, told, begun_s, until_s, value, target))


def _made(name: str, value: str) -> Asked:
    now_s = time.monotonic()
    return Asked(name, "", Act.CREATE, Told.DONE, now_s, now_s, value)


def _looked(names: Iterable[str], state: ConfigState) -> list[Asked]:
    """What the config topic has of each in the end."""
    now_s, found = time.monotonic(), []
    for name in names:
        config = state.connectors.get(name)
        value, told = ("", Told.ABSENT) if config is None else (config[KEY], Told.DONE)
        target = state.targets.get(name, TargetState.STARTED)
        found.append(Asked(name, "", Act.LOOK, told, now_s, now_s, value, target))
    return found


def _request(name: str, act: Act, target: TargetState, config: Mapping[str, str]) -> tuple[str, str, Any]:
    """Method, path and body."""
    path = f"/connectors/{name}"
    asked: dict[Act, tuple[str, str, Any]] = {
        Act.CREATE: ("POST", "/connectors", {"name": name, "config": config}),
        Act.PUT: ("PUT", f"{path}/config", config),
        Act.PATCH: ("PATCH", f"{path}/config", {KEY: config[KEY]}),
        Act.DELETE: ("DELETE", path, None),
        Act.TARGET: ("PUT", f"{path}/{_ACTIONS[target]}", None),
        Act.RESTART: ("POST", f"{path}/restart?includeTasks=true", None),
        Act.READ: ("GET", f"{path}/config", None),
    }
    return asked[act]


def _answer(method: str, url: str, body: Any) -> requests.Response | None:
    """None where nobody knows what became of it; where nobody was reached it says so."""
    try:
        return requests.request(method, url, json=body, timeout=ASK_S)
    except requests.ConnectionError as error:
        reason = getattr(error.args[0], "reason", None) if error.args else None
        if not isinstance(reason, NewConnectionError):
            return None
        refused = requests.Response()
        refused.status_code = 503
        return refused
    except requests.RequestException:
        return None


def told_by(act: Act, answer: requests.Response) -> Told | None:
    """What an answer says of the connector; None: nothing was done, and nothing is said."""
    match answer.status_code:
        case 201 if act is Act.PUT:
            return Told.MADE
        case status if 200 <= status < 300:
            return Told.DONE
        case 404:
            return Told.ABSENT
        case 409 if act is Act.CREATE and "Retry-After" not in answer.headers:
            return Told.THERE
        case 409 | 503:
            return None
        case _:
            return Told.UNKNOWN
