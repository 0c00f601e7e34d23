"""What a config provider is (it answers the placeholders `${name:path:key}` of its name), and what a file is then."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class NotGiven:
    """Why a placeholder has no value: the words behind it in a message, which never hold a value.

    passes: it may have one later, without anybody's hand: what is asked is away.
    """

    text: str
    passes: bool = False


Answer = str | NotGiven


class Provider(Protocol):
    """Of one name in `config.providers`, or one that is there without being named."""

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        """An answer for each key. path: empty when the placeholder has none."""
        ...


@dataclass(frozen=True)
class Resolved:
    """Texts after the providers were asked.

    values: by key. shown: the same as written in the file. provided: keys whose value a provider gave. failed: keys
    that have no value because a provider failed (reported already, each once). away: those of them that may have one
    later, without anybody's hand.
    """

    values: Mapping[str, str] = field(repr=False)
    shown: Mapping[str, str] = field(repr=False)
    provided: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()


NOTHING = Resolved({}, {})


class ProviderError(Exception):
    """Raised by a class of a user's own when it cannot answer: one sentence with the cure, shown as it stands.

    It never holds a value. All else that such a class raises is reported without its words.
    """
