"""The proof that a replay does no harm: the target's tables before and after, compared by key.

`Verification` is what a replay uses: made before anything is sent, asked for its findings afterwards. Behind it
`snapshot` reads a table's state from a target, and `compare` judges two states, purely.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Self

from parquet_sink.replay.differences import Kind, differences
from parquet_sink.replay.findings import Finding, added_columns, changed_columns, judge
from parquet_sink.replay.read_outs import ReadOuts, open_read_outs
from parquet_sink.replay.table_state import Received, TableState
from parquet_sink.targets.settings import TargetSettings


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
    counts, examples, why = judge(found, before)
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
    if changed := changed_columns(before, after):
        return f"the table's columns changed, so its rows cannot be compared: {'; '.join(changed)}"
    if before.method != after.method:
        return f"the target's digests were made by {before.method}, and now by {after.method}"
    return None


def _new_columns(before: TableState, after: TableState) -> list[str]:
    added = added_columns(before, after)
    return [f"the table has columns that it had not, and that are not compared: {', '.join(added)}"] if added else []


def _not_absorbed(received: Received, sent: int | None) -> list[str]:
    """What keeps an unchanged table from being a proof."""
    found = []
    if received.failed_files > 0:
        found.append(
            f"{received.failed_files:,} files were accepted and could not be put into the table: GET /files tells why"
        )
    if received.rows < 0 or received.files < 0:
        found.append("the target counts fewer rows than before: it was emptied meanwhile")
    elif sent is not None and received.rows < sent:
        found.append(f"{sent:,} rows were sent, and the target counts {received.rows:,}")
    return found


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
