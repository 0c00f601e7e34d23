"""Events cross processes as JSON."""

from dataclasses import Field, fields
from typing import Any, get_args, get_origin

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.model.events import TYPES, Event, PartitionEvent, event_from_json
from parquet_sink.model.ranges import AttemptCount, LossCause, Trying
from parquet_sink.model.receipts import Archiving, Receipt

RECEIPT = Receipt(
    "orders",
    "orders",
    3,
    "f.parquet",
    7,
    9,
    10,
    3,
    3,
    1_234,
    "records",
    seconds={"write": 0.5},
    accepted_at=1.5,
    answers=(AttemptCount("accepted", 200, 1),),
)
VALUES: dict[str, Any] = {
    "str": 'words, "quotes" and a\nline',
    "str | None": "no answer",
    "int": 7,
    "float": 1.25,
    "bool": True,
    "Mapping": {"VALUE_CONVERTER": 2},
    "tuple[AttemptCount, ...]": (AttemptCount("unknown", 503, 2), AttemptCount("retriable", None, 1)),
    "tuple[str, ...]": ("orders", "items"),
    "Trying": Trying.TRANSFORM,
    "LossCause": LossCause.RETENTION,
    "Receipt": RECEIPT,
    "Archiving": Archiving("directory:/archive", 7, "full"),
    "Failure": failure_named("RegistryAway", "no answer"),
}


def of(kind: type[Event]) -> Event:
    """An event of this class, each field filled by its type."""
    return kind(*(VALUES[_type_of(field)] for field in fields(kind)))


def _type_of(field: Field[Any]) -> str:
    """By name; of a tuple with what is in it."""
    if get_origin(field.type) is tuple:
        inner: Any = get_args(field.type)[0]
        return f"tuple[{inner.__name__}, ...]"
    return str(getattr(field.type, "__name__", field.type))


@pytest.mark.parametrize("kind", [pytest.param(kind, id=name) for name, kind in TYPES.items()])
def test_every_event_comes_back_from_json(kind: type[Event]) -> None:
    """Another process reads the same class with the same values."""
    assert event_from_json(of(kind).to_json()) == of(kind)


def test_every_event_class_is_listed() -> None:
    """A class that is not in the list would be written and could not be read."""

    def leaves(base: type[Event]) -> set[type[Event]]:
        below = [one for one in base.__subclasses__() if one.__module__ == base.__module__]
        return set().union(*map(leaves, below)) if below else {base}

    assert set(TYPES.values()) == leaves(Event)
    assert PartitionEvent not in TYPES.values()
