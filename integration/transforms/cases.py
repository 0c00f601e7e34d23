"""A case of the comparison: a chain of transforms, and records that go through it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Step:
    """A transform by Connect's class name and keys, and the predicate, likewise, that it is under."""

    type: str
    keys: Mapping[str, str]
    predicate: tuple[str, Mapping[str, str]] | None = None
    negate: bool = False

    @property
    def name(self) -> str:
        """Without the package: `Cast$Value`."""
        return self.type.rpartition(".")[2]

    def __str__(self) -> str:
        under = ""
        if self.predicate is not None:
            under = f" {'unless' if self.negate else 'if'} {self.predicate[0].rpartition('.')[2]} {self.predicate[1]}"
        return f"{self.name} {dict(self.keys)}{under}"


@dataclass(frozen=True)
class Record:
    """Bytes as Kafka has them. timestamp: epoch milliseconds, None for none."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = 1_700_000_000_123


@dataclass(frozen=True)
class Case:
    """key_schemas, value_schemas: whether they are JSON in an envelope with its schema."""

    steps: tuple[Step, ...]
    records: tuple[Record, ...]
    key_schemas: bool = False
    value_schemas: bool = False
    topic: str = "orders"

    def to_json(self) -> dict[str, Any]:
        """As the Java driver takes it."""
        return {
            "steps": [
                {
                    "type": step.type,
                    "keys": dict(step.keys),
                    "predicate": step.predicate and {"type": step.predicate[0], "keys": dict(step.predicate[1])},
                    "negate": step.negate,
                }
                for step in self.steps
            ],
            "key_schemas": self.key_schemas,
            "value_schemas": self.value_schemas,
            "topic": self.topic,
            "records": [
                {
                    "key": _base64(record.key),
                    "value": _base64(record.value),
                    "headers": [[name, _base64(value)] for name, value in record.headers],
                    "timestamp": record.timestamp,
                }
                for record in self.records
            ],
        }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
