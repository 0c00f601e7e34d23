"""What one line of a table of keys says: `Key`, and the parts it is made of."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from parquet_sink.config.quantity import Unit
from parquet_sink.config.secret import Secret

Value = str | int | bool | float | tuple[str, ...] | Secret | None
PREFIX = "connect.ems."


class Type(Enum):
    """How a value's text is read; the value of the member is its name in the documentation."""

    STRING = "text"
    BOOLEAN = "true or false"
    INT = "32-bit whole number"
    LONG = "64-bit whole number"
    DOUBLE = "number"
    LIST = "comma-separated list"
    PASSWORD = "secret"


class Origin(Enum):
    """Who defined the key."""

    CONNECT = "Kafka Connect"
    EMS = "EMS connector"
    OWN = "new here"
    PLUGIN = "the connector class"


@dataclass(frozen=True)
class Check:
    """A limit beyond type, range and choice. `test` returns why a value is wrong and the cure, or None."""

    rule: str
    test: Callable[[Value], str | None]


@dataclass(frozen=True)
class NotBuilt:
    """Values of a key whose feature is not built yet: refused by name, never ignored.

    values: which, for the documentation. when: tells such a value. cure: what to do instead.
    """

    values: str
    when: Callable[[Value], bool]
    cure: str


@dataclass(frozen=True)
class Key:
    """One key. A name ending in `.*` stands for every key with that prefix, which is not parsed here.

    group: the title of its section in the documentation.
    missing: the cure when a required key is absent. default_text: a default that is computed, in words.
    other_choice: a value outside `choices` is warned about and read as this one, as the reference connector does.
    no_effect, deprecated: why setting the key changes nothing; it is accepted with a warning.
    needs: this key means nothing unless that one is set, which is warned about.
    unit: of a whole number that is a size or a duration, so that it may be written as `10MB` or `30s`.
    may_be_empty: an empty text is a value, as for Kafka Connect; blanks around a text never count, there neither.
    """

    name: str
    group: str
    type: Type
    doc: str
    default: Value = None
    default_text: str = ""
    required: bool = False
    missing: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    other_choice: str = ""
    check: Check | None = None
    not_built: NotBuilt | None = None
    no_effect: str = ""
    deprecated: str = ""
    needs: str = ""
    may_be_empty: bool = False
    unit: Unit | None = None
    origin: Origin = Origin.EMS
    since: str = "0.2.0"

    @property
    def secret(self) -> bool:
        return self.type is Type.PASSWORD

    @property
    def is_prefix(self) -> bool:
        return self.name.endswith(".*")

    def matches(self, name: str) -> bool:
        return name.startswith(self.name[:-1]) if self.is_prefix else name == self.name


def ems(name: str) -> str:
    """The full name of a key of the EMS connector."""
    return PREFIX + name


def is_set(value: Value) -> bool:
    """For `NotBuilt.when`: any value that is not absent, false or empty."""
    return bool(value)


def find(table: Collection[Key], name: str) -> Key | None:
    """The key of that name: an exact one before the longest prefix; None when unknown."""
    for key in table:  # most names are exact, and tables are long
        if key.name == name:
            return key
    return max((key for key in table if key.matches(name)), key=lambda key: len(key.name), default=None)
