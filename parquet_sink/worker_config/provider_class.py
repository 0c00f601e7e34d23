"""Classes of config providers, Kafka's own and a user's: by an entry point, or as `package.module.Class`."""

import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from parquet_sink import plugins
from parquet_sink.config.class_settings import WrongSettings as WrongSettings  # noqa: PLC0414 - one door for authors
from parquet_sink.config.key import Key
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Answer, NotGiven, Provider
from parquet_sink.config.provider import ProviderError as ProviderError  # noqa: PLC0414 - as above
from parquet_sink.config.report import printable
from parquet_sink.config.values import Values
from parquet_sink.errors import code_place
from parquet_sink.plugins import CONFIG_PROVIDERS, Kind

PATIENCE_S: Final = 30.0
"""How long a provider may think."""


class OwnProvider(Protocol):
    """What such a class makes; it is kept as long as the program runs."""

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The values of these keys at a path; those that are not there are left out.

        path: what stands between the colons of `${name:path:key}`, empty in `${name:key}`. It is called when a file is
        checked, and each time a connector starts, by one thread at a time. Raises ProviderError.
        """
        ...


@runtime_checkable
class ProviderClass(Protocol):
    """What `config.providers.NAME.class` names: a class, or whatever else is called like one.

    keys: what may stand behind `config.providers.NAME.param.`, named without that.
    """

    keys: Sequence[Key]

    def __call__(self, values: Values) -> OwnProvider:
        """A provider. values: by the names of `keys`, defaults included. Raises WrongSettings."""
        ...


@runtime_checkable
class OfMachine(Protocol):
    """What Kafka's own classes have beside that: they look at this machine, answer at once and say why they cannot."""

    def on_machine(self, machine: Machine, name: str, values: Values) -> Provider: ...


PROVIDER_CLASSES: Final[Kind[ProviderClass]] = Kind(
    CONFIG_PROVIDERS,
    "config provider",
    ("ConfigProvider",),
    ProviderClass,  # type: ignore[type-abstract]
    called=True,
    by_path=True,
)


def find_class(name: str) -> ProviderClass:
    """The class of a name. Raises plugins.PluginUnusable."""
    return plugins.find(PROVIDER_CLASSES, name)


class GuardedProvider:
    """A user's provider under its name: it may fail or hang, and then a placeholder has no value, and nothing else."""

    def __init__(self, name: str, inner: OwnProvider, patience_s: float = PATIENCE_S) -> None:
        self._name, self._inner, self._patience_s = name, inner, patience_s
        self._asking = threading.Lock()
        self._hangs = False

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        """Within PATIENCE_S."""
        found = self._answer(path, tuple(keys))
        if isinstance(found, NotGiven):
            return dict.fromkeys(keys, found)
        return {key: self._value(found, path, key) for key in keys}

    def _value(self, found: Mapping[str, object], path: str, key: str) -> Answer:
        value = found.get(key)
        if isinstance(value, str):
            return value
        if value is not None:
            return NotGiven(f": the config provider {self._name} returned no text, but {_a(value)}; correct its class.")
        where = f" at {printable(path)}" if path else ""
        return NotGiven(
            f": the config provider {self._name} has no {printable(key)}{where}; correct the path or the key."
        )

    def _answer(self, path: str, keys: tuple[str, ...]) -> Mapping[str, object] | NotGiven:
        """In a thread of its own, which is left alone when it hangs; until it comes back nobody waits for it again."""
        if not self._asking.acquire(timeout=0.0 if self._hangs else self._patience_s):
            return NotGiven(
                f": the config provider {self._name} has not answered an earlier request; correct its class.", True
            )
        answers: list[Mapping[str, object] | NotGiven] = []

        def call() -> None:
            try:
                answers.append(self._called(path, keys))
            finally:
                self._hangs = False
                self._asking.release()

        thread = threading.Thread(target=call, name=f"config provider {self._name}", daemon=True)
        thread.start()
        thread.join(self._patience_s)
        if answers:
            return answers[0]
        self._hangs = thread.is_alive()
        return NotGiven(
            f": the config provider {self._name} did not answer within {self._patience_s:g} s; see whether what it "
            "asks can be reached, then start the connector again.",
            passes=True,
        )

    def _called(self, path: str, keys: tuple[str, ...]) -> Mapping[str, object] | NotGiven:
        try:
            found = self._inner.get(path, keys)
        except ProviderError as error:
            return NotGiven(f": {printable(str(error))}", passes=True)
        except Exception as error:  # noqa: BLE001 - whatever another's code raises; its words may hold the secret
            return NotGiven(
                f": the config provider {self._name} failed with {code_place(error)}; correct its class.",
                passes=True,
            )
        if not isinstance(found, Mapping):
            return NotGiven(
                f": the config provider {self._name} returned no mapping, but {_a(found)}; correct its class."
            )
        return found


class BrokenProvider:
    """One that the worker file declares and that cannot be made: what is wrong is reported there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        return dict.fromkeys(
            keys, NotGiven(f": the config provider {self._name} cannot be used, as the worker file says; correct it.")
        )


def _a(value: object) -> str:
    return f"a value of type {type(value).__name__}"
