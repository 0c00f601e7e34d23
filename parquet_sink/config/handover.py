"""Settings as JSON, to hand them to another process by value.

`dump_with_secrets` writes secrets in clear: its text goes into a private file (mode 0600) and nowhere else.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from parquet_sink.config.secret import Secret
from parquet_sink.config.settings import ConnectorSettings

_SECRET = "$secret"


def dump_with_secrets(settings: ConnectorSettings) -> str:
    """JSON from which `load_with_secrets` makes equal settings. It holds secrets in clear."""
    return json.dumps(_encode(settings))


def load_with_secrets(text: str) -> ConnectorSettings:
    """The settings that `dump_with_secrets` wrote. Raises ValueError, KeyError or TypeError on any other text."""
    loaded = _decode(ConnectorSettings, json.loads(text))
    assert isinstance(loaded, ConnectorSettings)
    return loaded


def _encode(value: Any) -> Any:
    if isinstance(value, Secret):
        return {_SECRET: value.reveal()}
    if is_dataclass(value):
        return {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _decode(hint: Any, value: Any) -> Any:
    """The value that the type hint asks for; the hint, never the text, decides what becomes a secret."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if Secret in members:
        return Secret(value[_SECRET])
    made = next((member for member in members if is_dataclass(member)), None)
    if made is None:
        item_hint = get_args(hint)[1]
        return {name: _decode(item_hint, item) for name, item in value.items()}
    return _make(made, value)


def _make(made: Any, value: dict[str, Any]) -> Any:
    hints = get_type_hints(made)
    return made(**{name: _decode(hints[name], item) for name, item in value.items()})
