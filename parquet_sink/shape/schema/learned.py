"""What a topic has taught so far: the types of its columns and the outline of its records, and their way to and fro.

To the outside it is a `pyarrow.Schema`: the payload columns, with the outline in the schema's metadata. It
survives `schema.serialize()`.
"""

from typing import NamedTuple

import orjson
import pyarrow as pa

from parquet_sink.convert.json.lists import Lists
from parquet_sink.convert.reinterpret import reinterpreted
from parquet_sink.shape.outline import Fields, Form, Outline
from parquet_sink.shape.schema import arrow_types
from parquet_sink.shape.schema.arrow_arrays import conformed
from parquet_sink.shape.schema.evolution import merged
from parquet_sink.shape.schema.value_types import ValueTypes, from_fields, to_fields, unite

_KEY = b"parquet_sink.outline"


class Known:
    """ValueTypes and outline; replaced or extended by the shaper only."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.value_types: ValueTypes = {}
        self.outline = Outline(form)
        self._reading: pa.Schema | None = None
        self._names: tuple[pa.DataType, pa.DataType] | None = None

    @classmethod
    def of(cls, schema: pa.Schema | None, form: Form, reserved: frozenset[str]) -> "Known":
        """What the schema remembers; nothing when it was learned under another form or is not ours."""
        known = cls(form)
        if schema is None:
            return known
        try:
            saved = _saved(schema)
            value_types = from_fields(list(schema))
            outline = Outline.restore(form, saved.fields, value_types, saved.lists)
        except (KeyError, ValueError, TypeError):
            return known
        if saved.form == form and not reserved & value_types.keys():
            known.value_types, known.outline = value_types, outline
        return known

    def to_schema(self) -> pa.Schema | None:
        """The schema to remember; None when nothing is known."""
        if not self.value_types and not self.outline.fields:
            return None
        return _schema(self.value_types, self.form, self.outline)

    def change(self, value_types: ValueTypes, afresh: bool) -> None:
        """Take new types; afresh: forget the outline, too."""
        self.value_types = value_types
        self._reading = self._names = None
        if afresh:
            self.outline = Outline(self.form)

    def learn(self, tree: dict[str, object]) -> bool:
        """Take a valid record's fields in; whether the fast path may now cover more."""
        news = self.outline.learn(tree)
        if news:
            self._reading = self._names = None
        return news

    @property
    def reading(self) -> pa.Schema:
        """The schema that the fast path reads with."""
        if self._reading is None:
            self._reading = self.outline.to_schema(self.value_types)
        return self._reading

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What was read with `reading`, its fields named as those of columns are."""
        if not self.form.lower:
            return batch
        rows = batch.to_struct_array()
        if self._names is None:
            distinct = arrow_types.distinct(rows.type)
            self._names = distinct, arrow_types.lowercased(distinct)
        distinct, lower = self._names
        return pa.RecordBatch.from_struct_array(reinterpreted(conformed(rows, distinct), lower))


def merge(first: pa.Schema | None, second: pa.Schema | None) -> pa.Schema | None:
    """What two Spark tasks learned about one topic, taken together; where they cannot be, `second`."""
    if first is None or second is None:
        return second if first is None else first
    if _KEY not in (second.metadata or {}):
        return _merged_columns(first, second)
    if _KEY not in (first.metadata or {}):
        return second
    old, new = _saved(first), _saved(second)
    if old.form != new.form:
        return second
    value_types = unite(from_fields(list(first)), from_fields(list(second)))
    fields = _overlay(new.fields, old.fields)
    outline = Outline.restore(new.form, fields, value_types, _joined(new.lists, old.lists))
    return _schema(value_types, new.form, outline)


def _merged_columns(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    """The same for columns of decoded records, which stand for themselves."""
    if first.metadata != second.metadata:
        return second
    return pa.schema(merged(tuple(first), tuple(second))[0], metadata=second.metadata)


class _Saved(NamedTuple):
    form: Form
    fields: Fields
    lists: Lists


def _schema(value_types: ValueTypes, form: Form, outline: Outline) -> pa.Schema:
    saved = {**form._asdict(), "fields": outline.fields, "lists": outline.lists}
    return pa.schema(to_fields(value_types), metadata={_KEY: orjson.dumps(saved)})


def _saved(schema: pa.Schema) -> _Saved:
    saved = orjson.loads((schema.metadata or {})[_KEY])
    return _Saved(Form(saved["flat"], saved["lower"], saved["discard"]), saved["fields"], saved["lists"])


def _joined(lists: Lists, more: Lists) -> Lists:
    """What either knows."""
    return {key: _joined(lists.get(key, {}), more.get(key, {})) for key in {**lists, **more}}


def _overlay(fields: Fields, more: Fields) -> Fields:
    """`fields` with what only `more` knows; of NULL and something, something."""
    result = dict(fields)
    for key, node in more.items():
        mine = result.get(key)
        if isinstance(mine, dict) and isinstance(node, dict):
            result[key] = _overlay(mine, node)
        elif not mine and not isinstance(mine, dict):
            result[key] = node
    return result
