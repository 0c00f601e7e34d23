"""Values that are never shown, and settings as JSON, with such values in clear, for another process.

The settings are a frozen dataclass of whatever class the connector chose; dataclasses, secrets, tuples, mappings and
JSON's own values within. `dump_with_secrets` writes secrets in clear: its text goes into a private file (mode 0600) and
nowhere else.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any, Final

STARS: Final = "*****"
_SECRET: Final = "$secret"
_TUPLE: Final = "$tuple"
_MAPPING: Final = "$mapping"
_CLASS: Final = "$class"
_FIELDS: Final = "fields"


class Secret:
    """Holds a password, key or salt, and shows stars. Read it with `reveal()`, where it is sent and nowhere else.

    It pickles with its value, because settings cross to worker processes by value; nothing else reveals it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return STARS

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(STARS, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Secret, (self._value,))


def plain(settings: "Mapping[str, str | Secret]", name: str) -> str | None:
    """The value of a setting, revealed where it is a secret; None where it is absent or blank."""
    value = settings.get(name)
    text = value.reveal() if isinstance(value, Secret) else value
    return text or None


def digest(*settings: object) -> str:
    """Stands for settings, those that are secret too, which cannot be read from it."""
    return sha256(repr(_clear(settings)).encode()).hexdigest()


def _clear(value: object) -> object:
    """Settings as nested tuples, with secrets in clear, and without names of fields, which may change."""
    if isinstance(value, Secret):
        return value.reveal()
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(_clear(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, tuple | list):
        return tuple(map(_clear, value))
    if isinstance(value, dict):
        return tuple((key, _clear(value[key])) for key in sorted(value))
    return value


def dump_with_secrets(settings: Any) -> str:
    """JSON from which `load_with_secrets` makes equal settings. It holds secrets in clear.

    Raises TypeError for a value of another kind than those named above.
    """
    return json.dumps(_encode(settings))


def load_with_secrets(text: str) -> Any:
    """The settings that `dump_with_secrets` wrote. Raises ValueError, KeyError or TypeError on any other text."""
    loaded = json.loads(text)
    if not isinstance(loaded, dict) or _CLASS not in loaded:
        raise ValueError("no settings of a connector")
    return _decode(loaded)


def _encode(value: Any) -> Any:
    if isinstance(value, Secret):
        return {_SECRET: value.reveal()}
    if is_dataclass(value) and not isinstance(value, type):
        made = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {_CLASS: f"{type(value).__module__}:{type(value).__qualname__}", _FIELDS: made}
    if isinstance(value, Mapping):
        return {_MAPPING: {name: _encode(item) for name, item in value.items()}}
    if isinstance(value, tuple):
        return {_TUPLE: [_encode(item) for item in value]}
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} cannot be handed over")


def _decode(value: Any) -> Any:
    """Every JSON object carries one mark, and what it holds is marked in turn: no name within is taken for a mark."""
    if not isinstance(value, dict):
        return value
    if _SECRET in value:
        return Secret(value[_SECRET])
    if _TUPLE in value:
        return tuple(_decode(item) for item in value[_TUPLE])
    if _MAPPING in value:
        return {name: _decode(item) for name, item in value[_MAPPING].items()}
    return _class(value[_CLASS])(**{name: _decode(item) for name, item in value[_FIELDS].items()})


def _class(name: str) -> Any:
    """The dataclass of a module and a name within it."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError as error:
        raise ValueError(f"no module {module}") from error
    for step in path.split("."):
        found = getattr(found, step, None)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise TypeError(f"{name} is no dataclass")
    return found
