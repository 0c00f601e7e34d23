"""What a target's table is at one moment: counts of what it was sent, and a digest of every row by its key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

ROLES: Final[Mapping[str, str]] = {
    "partition": "kafkaPartition",
    "offset": "kafkaOffset",
    "timestamp": "kafkaTimestamp",
}
"""Columns that tell when a row's record was written, where a table has them; `order` is the table's order column."""


class NotUnderstood(ValueError):
    """An answer that has not the form of a read-out."""


@dataclass(frozen=True)
class Received:
    """What the target accepted for a table since it was made, upload by upload, repetitions included.

    recognised_files, recognised_rows: those that it knew by their names and did not put into the table again.
    failed_files: accepted, but not in the table.
    """

    files: int = 0
    rows: int = 0
    recognised_files: int = 0
    recognised_rows: int = 0
    failed_files: int = 0

    def since(self, before: "Received") -> "Received":
        """What was added."""
        return Received(*(getattr(self, name) - getattr(before, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class TableState:
    """A table as it was. columns: name and type, None when there was no such table.

    rows, deleted: those that a reader of the table sees, and those that mark a deleted key. keys: primary keys.
    watched: columns that stand beside each digest, by role (`order`, and ROLES). digest: of all rows; method: what made
    it. parts: Parquet with `key_N`, `also_N`, `deleted`, `digest`, for each row; the same row is in the same of them.
    """

    table: str
    columns: Mapping[str, str] | None = None
    rows: int = 0
    deleted: int = 0
    keys: tuple[str, ...] = ()
    order: str | None = None
    watched: Mapping[str, str] = field(default_factory=dict)
    received: Received = Received()
    digest: str = ""
    method: str = ""
    parts: tuple[bytes, ...] = ()

    @property
    def all_rows(self) -> int:
        return self.rows + self.deleted


def state_of(described: Mapping[str, Any]) -> TableState:
    """A table by the answer to `GET /tables/NAME`, without digests. Raises NotUnderstood."""
    try:
        columns = {str(one["name"]): str(one["type"]) for one in described["columns"]}
        counts = described["received"]
        received = Received(**{name: int(counts[name]) for name in Received.__dataclass_fields__})
        order = described["order_column"]
        keys = tuple(map(str, described["primary_keys"]))
        return TableState(
            table=str(described["name"]),
            columns=columns,
            rows=int(described["rows"]),
            deleted=int(described["deleted"]),
            keys=_own(keys, columns),
            order=None if order is None else str(order),
            watched=_watched(columns, order),
            received=received,
        )
    except (KeyError, TypeError, ValueError) as reason:
        raise NotUnderstood(f"it does not describe the table: {type(reason).__name__} {reason}") from None


def _watched(columns: Mapping[str, str], order: object) -> dict[str, str]:
    wanted = {"order": str(order), **ROLES} if order is not None else ROLES
    return {role: own[0] for role, name in wanted.items() if (own := _own((name,), columns))}


def _own(names: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are columns, as the table writes them."""
    known = {column.lower(): column for column in columns}
    return tuple(known[name.lower()] for name in names if name.lower() in known)
