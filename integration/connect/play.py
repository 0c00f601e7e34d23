"""Plays the script to one side: sends each request as it stands, and notes what came back."""

import http.client
import json
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from integration.connect.steps import (
    Ask,
    Produce,
    Side,
    Step,
    UntilCommitted,
    UntilFailed,
    UntilState,
    UntilTopics,
    Wait,
)
from integration.harness import committed
from parquet_sink.addons.devkit.broker import Broker

WAIT_S: Final = 60.0
LOOK_S: Final = 0.1
ANSWER_S: Final = 100.0
_AGAIN: Final = (
    "Request cannot be completed because a rebalance is expected",
    "Cannot complete request momentarily due to stale configuration",
)


@dataclass(frozen=True)
class Answer:
    """What came back. headers: names in lower case. body: the JSON, or a text, or None for nothing.

    client: as of the request.
    """

    title: str
    request: str
    status: int
    headers: Mapping[str, str]
    body: Any
    client: str = ""


def until_ready(url: str, alive: Callable[[], bool], said: Callable[[], str], seconds: float) -> None:
    """Waits until a worker is healthy. Fails with the end of what it said when it is not in time, or ended."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=15) as answer:
            if answer.status == 200:
                return
        assert alive(), said()[-3_000:]
        assert time.monotonic() < deadline, said()[-3_000:]
        time.sleep(0.1)


def fail(what: str) -> None:
    """A wait in vain ends the play."""
    raise AssertionError(what)


def play(
    steps: Iterable[Step],
    side: Side,
    broker: Broker,
    note: Callable[[str], None] = lambda text: None,
    late: Callable[[str], None] = fail,
    pick: Callable[[Ask], str] | None = None,
) -> list[Answer]:
    """The answer to each request, in order. note: told of each answer; late: of what is waited for in vain.

    pick: the URL of the worker that a request goes to; it is asked for each request anew.
    """
    answers = []
    for step in steps:
        if isinstance(step, Ask):
            for answer in _asked(pick or (lambda ask: side.url), step):
                answers.append(answer)
                note(f"{answer.title}: {answer.status}")
        elif isinstance(step, Produce):
            broker.produce(step.topic, ((None, value) for value in step.values), step.partition)
        elif (missed := _wait(side, broker, step)) is not None:
            late(missed)
    return answers


def _asked(pick: Callable[[Ask], str], ask: Ask) -> list[Answer]:
    """The answers to requests at the same time come by their statuses."""
    if ask.times == 1:
        return [send(pick(ask), ask)]
    with ThreadPoolExecutor(ask.times) as pool:
        urls = [pick(ask) for _ in range(ask.times)]
        found = sorted(pool.map(lambda url: send(url, ask), urls), key=lambda one: one.status)
    return [replace(one, title=title) for title, one in zip(titles(ask), found, strict=True)]


def titles(ask: Ask) -> list[str]:
    """Of its answers."""
    return [ask.title] if ask.times == 1 else [f"{ask.title}, {number + 1}" for number in range(ask.times)]


def send(url: str, ask: Ask) -> Answer:
    """One exchange over a connection of its own, tried again while Kafka Connect says to, as its clients do."""
    deadline = time.monotonic() + WAIT_S
    while (answer := _exchange(url, ask)).status >= 400 and any(words in str(answer.body) for words in _AGAIN):
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer


def _exchange(url: str, ask: Ask) -> Answer:
    """The path is sent as it is written."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=ANSWER_S)
    try:
        headers = dict(ask.headers)
        if ask.body is not None or ask.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(ask.body or b""))
        connection.putrequest(ask.method, ask.path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(ask.body)
        response = connection.getresponse()
        data = response.read()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(ask.title, f"{ask.method} {ask.path}", response.status, named, _content(data), ask.client)
    finally:
        connection.close()


def _content(data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _wait(side: Side, broker: Broker, wait: Wait) -> str | None:
    """What is there instead, when it does not come in time, at each of the workers."""
    deadline = time.monotonic() + WAIT_S
    for url in (side.url, *side.others):
        while not _came(url, broker, wait):
            if time.monotonic() > deadline:
                return f"{side.name} at {url}: {wait} did not come within {WAIT_S} s: {_status(url, wait)}"
            time.sleep(LOOK_S)
    return None


def _came(url: str, broker: Broker, wait: Wait) -> bool:
    if isinstance(wait, UntilCommitted):
        found = committed(broker, f"connect-{wait.connector}", "judged", max(wait.offsets) + 1)
        return all(found[partition][0] == offset for partition, offset in wait.offsets.items())
    if isinstance(wait, UntilTopics):
        topics = _get(url, f"/connectors/{wait.connector}/topics").body[wait.connector]["topics"]
        return set(topics) == set(wait.topics)
    answer = _status(url, wait)
    if isinstance(wait, UntilState) and wait.state is None:
        return answer.status == 404
    if answer.status != 200:
        return False
    tasks = answer.body["tasks"]
    if isinstance(wait, UntilFailed):
        return any(task["state"] == "FAILED" for task in tasks)
    right = [task for task in tasks if task["state"] == wait.state]
    wanted = len(tasks) if wait.tasks is None else wait.tasks
    return answer.body["connector"]["state"] == wait.state and len(right) == len(tasks) == wanted


def _status(url: str, wait: Wait) -> Answer:
    return _get(url, f"/connectors/{wait.connector}/status")


def _get(url: str, path: str) -> Answer:
    return send(url, Ask("", "GET", path, headers={"accept": "application/json"}))
