"""A target's table as it is at a time, and which of its rows differ between two, by key: on Arrow, part by part."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_SIDES: Final = ("before", "after")
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


class Kind(StrEnum):
    """What became of a row."""

    BACK = "back"  # one of an older record stands in its place
    NEWER = "newer"
    CHANGED = "changed"  # of the same record, or of one of which nothing says when it was
    CAME = "came"
    GONE = "gone"
    COPIED = "copied"  # stands there more often than before


def differences(before: TableState, after: TableState) -> pa.Table:
    """One row for each key that differs: `key_N`, `kind`, and as `before_X` and `after_X` what was watched.

    Without keys one row for each row that differs, and `copies`, how many more of it there are. Both states are of the
    same columns, keys, and number of parts.
    """
    found = [_of_part(*pair, before) for pair in _parts(before, after)]
    return pa.concat_tables(found, promote_options="default")


def _parts(before: TableState, after: TableState) -> Iterator[tuple[pa.Table, pa.Table]]:
    for old, new in zip(before.parts, after.parts, strict=True):
        yield pq.read_table(io.BytesIO(old)), pq.read_table(io.BytesIO(new))


def _of_part(before: pa.Table, after: pa.Table, state: TableState) -> pa.Table:
    if not state.keys:
        return _named(_counted(before, after), state)
    gone = before.filter(pc.invert(pc.is_in(before["digest"], value_set=after["digest"])))
    came = after.filter(pc.invert(pc.is_in(after["digest"], value_set=before["digest"])))
    return _named(_paired(gone, came, [f"key_{number}" for number in range(len(state.keys))]), state)


def _paired(gone: pa.Table, came: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Rows of both sides by their keys, null equal to null; a side is null where it has none."""
    sides = [gone.select(keys), came.select(keys)]
    rows = [pa.array(range(len(one)), pa.int64()) for one in (gone, came)]
    none = [pa.nulls(len(one), pa.int64()) for one in (gone, came)]
    marked = [
        sides[0].append_column("before", rows[0]).append_column("after", none[0]),
        sides[1].append_column("before", none[1]).append_column("after", rows[1]),
    ]
    pairs = pa.concat_tables(marked).group_by(list(keys)).aggregate([("before", "max"), ("after", "max")])
    return _beside(pairs.select(list(keys)), gone.take(pairs["before_max"]), came.take(pairs["after_max"]))


def _counted(before: pa.Table, after: pa.Table) -> pa.Table:
    """Rows without keys, by their digests: those that are there more often, or less often, than before."""
    marked = [_marked(before, 1, 0), _marked(after, 0, 1)]
    shown = [name for name in before.column_names if name != "digest"]
    sums = [(name, "first") for name in shown] + [("before", "sum"), ("after", "sum")]
    grouped = pa.concat_tables(marked).group_by("digest", use_threads=False).aggregate(sums)
    grouped = grouped.filter(pc.not_equal(grouped["before_sum"], grouped["after_sum"]))
    rows = grouped.select([f"{name}_first" for name in shown]).rename_columns(shown)
    there = [pc.greater(grouped[name], 0) for name in ("before_sum", "after_sum")]
    sides = [_where(rows, mask) for mask in there]
    return _beside(rows.select([]), *sides).append_column(
        "copies", pc.subtract(grouped["after_sum"], grouped["before_sum"])
    )


def _marked(rows: pa.Table, before: int, after: int) -> pa.Table:
    ones = [pa.repeat(pa.scalar(sign, pa.int64()), len(rows)) for sign in (before, after)]
    return rows.append_column("before", ones[0]).append_column("after", ones[1])


def _where(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows, null where the mask is false."""
    index = pc.if_else(mask, pa.array(range(len(rows)), pa.int64()), None)
    return rows.take(index)


def _beside(keys: pa.Table, before: pa.Table, after: pa.Table) -> pa.Table:
    columns = {name: keys[name] for name in keys.column_names}
    for side, table in (("before", before), ("after", after)):
        for name in table.column_names:
            if name == "deleted" or name.startswith("also_"):
                columns[f"{side}_{name}"] = table[name]
        columns[f"{side}_there"] = pc.is_valid(table["deleted"])
    return pa.table(columns)


def _named(found: pa.Table, state: TableState) -> pa.Table:
    """Watched columns by their role, and what became of each row."""
    roles = {f"{side}_also_{number}": f"{side}_{role}" for number, role in enumerate(state.watched) for side in _SIDES}
    found = found.rename_columns([roles.get(name, name) for name in found.column_names])
    return found.append_column("kind", _kinds(found))


def _kinds(found: pa.Table) -> Any:
    """What became of each row."""
    there = [found[f"{side}_there"] for side in _SIDES]
    moved = age(found)
    kind = pc.if_else(pc.equal(moved, -1), Kind.BACK.value, Kind.CHANGED.value)
    kind = pc.if_else(pc.equal(moved, 1), Kind.NEWER.value, kind)
    if "copies" in found.column_names:
        kind = pa.chunked_array([pa.array([Kind.COPIED.value] * len(found), pa.string())])
        kind = pc.if_else(pc.less(found["copies"], 0), Kind.GONE.value, kind)
    kind = pc.if_else(there[0], kind, Kind.CAME.value)
    return pc.if_else(there[1], kind, Kind.GONE.value)


def difference_rows(found: pa.Table, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Each difference for programs: its key by the columns' names, what became of it, and both sides of it."""
    for batch in found.to_batches(10_000):
        for row in batch.to_pylist():
            sides = {side: _side(row, side) for side in _SIDES}
            key = {name: row[f"key_{number}"] for number, name in enumerate(keys)}
            copies = {"copies": row["copies"]} if "copies" in row else {}
            yield {"key": key, "became": row["kind"], **copies, **sides}


def _side(row: dict[str, Any], side: str) -> dict[str, Any] | None:
    if not row[f"{side}_there"]:
        return None
    start = f"{side}_"
    return {
        name.removeprefix(start): cell
        for name, cell in row.items()
        if name.startswith(start) and name != f"{start}there"
    }


def age(found: pa.Table) -> Any:
    """For each row that is there twice -1 when the later state has an older record, 1 a newer, 0 when nothing tells.

    Offsets tell within a topic-partition, else Kafka's timestamps, else the table's order column.
    """
    moved = _sign(found, "order") if "before_order" in found.column_names else _nothing(found)
    if "before_timestamp" in found.column_names:
        moved = _first_that_tells(_sign(found, "timestamp"), moved)
    if {"before_partition", "before_offset"} <= set(found.column_names):
        same = pc.fill_null(pc.equal(found["before_partition"], found["after_partition"]), fill_value=False)
        moved = pc.if_else(same, _sign(found, "offset"), moved)
    return moved


def order_moved(found: pa.Table) -> Any:
    """For each row -1, 0, 1: whether the order column's value fell, stayed or rose; null is the smallest."""
    return _sign(found, "order")


def _nothing(found: pa.Table) -> Any:
    return pa.chunked_array([pa.array([0] * len(found), pa.int8())])


def _first_that_tells(one: Any, other: Any) -> Any:
    return pc.if_else(pc.equal(one, 0), other, one)


def _sign(found: pa.Table, role: str) -> Any:
    """-1, 0, 1 as the value fell, stayed, or rose; a null is smaller than all others."""
    before, after = (found[f"{side}_{role}"] for side in _SIDES)
    fell = pc.fill_null(pc.less(after, before), pc.and_(pc.is_null(after), pc.is_valid(before)))
    rose = pc.fill_null(pc.greater(after, before), pc.and_(pc.is_valid(after), pc.is_null(before)))
    return pc.if_else(
        fell, pa.scalar(-1, pa.int8()), pc.if_else(rose, pa.scalar(1, pa.int8()), pa.scalar(0, pa.int8()))
    )
