"""A query asked of records, as a connector asks it."""

import json
from collections.abc import Sequence

from parquet_sink.addons.sql.transform import Sql
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain

JSON = ConverterSettings()
TEXT = ConverterSettings("string")
FLAT = ShapeSettings(embed_metadata=False)
START = 1_700_000_000_000


def sql(query: str) -> Sql:
    """Made as a connector file makes it."""
    return Sql(read(Sql.keys, Resolved({"query": query}, {"query": query}), Report()), "value")


def batch(values: Sequence[object], first: int = 0, keys: Sequence[bytes | None] | None = None) -> RecordBatch:
    """Records at offsets 2 * first, 2 * first + 2, and so on; what is not bytes yet is JSON, None a tombstone."""
    offsets = range(2 * first, 2 * (first + len(values)), 2)
    made = [one if one is None or isinstance(one, bytes) else json.dumps(one).encode() for one in values]
    return RecordBatch.of("orders", 3, list(offsets), [START + offset for offset in offsets], made, keys)


class Asked:
    """What became of records. rows: by offset, without nulls; types: of the columns of these; rejected: by offset."""

    def __init__(
        self,
        query: str | Sequence[str],
        values: Sequence[object],
        *,
        cuts: Sequence[int] = (),
        decoder: Decoder | None = None,
        shape: ShapeSettings = FLAT,
        keys: Sequence[bytes | None] | None = None,
        key: ConverterSettings = TEXT,
    ) -> None:
        queries = [query] if isinstance(query, str) else query
        chain = TransformChain([Step(sql(one)) for one in queries], decoder_for(key))
        shaper = RowBuilder(shape, None, decoder_for(JSON) if decoder is None else decoder, chain)
        self.rows: list[tuple[int, dict[str, object]]] = []
        self.types: list[dict[str, str]] = []
        self.rejected: dict[int, str] = {}
        self.records = 0
        ends = [*cuts, len(values)]
        for begin, end in zip([0, *cuts], ends, strict=True):
            some = batch(values[begin:end], begin, None if keys is None else keys[begin:end])
            for item in shaper.shape(some, across_rejected=True) if end > begin else ():
                if isinstance(item, Run):
                    self._take(item)
                else:
                    self.rejected[item.offset] = item.reason
        self.columns = [] if shaper.known is None else [(one.name, str(one.type)) for one in shaper.known]

    def _take(self, run: Run) -> None:
        self.records += run.records
        types = {field.name: str(field.type) for field in run.rows.schema}
        for offset, row in zip(run.offsets.to_pylist(), run.rows.to_pylist(), strict=True):
            self.rows.append((offset, {name: _there(value) for name, value in row.items() if value is not None}))
            self.types.append({name: types[name] for name, value in row.items() if value is not None})

    @property
    def plain(self) -> list[dict[str, object]]:
        """The rows, without what is null."""
        return [row for _, row in self.rows]


def _there(value: object) -> object:
    """A value without the nulls of objects, which a field that only later records have leaves in nested columns."""
    if isinstance(value, dict):
        return {name: _there(below) for name, below in value.items() if below is not None}
    return value
