"""One thread that takes turns, in place of those of the uploader: what runs when is drawn, and so comes again."""

import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from parquet_sink.targets import uploader


class Turns:
    """Work that waits for its turn, which comes when somebody waits for what it changes, or by chance at once."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: deque[Callable[[], object]] = deque()

    def patches(self) -> list[tuple[object, str, object]]:
        """What the uploader is given in place of threads."""
        threading = SimpleNamespace(Condition=lambda: _Condition(self))
        return [(uploader, "threading", threading), (uploader, "ThreadPoolExecutor", lambda *args, **named: self)]

    def submit(self, call: Callable[..., object], *args: Any) -> None:
        self._waiting.append(lambda: call(*args))
        if self._chance.random() < 0.5:
            self.turn()

    def turn(self) -> None:
        """One piece of work is done: any, but those of one topic-partition wait for each other by themselves."""
        self._waiting.rotate(-self._chance.randrange(len(self._waiting)))
        self._waiting.popleft()()

    def shutdown(self) -> None:
        """Nothing is left to end."""

    def forget(self) -> None:
        """The process is gone."""
        self._waiting.clear()


class _Condition:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """There is one thread."""

    def wait_for(self, predicate: Callable[[], bool]) -> None:
        while not predicate():
            self._turns.turn()

    def notify_all(self) -> None:
        """Who waits looks by itself."""


def at_once(call: Callable[[], Any]) -> "Future[Any]":
    """In place of `in_thread`; also who is killed is told to whoever asks for the result."""
    future: Future[Any] = Future()
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - as `in_thread`
        future.set_exception(error)
    return future
