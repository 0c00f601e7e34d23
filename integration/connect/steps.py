"""What the script of requests is made of, and the two sides that it is played to."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

JSON: Final = "application/json"
TOPIC: Final = "judged"


@dataclass(frozen=True)
class Ask:
    """One request. title: its name in the recording. client: whose call it is, when it is one of a known client's.

    times: how often it is sent, all at the same time.
    """

    title: str
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    times: int = 1


@dataclass(frozen=True)
class UntilState:
    """Waits until a connector and its tasks are in a state; state None: until there is none of that name.

    tasks: how many there have to be; None when that does not matter.
    """

    connector: str
    state: str | None
    tasks: int | None = 1


@dataclass(frozen=True)
class UntilFailed:
    """Waits until a task failed."""

    connector: str


@dataclass(frozen=True)
class UntilCommitted:
    """Waits until the offsets of a connector's group are so, by topic-partition."""

    connector: str
    offsets: Mapping[int, int]


@dataclass(frozen=True)
class UntilTopics:
    """Waits until these are the topics that a connector took records of."""

    connector: str
    topics: frozenset[str]


@dataclass(frozen=True)
class Produce:
    """Sends values to a topic-partition."""

    topic: str
    values: tuple[bytes, ...]
    partition: int = 0


Wait = UntilState | UntilFailed | UntilCommitted | UntilTopics
Step = Ask | Wait | Produce


@dataclass(frozen=True)
class Side:
    """A worker that is asked. connector_class: of its sink. logger: one of its own, with none below.

    own: keys of that class which its configurations need; own_prefix: how keys of the class begin. texts: what differs
    by side, and what stands for it in a recording. others: URLs of further workers of its group. odd: an odd name.
    """

    name: str
    url: str
    connector_class: str
    logger: str
    own: Mapping[str, str]
    own_prefix: str
    texts: Mapping[str, str]
    others: tuple[str, ...] = ()
    odd: str = "odd name & ü"

    @property
    def plugin(self) -> str:
        """The simple name of the class."""
        return self.connector_class.rpartition(".")[2]

    def config(self, topics: str | None = "judged", **more: str | int | bool | None) -> dict[str, Any]:
        """A configuration of its sink. more: further keys, underscores for full stops; None leaves a key out."""
        keys: dict[str, Any] = {"connector.class": self.connector_class, "tasks.max": "1", **self.own}
        if topics is not None:
            keys["topics"] = topics
        keys |= {name.replace("_", "."): value for name, value in more.items()}
        return {name: value for name, value in keys.items() if value is not None}


class Script:
    """Steps in their order; each request has a title of its own."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._titles: set[str] = set()

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def add(self, *steps: Step) -> None:
        """Waits, and what is produced."""
        self.steps += steps

    def ask(
        self, title: str, request: str, body: object = None, *, client: str = "", times: int = 1, **headers: str
    ) -> None:
        """request: method and path. body: bytes as they are, all else as JSON. headers: underscores for hyphens."""
        assert title not in self._titles, title
        self._titles.add(title)
        method, path = request.split(" ", 1)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and "content-type" not in named:
            named["content-type"] = JSON
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.steps.append(Ask(title, method, path, data, {"accept": JSON, **named}, client, times))
