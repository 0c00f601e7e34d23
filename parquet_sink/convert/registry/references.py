"""Everything that a schema refers to, directly or through others, in the order in which it can be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.convert.registry.registered import Referenced

MOST_REFERENCES: Final = 1_000
DEEPEST: Final = 100
MOST_CHARACTERS: Final = 32 * 1024 * 1024


@dataclass(frozen=True)
class Reference:
    """How a schema names another one. version: -1 for the latest."""

    name: str
    subject: str
    version: int

    def __str__(self) -> str:
        return f"subject {show((self.subject,))} version {self.version}"


@dataclass(frozen=True)
class StoredSchema:
    """A schema as the registry gives it."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


def resolve(references: Sequence[Reference], ask: Callable[[Reference], StoredSchema]) -> tuple[Referenced, ...]:
    """All schemas below, each after those that it refers to itself; of equal names the first, as Confluent's.

    Raises InvalidValue when they go round in a circle, or are too many, too deep or too large.
    """
    walk = _Walk(ask)
    walk.enter(references, ())
    return tuple(walk.found)


class _Walk:
    def __init__(self, ask: Callable[[Reference], StoredSchema]) -> None:
        self._ask = ask
        self._names: set[str] = set()
        self._characters = 0
        self.found: list[Referenced] = []

    def enter(self, references: Sequence[Reference], above: tuple[Reference, ...]) -> None:
        for reference in references:
            if reference in above:
                raise InvalidValue(f"its references go round in a circle, by {reference}")
            if reference.name not in self._names:
                self._take(reference, above)

    def _take(self, reference: Reference, above: tuple[Reference, ...]) -> None:
        self._names.add(reference.name)
        if len(self._names) > MOST_REFERENCES or len(above) >= DEEPEST:
            raise InvalidValue(f"it has more than {MOST_REFERENCES} references, or they are deeper than {DEEPEST}")
        answer = self._ask(reference)
        self._characters += len(answer.text)
        if self._characters > MOST_CHARACTERS:
            raise InvalidValue(f"its references have more than {MOST_CHARACTERS // 1024**2} Mi characters")
        self.enter(answer.references, (*above, reference))
        self.found.append(Referenced(reference.name, answer.text))
