"""What may take long is done beside the one loop that looks after all connectors."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Aside(Protocol):
    """A way to do something: `at_once`, `process.threads.in_thread`, or in a thread for that alone (`Launcher`)."""

    def __call__(self, act: Callable[[], T], /) -> "Future[T]": ...


def at_once(act: Callable[[], T], /) -> "Future[T]":
    """Here and now, for who has nothing else to look after."""
    future: Future[T] = Future()
    try:
        future.set_result(act())
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)
    return future


@dataclass(frozen=True)
class Pending(Generic[T]):
    """Something that is done aside, and what follows it in the loop."""

    future: "Future[T]"
    then: Callable[[T], Any]

    def follow_up(self) -> None:
        """Raises what was raised aside."""
        self.then(self.future.result())
