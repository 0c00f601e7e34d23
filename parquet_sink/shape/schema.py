"""What a topic has taught so far: the kinds of its columns and the outline of its records, and their way to and fro.

To the outside it is a `pyarrow.Schema`: the payload columns, with the outline in the schema's metadata. It
survives `schema.serialize()`. Pure.
"""

from typing import NamedTuple

import orjson
import pyarrow as pa

from parquet_sink.convert.json.lists import Lists
from parquet_sink.convert.relabelled import relabelled
from parquet_sink.shape import typed_types
from parquet_sink.shape.evolve import merged
from parquet_sink.shape.kinds import Kinds, from_fields, to_fields, unite
from parquet_sink.shape.outline import Fields, Form, Outline
from parquet_sink.shape.typed_arrays import conformed

_KEY = b"parquet_sink.outline"


class Known:
    """Kinds and outline; replaced or extended by the shaper only."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.kinds: Kinds = {}
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
            kinds = from_fields(list(schema))
            outline = Outline.restore(form, saved.fields, kinds, saved.lists)
        except (KeyError, ValueError, TypeError):
            return known
        if saved.form == form and not reserved & kinds.keys():
            known.kinds, known.outline = kinds, outline
        return known

    def to_schema(self) -> pa.Schema | None:
        """The schema to remember; None when nothing is known."""
        if not self.kinds and not self.outline.fields:
            return None
        return _schema(self.kinds, self.form, self.outline)

    def change(self, kinds: Kinds, afresh: bool) -> None:
        """Take new kinds; afresh: forget the outline, too."""
        self.kinds = kinds
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
            self._reading = self.outline.to_schema(self.kinds)
        return self._reading

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What was read with `reading`, its fields named as those of columns are."""
        if not self.form.lower:
            return batch
        rows = batch.to_struct_array()
        if self._names is None:
            distinct = typed_types.distinct(rows.type)
            self._names = distinct, typed_types.lowercased(distinct)
        distinct, lower = self._names
        return pa.RecordBatch.from_struct_array(relabelled(conformed(rows, distinct), lower))


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
    kinds = unite(from_fields(list(first)), from_fields(list(second)))
    fields = _overlay(new.fields, old.fields)
    outline = Outline.restore(new.form, fields, kinds, _joined(new.lists, old.lists))
    return _schema(kinds, new.form, outline)


def _merged_columns(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    """The same for columns of decoded records, which stand for themselves."""
    if first.metadata != second.metadata:
        return second
    return pa.schema(merged(tuple(first), tuple(second))[0], metadata=second.metadata)


class _Saved(NamedTuple):
    form: Form
    fields: Fields
    lists: Lists


def _schema(kinds: Kinds, form: Form, outline: Outline) -> pa.Schema:
    saved = {**form._asdict(), "fields": outline.fields, "lists": outline.lists}
    return pa.schema(to_fields(kinds), metadata={_KEY: orjson.dumps(saved)})


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
