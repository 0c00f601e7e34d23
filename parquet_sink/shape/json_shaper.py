"""Blocks of JSON records to rows with a schema that evolves: the fast path where it applies, else the exact one.

The exact path (`convert.json.exact`, `rows`, `value_types`) is the definition; the fast path (`convert.json.fast`,
`vectors`) must give the same runs, and property tests hold it to that.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.convert.json import lists as json_lists
from parquet_sink.convert.json.exact import parse
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.shape import metadata, vectors
from parquet_sink.shape.flatten import trees
from parquet_sink.shape.flatten.lowercase import lowercased
from parquet_sink.shape.obfuscation.field_obfuscator import FieldObfuscator
from parquet_sink.shape.outline import Form
from parquet_sink.shape.pace import Pace
from parquet_sink.shape.primary_keys import PrimaryKeys
from parquet_sink.shape.run import Assembly, Records, Run
from parquet_sink.shape.schema.learned import Known
from parquet_sink.shape.schema.value_types import Change, Row, ValueTypes, evolve, fits
from parquet_sink.shape.settings import ShapeSettings

_FIELDS_A_BYTE = 4
_ALWAYS_READ = 200
"""With many more fields known than an average record has bytes, nearly all are absent, and the exact path, which takes
time for those that are there alone, is the cheaper one. So few fields are never too many."""

_DOUBTS_WORTH_IT = 16
"""When more than one row in this many is doubtful, the exact path is the cheaper one."""


class JsonShaper:
    """One per topic and Spark task; owns the topic's evolving payload schema."""

    def __init__(self, settings: ShapeSettings, known: pa.Schema | None = None) -> None:
        """known: the payload columns learned so far (another shaper's `known`, also after `serialize`)."""
        self._settings = settings
        self._reserved = metadata.names(settings)
        form = Form(settings.flatten, settings.lowercase, settings.discard_collections)
        self._known = Known.of(known, form, self._reserved)
        self._keys = PrimaryKeys(settings)
        self._obfuscator: FieldObfuscator | None = None
        if settings.obfuscation is not None:
            self._obfuscator = FieldObfuscator(settings.obfuscation, settings.flatten)
        self._pace = Pace()
        self._size = 0.0

    @property
    def known(self) -> pa.Schema | None:
        """The payload columns learned so far, None before the first."""
        return self._known.to_schema()

    def shape(self, block: RecordBatch) -> Iterator[Run]:
        """The rows of the block in offset order; tombstones give none.

        Raises InvalidRecord at the first record that has no row, after giving all rows before it; that record leaves
        no trace in the schema.
        """
        records = Records.of(block)
        assembly = Assembly(records, self._settings)
        self._pace.begin(len(records))
        self._size = records.values.nbytes / max(len(records), 1)
        position = 0
        invalid: InvalidRecord | None = None
        while position < len(records) and invalid is None:
            try:
                position = self._step(records, assembly, position)
            except InvalidRecord as error:
                invalid = error
            yield from assembly.take()
        assembly.cut(self._known.value_types, incompatible=False)
        yield from assembly.take()
        if invalid is not None:
            raise invalid

    def _step(self, records: Records, assembly: Assembly, position: int) -> int:
        """Take some records, fast or exactly, or find that fast does not work; the next position."""
        remaining = len(records) - position
        tried = self._pace.attempt(remaining) if self._can_be_fast() else 0
        if tried:
            taken = self._take_fast(records, assembly, position, tried)
            if taken:
                self._pace.succeeded()
            else:
                self._pace.failed(tried)
            return position + taken
        window = self._pace.window(remaining)
        news = False
        for index, value in enumerate(records.values.slice(position, window).to_pylist(), position):
            news |= self._take_exactly(records, assembly, index, value)
        self._pace.took_exactly(news)
        return position + window

    def _can_be_fast(self) -> bool:
        value_types = self._known.value_types
        is_worth_it = self._known.outline.size <= max(self._size * _FIELDS_A_BYTE, _ALWAYS_READ)
        return is_worth_it and bool(value_types) and not self._keys.missing(value_types)

    def _take_fast(self, records: Records, assembly: Assembly, position: int, count: int) -> int:
        """Take up to `count` records read at once, the doubtful ones exactly; how many were taken, 0 if it failed."""
        known = self._known
        values = self._readable(records.values.slice(position, count))
        batch = None if values is None else json_fast.read(values, known.reading)
        batch = None if batch is None else self._obfuscated(known.named(batch))
        if batch is None:
            return 0
        found = vectors.to_columns(
            batch, values, known.value_types, known.outline, known.form.flat, self._settings.discard_collections
        )
        arrays = found.arrays
        mask = vectors.either(found.doubtful, self._keys.nulls_in(arrays, count))
        doubtful: list[int] = [] if mask is None else pc.indices_nonzero(mask).to_pylist()
        if len(doubtful) * _DOUBTS_WORTH_IT > count:
            return 0
        return self._take_columns(records, assembly, position, count, arrays, doubtful)

    def _readable(self, values: pa.BinaryArray) -> pa.BinaryArray | None:
        """The values without lists, which the reader does not take."""
        lists = self._known.outline.lists
        if not lists:
            return values
        discard, lower = self._settings.discard_collections, self._settings.lowercase
        is_needed = self._obfuscator is not None or (lower and not discard)
        return json_lists.with_lists_as_text(values, lists, discard, self._prepared if is_needed else None, lower=lower)

    def _obfuscated(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """What was read, obfuscated before it becomes columns; None when a record must be judged by itself."""
        if self._obfuscator is None:
            return batch
        read = dict(zip(batch.schema.names, batch.columns, strict=True))
        done = self._obfuscator.columns(read, lists_as_text=bool(self._known.outline.lists))
        return None if done is None else pa.RecordBatch.from_arrays(list(done.values()), schema=batch.schema)

    def _take_columns(
        self,
        records: Records,
        assembly: Assembly,
        position: int,
        count: int,
        arrays: dict[str, pa.Array],
        doubtful: list[int],
    ) -> int:
        """Take what was read; ends early when a doubtful row changed the types, because then the rest is stale."""
        start, value_types = 0, self._known.value_types
        for index in doubtful:
            assembly.add_arrays(_slice(arrays, start, index), index - start, value_types)
            start = index + 1
            value = records.values[position + index].as_py()
            self._take_exactly(records, assembly, position + index, value)
            if self._known.value_types is not value_types:
                return start
        rest = _slice(arrays, start, count) if start else arrays
        assembly.add_arrays(rest, count - start, value_types)
        return count

    def _take_exactly(self, records: Records, assembly: Assembly, index: int, value: bytes) -> bool:
        """Take one record; whether it taught anything. Raises InvalidRecord."""
        known = self._known
        try:
            tree = parse(value)
            row, value_types, change = self._fitted(self._prepared(tree))
        except InvalidValue as error:
            raise InvalidRecord(records.topic, records.partition, records.offset(index), str(error)) from None
        if change in (Change.WIDENED, Change.INCOMPATIBLE):
            assembly.cut(known.value_types, incompatible=change is Change.INCOMPATIBLE)
        if change is not Change.NONE:
            known.change(value_types, afresh=change is Change.INCOMPATIBLE)
        assembly.add_row(row)
        return known.learn(tree) or change is not Change.NONE

    def _prepared(self, tree: Tree) -> Tree:
        """Names in lower case, then obfuscated, as far as the settings say. Raises InvalidValue."""
        if self._settings.lowercase:
            tree = lowercased(tree, discard=self._settings.discard_collections)
        return tree if self._obfuscator is None else self._obfuscator.tree(tree)

    def _fitted(self, tree: Tree) -> tuple[Row, ValueTypes, Change]:
        """The row, the types that it fits, and how they differ from those known. Raises InvalidValue."""
        row, value_types, change = self._row(tree), self._known.value_types, Change.NONE
        if not fits(value_types, row):
            value_types, change = evolve(value_types, self._row(tree), self._reserved, flat=self._settings.flatten)
            row = self._row(tree)
            fits(value_types, row)
        self._keys.check(value_types, row)
        if not value_types and not self._reserved:
            raise InvalidValue("every field is null or left out, and no column is known")
        return row, value_types, change

    def _row(self, tree: Tree) -> Row:
        discard = self._settings.discard_collections
        return trees.flatten(tree, discard) if self._settings.flatten else trees.nest(tree, discard)


def _slice(arrays: dict[str, pa.Array], start: int, end: int) -> dict[str, pa.Array]:
    return {name: array.slice(start, end - start) for name, array in arrays.items()}
