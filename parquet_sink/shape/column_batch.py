"""What a decoded piece becomes before it joins the topic's columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from parquet_sink.convert.decoded import Tree


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
    invalid: Mapping[int, str] = field(default_factory=dict)

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
    invalid: Mapping[int, str] = field(default_factory=dict)
