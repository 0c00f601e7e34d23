"""What a comparison of a table found, and why: the judgement over differences by key, in words and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.replay.differences import Kind, order_moved
from parquet_sink.replay.table_state import Received, TableState

SHOWN: Final = 5
"""Examples of each kind."""
_WORDS: Final[Mapping[Kind, str]] = {
    Kind.BACK: "went back in time",
    Kind.NEWER: "became newer",
    Kind.CHANGED: "changed",
    Kind.CAME: "came that were not there",
    Kind.GONE: "are gone",
    Kind.COPIED: "are there more often than before",
}
_ELSEWHERE: Final = (
    "something else delivered to the table meanwhile, the live connector say: stop that, or verify a topic at rest"
)

_ORDER_MOVED: Final[Mapping[int, str]] = {
    0: "order column {order} is equal in the older and the newer row of {keys} keys: of those the last to come won. "
    "In connect.ems.order.field.name name a column that rises with each change, or none: then the offset decides",
    1: "an older row won: order column {order} is larger in the older row of {keys} keys, so it does not rise. "
    "In connect.ems.order.field.name name a column that does",
    -1: "an older row won: order column {order} is smaller in it for {keys} keys, and the target took it for the "
    "newer one all the same",
}
"""By how the order column moved while the record became an older one."""


@dataclass(frozen=True)
class Finding:
    """What became of one table between two moments.

    rows, deleted: in the table now. received: accepted in between; sent: rows that were sent, None when that is not
    known. counts: keys that differ, by kind. examples, why: in words. rows_by_key: each difference, None when there are
    none or they cannot be told; keys: the columns by which they are told.
    """

    table: str
    rows: int
    deleted: int
    received: Received
    sent: int | None = None
    counts: Mapping[Kind, int] | None = None
    examples: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    rows_by_key: pa.Table | None = None
    keys: tuple[str, ...] = ()

    @property
    def unchanged(self) -> bool:
        """Whether it is shown that what was sent changed nothing."""
        return not self.counts and not self.why

    @property
    def line(self) -> str:
        """The result."""
        if self.unchanged:
            return f"table {self.table}: unchanged: {self.rows:,} rows, {self.received.rows:,} repeated rows absorbed"
        if not self.counts:
            return f"table {self.table}: NOT PROVEN: {self.rows:,} rows now, {self.received.rows:,} rows received"
        told = ", ".join(f"{count:,} {_WORDS[kind]}" for kind, count in self.counts.items())
        return f"table {self.table}: CHANGED: of {self.rows:,} rows now: {told}"

    def lines(self) -> list[str]:
        """The result, how it came about, and why."""
        found = self.received
        how = f"  {_count(found.files, 'file')} received"
        if found.recognised_files:
            how += f", {found.recognised_files:,} of them known by name and not put into the table again"
        deleted = f"; {self.deleted:,} deleted keys compared as well" if self.deleted else ""
        return [
            self.line,
            how + deleted,
            *(f"  {one}" for one in self.examples),
            *(f"  why: {one}" for one in self.why),
        ]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "table": self.table,
            "unchanged": self.unchanged,
            "rows": self.rows,
            "deleted": self.deleted,
            "sent_rows": self.sent,
            "absorbed_rows": self.received.rows if self.unchanged else None,
            "received": {name: getattr(self.received, name) for name in Received.__dataclass_fields__},
            "differences": {str(kind): count for kind, count in (self.counts or {}).items()},
            "examples": list(self.examples),
            "why": list(self.why),
        }


def judge(found: pa.Table, before: TableState) -> tuple[dict[Kind, int], list[str], list[str]]:
    """How many keys of each kind, examples of each, and why. found: as `differences` gives them."""
    counted = pc.value_counts(found["kind"]).to_pylist()
    counts = {Kind(one["values"]): int(one["counts"]) for one in counted}
    counts = {kind: counts[kind] for kind in Kind if kind in counts}
    shown: list[str] = []
    for kind, count in counts.items():
        rows = found.filter(pc.equal(found["kind"], kind.value)).slice(0, SHOWN).to_pylist()
        shown += [_example(row, kind, before) for row in rows]
        shown += [f"... and {count - SHOWN:,} more that {_WORDS[kind]}"] if count > SHOWN else []
    return counts, shown, _reasons(found, counts, before)


def _reasons(found: pa.Table, counts: Mapping[Kind, int], before: TableState) -> list[str]:
    why = []
    if Kind.BACK in counts:
        why += _of_older(found.filter(pc.equal(found["kind"], Kind.BACK.value)), before)
    if Kind.COPIED in counts:
        why.append("no primary key: the target appends what comes again. Set connect.ems.data.primary.key")
    if Kind.CHANGED in counts:
        why.append(
            "the same records became other rows: settings, transforms or the program are not those of the first time"
            if "before_offset" in found.column_names or "before_timestamp" in found.column_names
            else "rows differ, and no column tells when: connect.ems.embed.kafka.metadata=true would"
        )
    if Kind.CAME in counts:
        why.append(f"records came that the table had not, or had no more; or {_ELSEWHERE}")
    if Kind.NEWER in counts:
        why.append(f"newer records came: {_ELSEWHERE}")
    if Kind.GONE in counts:
        why.append("rows left the table: the target, or somebody else, removed them")
    return why


def _of_older(rows: pa.Table, state: TableState) -> list[str]:
    """Why older rows could win."""
    if state.order is None:
        return ["no order column: of rows of one key the one that came last won, older or not"]
    if "before_order" not in rows.column_names:
        return [f"no order column: the target was told {state.order}, which the table does not have"]
    moved = order_moved(rows)
    counted = [(text, pc.sum(pc.equal(moved, sign)).as_py()) for sign, text in _ORDER_MOVED.items()]
    return [text.format(order=state.order, keys=f"{count:,}") for text, count in counted if count]


def _example(row: Mapping[str, Any], kind: Kind, state: TableState) -> str:
    named = [f"{name} {_cell(row[f'key_{number}'])}" for number, name in enumerate(state.keys)]
    which = ", ".join(named) or "a row without a key"
    if kind is Kind.COPIED:
        return f"{which}: {row['copies']:,} more of it ({_moment(row, 'after')})"
    if kind is Kind.CAME:
        return f"{which}: not there, now {_moment(row, 'after')}"
    if kind is Kind.GONE:
        return f"{which}: {_moment(row, 'before')}, now gone"
    words = {Kind.BACK: "back from", Kind.NEWER: "on from", Kind.CHANGED: "other cells: before"}[kind]
    return f"{which}: {words} {_moment(row, 'before', state)} to {_moment(row, 'after', state)}"


def _moment(row: Mapping[str, Any], side: str, state: TableState | None = None) -> str:
    """Where a row's record is, as far as its columns tell."""
    told = []
    if row.get(f"{side}_offset") is not None:
        partition = row.get(f"{side}_partition")
        told.append(
            f"offset {row[f'{side}_offset']:,}" + ("" if partition is None else f" of topic-partition {partition}")
        )
    if state is not None and row.get(f"{side}_order") is not None and state.watched["order"] != "__celonis_order":
        told.append(f"{state.watched['order']} {_cell(row[f'{side}_order'])}")
    if row.get(f"{side}_deleted"):
        told.append("deleted")
    return ", ".join(told) or "a row"


def _cell(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def changed_columns(before: TableState, after: TableState) -> list[str]:
    """What happened to the table's columns, in words; empty when rows can be compared as they are."""
    told = []
    now = after.columns or {}
    for name, type_ in (before.columns or {}).items():
        if name not in now:
            told.append(f"column {name} is gone")
        elif now[name] != type_:
            told.append(f"column {name} was {type_} and is {now[name]}")
    return told


def added_columns(before: TableState, after: TableState) -> Sequence[str]:
    """Columns that were not there."""
    return [name for name in after.columns or {} if name not in (before.columns or {})]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
