"""What a decoded piece becomes before it joins the topic's columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, NotObfuscated
from parquet_sink.model.rejected import Stage


@dataclass(frozen=True)
class Rejection:
    """Why a record has no row. reason: given where it depends on the columns that the topic has by then.

    by: as in `Rejected`.
    """

    stage: Stage
    reason: str | Callable[[], str]
    by: str = ""

    def __str__(self) -> str:
        return self.reason if isinstance(self.reason, str) else self.reason()


def rejection_of(error: InvalidValue) -> Rejection:
    """What an error on the way into columns makes of a record."""
    return Rejection(Stage.OBFUSCATION if isinstance(error, NotObfuscated) else Stage.SHAPE, str(error))


@dataclass(frozen=True)
class ColumnBatch:
    """Payload columns of records that share one record schema: decoded, exploded, obfuscated, flattened or chunked.

    positions: int64, not decreasing, for each row the position of its record in the input; an exploded record may have
    several rows, or none. columns: name, type and optionality of each column, names distinct; arrays: one for each
    column, one entry for each row. invalid: by position, why a record has no row; such records have none here.
    """

    positions: pa.Int64Array
    columns: tuple[pa.Field, ...]
    arrays: tuple[pa.Array, ...]
    invalid: Mapping[int, Rejection] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class TreeBatch:
    """Records without a schema: exploded and obfuscated, not yet rows, because those depend on the topic's columns.

    positions: increasing, where each record stands in the input; trees: for each the record itself or its elements, at
    least one. invalid: as in `ColumnBatch`.
    """

    positions: Sequence[int]
    trees: Sequence[Sequence[Tree]]
    invalid: Mapping[int, Rejection] = field(default_factory=dict)


@dataclass(frozen=True)
class InferredBatch:
    """Records without a schema as columns: rows for as long as the topic's columns have all their values.

    batch: one row for each record; a column that a record lacks is null. alone: rows that must be taken as trees,
    always; None for none. trees: the trees of a row, as in `TreeBatch`; raises InvalidValue.
    """

    batch: ColumnBatch
    alone: pa.BooleanArray | None
    trees: Callable[[int], Sequence[Tree]]


@dataclass(frozen=True)
class TombstoneBatch:
    """Tombstones as rows of their primary keys: they take the columns that the topic has, and change none of these.

    batch: one row for each record, with the primary keys' columns alone, at least one of them not null in each row.
    """

    batch: ColumnBatch


@dataclass(frozen=True)
class RejectedBatch:
    """Records without a row. positions: increasing; rejections: one for each."""

    positions: Sequence[int]
    rejections: Sequence[Rejection]


Part: TypeAlias = ColumnBatch | TreeBatch | InferredBatch | TombstoneBatch | RejectedBatch
