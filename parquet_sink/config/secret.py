"""A value that is never shown: its repr, str, format and JSON are stars."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, Final

STARS: Final = "*****"


class Secret:
    """Holds a password, key or salt. Read it with `reveal()`, where it is sent and nowhere else.

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
