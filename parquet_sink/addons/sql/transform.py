"""The transform `sql`: a query over each batch of records, row by row."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.addons.sql import typed, untyped
from parquet_sink.addons.sql.columns import Columns
from parquet_sink.addons.sql.computing import Computing, Results
from parquet_sink.addons.sql.engine import NoEngine, engine
from parquet_sink.addons.sql.parts import KEY
from parquet_sink.addons.sql.query import Query, WrongQuery, query
from parquet_sink.addons.sql.types import is_plain
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Piece, SchemaColumns
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords

QUERY: Final = "query"


class Sql:
    """A query over records, row by row: projections, expressions, conditions and unnest, in DuckDB.

    It needs the extra `sql`: `pip install '.[sql]'`.
    """

    keys = (
        Key(
            QUERY,
            "Transforms and predicates",
            Type.STRING,
            "`SELECT ... FROM records WHERE ...`: what becomes of each record by itself. Columns are the fields of its "
            "value, and `_topic`, `_partition`, `_offset`, `_timestamp` and `_key`.",
            required=True,
            missing="write the query, for example SELECT * FROM records WHERE status <> 'test'.",
            origin=Origin.OWN,
        ),
    )

    def __init__(self, values: Values, side: Side) -> None:
        """Raises WrongSettings."""
        if side == "key":
            raise WrongSettings({"type": "A query is over values, and sees the key as _key; write sql."})
        try:
            self._query: Query = query(values.text(QUERY) or "")
            self._computing = Computing(self._query, engine())
        except WrongQuery as error:
            raise WrongSettings({QUERY: str(error)}) from None
        except NoEngine as error:
            raise WrongSettings({"type": str(error)}) from None
        self.needs = RecordParts(keys=any(one.source == KEY for one in self._query.inputs))

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says. Tombstones pass as they are; what WHERE leaves out is passed over."""
        pieces: list[Piece] = []
        rejected: dict[int, str] = {}
        gone = np.zeros(len(records.batch), np.bool_)
        for piece in records.values:
            failed: dict[int, str] = {}
            found = list(self._pieces(records, piece, failed))
            positions = piece.positions.to_numpy()
            rejected |= {int(positions[row]): why for row, why in failed.items()}
            pieces += found
            gone[positions] = True
            for one in found:
                gone[one.positions.to_numpy()] = False
        gone[list(rejected)] = False
        kept = replace(records, values=tuple(pieces)).reject(rejected)
        return kept.where(~gone) if gone.any() else kept

    def _pieces(self, records: DecodedRecords, piece: Piece, failed: dict[int, str]) -> Iterator[Piece]:
        columns = Columns(records, piece, self._query.inputs, self._query.extracted)
        failed |= columns.bad
        for results in self._results(columns, piece, failed):
            if not len(results.rows):
                continue
            if isinstance(piece, SchemaColumns):
                try:
                    yield typed.made(self._query, piece, results)
                except InvalidValue as error:
                    failed |= dict.fromkeys(results.rows.tolist(), str(error))
            else:
                yield from untyped.made(self._query, piece, columns, results, failed)

    def _results(self, columns: Columns, piece: Piece, failed: dict[int, str]) -> Sequence[Results]:
        """What the expressions give, for records that come to the same types together."""
        asked = self._query
        found: list[Results] = []
        for kinds, rows in columns.groups():
            if asked.computed or asked.condition is not None:
                types = [columns.types.found[kind] for kind in kinds]
                both = zip(columns.columns, kinds, strict=True)
                arrays = [column.take(kind, rows) for column, kind in both]
                results = self._computing.work(types, arrays, rows, untyped=not isinstance(piece, SchemaColumns))
                failed |= results.failed
                found.append(results)
            else:
                found.append(Results(rows, []))
        return _merged(found, untyped=not isinstance(piece, SchemaColumns))


def _merged(found: Sequence[Results], *, untyped: bool) -> Sequence[Results]:
    """Those together whose expressions came to the same types.

    What has only nulls goes with any type while all of them stay without a schema: there a null has no type. untyped:
    the records have none.
    """
    merged: list[tuple[list[pa.DataType], list[Results]]] = []
    for one in found:
        own = [array.type for array in one.arrays]
        for types, group in merged:
            if types == own or (untyped and _are_plain(types, own) and all(map(_go_together, types, own))):
                types[:] = [b if pa.types.is_null(a) else a for a, b in zip(types, own, strict=True)]
                group.append(one)
                break
        else:
            merged.append((own, [one]))
    return [_together(types, group) for types, group in merged]


def _are_plain(*found: Sequence[pa.DataType]) -> bool:
    return all(is_plain(arrow) for types in found for arrow in types)


def _go_together(one: pa.DataType, other: pa.DataType) -> bool:
    return one == other or pa.types.is_null(one) or bool(pa.types.is_null(other))


def _together(types: Sequence[pa.DataType], group: Sequence[Results]) -> Results:
    if len(group) == 1:
        return group[0]
    rows = np.concatenate([one.rows for one in group])
    order = np.argsort(rows, kind="stable")
    arrays = []
    for at, arrow in enumerate(types):
        parts = [one.arrays[at] for one in group]
        whole = pa.concat_arrays(
            [pa.nulls(len(part), arrow) if pa.types.is_null(part.type) else part for part in parts]
        )
        arrays.append(whole.take(pa.array(order)))
    return Results(rows[order], arrays)
