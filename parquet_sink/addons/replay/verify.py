"""The proof that a replay does no harm: the target's tables before and after, compared by key.

`Verification` is what a replay uses: made before anything is sent, asked for its findings afterwards. Behind it
`snapshot` reads a table's state from a target, and `compare` finds, purely, what became of it and why.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.replay.differences import Kind, Received, TableState, differences, order_moved
from parquet_sink.addons.replay.read_outs import ReadOuts, open_read_outs
from parquet_sink.targets.settings import TargetSettings

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


def snapshot(target: ReadOuts, table: str, like: TableState | None = None) -> TableState:
    """A table as it is once all that was accepted is in it. like: see `ReadOuts.state`.

    Raises InvalidConfiguration when the target cannot say what it has, NotVerified when it does not.
    """
    target.sync()
    return target.state(table, like)


def compare(before: TableState, after: TableState, sent: int | None = None) -> Finding:
    """What became of a table. sent: how many rows were sent to it in between, None when that is not known."""
    received = after.received.since(before.received)
    finding = Finding(after.table, after.rows, after.deleted, received, sent)
    if before.columns is None or after.columns is None:
        return _with_a_table_missing(finding, before, after)
    if unlike := _unlike(before, after):
        return replace(finding, why=(unlike, *_not_absorbed(received, sent)))
    doubts = [*_new_columns(before, after), *_not_absorbed(received, sent)]
    if (before.digest, before.all_rows) == (after.digest, after.all_rows):
        return replace(finding, why=tuple(doubts))
    found = differences(before, after)
    counts, examples, why = _findings(found, before)
    if not counts:
        why.append("its digest changed, but those of its rows did not: it was written to while it was read")
    return replace(
        finding, counts=counts, examples=tuple(examples), why=(*why, *doubts), rows_by_key=found, keys=before.keys
    )


def _with_a_table_missing(finding: Finding, before: TableState, after: TableState) -> Finding:
    if after.columns is not None:
        why = "there was no such table before: what came fills it, and repeats nothing"
        return replace(finding, counts={Kind.CAME: after.all_rows}, why=(why,))
    if before.columns is not None:
        return replace(finding, counts={Kind.GONE: before.all_rows}, why=("the table is not there any more",))
    return replace(finding, why=("there is no such table: the target put nothing into one",))


def _unlike(before: TableState, after: TableState) -> str | None:
    """Why rows cannot be compared; None when they can."""
    if changed := _changed_columns(before, after):
        return f"the table's columns changed, so its rows cannot be compared: {'; '.join(changed)}"
    if before.method != after.method:
        return f"the target's digests were made by {before.method}, and now by {after.method}"
    return None


def _new_columns(before: TableState, after: TableState) -> list[str]:
    added = [name for name in after.columns or {} if name not in (before.columns or {})]
    return [f"the table has columns that it had not, and that are not compared: {', '.join(added)}"] if added else []


def _not_absorbed(received: Received, sent: int | None) -> list[str]:
    """What keeps an unchanged table from being a proof."""
    found = []
    if received.failed_files > 0:
        found.append(
            f"{received.failed_files:,} files were accepted and could not be put into the table: GET /files says why"
        )
    if received.rows < 0 or received.files < 0:
        found.append("the target counts fewer rows than before: it was emptied meanwhile")
    elif sent is not None and received.rows < sent:
        found.append(f"{sent:,} rows were sent, and the target counts {received.rows:,}")
    return found


def _findings(found: pa.Table, before: TableState) -> tuple[dict[Kind, int], list[str], list[str]]:
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
            else "rows differ, and no column says when: connect.ems.embed.kafka.metadata=true would"
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
        return [f"no order column: the target orders by {state.order}, which the table does not have"]
    moved = order_moved(rows)
    counted = [(text, pc.sum(pc.equal(moved, sign)).as_py()) for sign, text in _ORDER_MOVED.items()]
    return [text.format(order=state.order, keys=f"{count:,}") for text, count in counted if count]


def _example(row: Mapping[str, Any], kind: Kind, state: TableState) -> str:
    named = [f"{name} {_cell(row[f'key_{number}'])}" for number, name in enumerate(state.keys)]
    which = ", ".join(named) or "a row without a key"
    if kind is Kind.COPIED:
        return f"{which}: {row['copies']:,} more of it ({_place(row, 'after')})"
    if kind is Kind.CAME:
        return f"{which}: not there, now {_place(row, 'after')}"
    if kind is Kind.GONE:
        return f"{which}: {_place(row, 'before')}, now gone"
    words = {Kind.BACK: "back from", Kind.NEWER: "on from", Kind.CHANGED: "other cells: before"}[kind]
    return f"{which}: {words} {_place(row, 'before', state)} to {_place(row, 'after', state)}"


def _place(row: Mapping[str, Any], side: str, state: TableState | None = None) -> str:
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


def _changed_columns(before: TableState, after: TableState) -> list[str]:
    """What happened to the table's columns, in words; empty when rows can be compared as they are."""
    told = []
    now = after.columns or {}
    for name, type_ in (before.columns or {}).items():
        if name not in now:
            told.append(f"column {name} is gone")
        elif now[name] != type_:
            told.append(f"column {name} was {type_} and is {now[name]}")
    return told


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class Verification:
    """The tables of one replay, before and after. As a context manager it closes its connections.

    Making it reads the tables: raises InvalidConfiguration when the target cannot say what it has, NotVerified when it
    does not. report: what is being read (table, parts read, of parts).
    """

    def __init__(
        self,
        target: TargetSettings,
        tables: Iterable[str],
        report: Callable[[str, int, int], None] = lambda table, done, of: None,
    ) -> None:
        self._target = open_read_outs(target, report)
        try:
            self._before = {table: snapshot(self._target, table) for table in dict.fromkeys(tables)}
        except BaseException:
            self._target.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._target.close()

    def findings(self, sent_rows: Mapping[str, int] | None = None) -> list[Finding]:
        """What became of each table. sent_rows: rows that were sent, by table. Raises NotVerified."""
        found = []
        for table, before in self._before.items():
            after = snapshot(self._target, table, like=before)
            found.append(compare(before, after, None if sent_rows is None else sent_rows.get(table, 0)))
        return found
