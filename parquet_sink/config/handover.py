"""Settings as JSON, to hand them to another process by value.

The settings are a frozen dataclass of whatever class the connector chose; dataclasses, secrets, tuples, mappings and
JSON's own values within. `dump_with_secrets` writes secrets in clear: its text goes into a private file (mode 0600) and
nowhere else.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Final

from parquet_sink.config.secret import Secret

_SECRET: Final = "$secret"
_TUPLE: Final = "$tuple"
_MAPPING: Final = "$mapping"
_CLASS: Final = "$class"
_FIELDS: Final = "fields"


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
