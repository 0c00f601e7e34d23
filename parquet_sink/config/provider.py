"""What a config provider is: who answers the placeholders of one name, `${name:path:key}`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
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


class ProviderError(Exception):
    """Raised by a class of a user's own when it cannot answer: one sentence with the cure, told as it stands.

    It never holds a value. All else that such a class raises is told without its words.
    """
