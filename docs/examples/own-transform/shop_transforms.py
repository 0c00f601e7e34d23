"""Two transforms and a predicate: one row-wise, one on columns, one that chooses by timestamps."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.api import (
    VALUES_ONLY,
    Columns,
    FieldTransform,
    Key,
    Origin,
    RecordFault,
    Type,
    TypedChange,
    WrongSettings,
)

SHOP = "Shop"


def key(name, kind, text, **more):
    """A key of one of the classes below."""
    return Key(name, SHOP, kind, text, origin=Origin.PLUGIN, **more)


class FullName(FieldTransform):
    """Joins texts into one field: `fields=first,last` and `into=name`."""

    keys = (
        key("fields", Type.LIST, "Fields to join, in this order.", required=True, missing="name the fields to join."),
        key("into", Type.STRING, "The field that they become.", default="name"),
        key("separator", Type.STRING, "What stands between them.", default=" ", may_be_empty=True),
    )

    def __init__(self, values, side):
        super().__init__(side)
        self.fields, self.into = values.names("fields"), values.text("into")
        self.separator = values.text("separator")
        if self.into in self.fields:
            raise WrongSettings({"into": f"{values.quoted('into')} is one of fields; give the text another name."})

    def joined(self, record):
        """The text of one record; a field that is absent or null is left out."""
        found = [record.get(name) for name in self.fields]
        for name, value in zip(self.fields, found, strict=True):
            if not isinstance(value, str | None):
                raise RecordFault(f"field {name} is not text")
        return self.separator.join(value for value in found if value is not None)

    def tree(self, tree, origin):
        """A record without a schema."""
        if tree is None:
            return None
        if not isinstance(tree, dict):
            raise RecordFault("the value is not an object, so it has no fields to join")
        return {**tree, self.into: self.joined(tree)}

    def typed(self, arrow):
        """Records of one schema."""
        if not pa.types.is_struct(arrow):
            raise RecordFault("the value is not a record, so it has no fields to join")
        return _FullNameTyped(self, arrow)


class _FullNameTyped(TypedChange):
    def __init__(self, transform, arrow):
        kept = [field for field in arrow if field.name != transform.into]
        super().__init__(pa.struct([*kept, pa.field(transform.into, pa.string())]))
        self.transform = transform

    def value(self, value, origin):
        """One record, as a dict."""
        return {**value, self.transform.into: self.transform.joined(value)}


class Scale(FieldTransform):
    """Multiplies a number: `field=amount` and `percent=119`."""

    keys = (
        key("field", Type.STRING, "The field, a number.", required=True, missing="name a field."),
        key("percent", Type.INT, "By how much.", required=True, minimum=1, missing="give a percentage."),
    )

    def __init__(self, values, side):
        super().__init__(side)
        self.field, self.factor = values.text("field"), values.number("percent") / 100

    def tree(self, tree, origin):
        """The exact form: what it says is right, and the columns below must give the same."""
        if not isinstance(tree, dict) or tree.get(self.field) is None:
            return tree
        number = tree[self.field]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise RecordFault(f"field {self.field} is not a number")
        return {**tree, self.field: number * self.factor}

    def typed(self, arrow):
        """Records of one schema: only doubles are scaled."""
        at = arrow.get_field_index(self.field) if pa.types.is_struct(arrow) else -1
        if at < 0 or not pa.types.is_float64(arrow.field(at).type):
            raise RecordFault(f"field {self.field} is no double in the schema of its record")
        return _ScaleTyped(self, arrow)

    def inferred(self, piece, origins):
        """Many records without a schema, where the field is a column of doubles."""
        at = piece.rows.type.get_field_index(self.field)
        if at < 0 or self.field in piece.lists or not pa.types.is_float64(piece.rows.type.field(at).type):
            return None  # one by one
        return Columns(scaled(piece.rows, at, self.factor), lists=piece.lists)


class _ScaleTyped(TypedChange):
    def __init__(self, transform, arrow):
        super().__init__(arrow)
        self.transform = transform

    def value(self, value, origin):
        """One record, as a dict."""
        number = value[self.transform.field]
        return value if number is None else {**value, self.transform.field: number * self.transform.factor}

    def columns(self, rows, origins):
        """Many at once."""
        return Columns(scaled(rows, rows.type.get_field_index(self.transform.field), self.transform.factor))


def scaled(rows, at, factor):
    """The rows with one field multiplied."""
    arrays = rows.flatten()
    arrays[at] = pc.multiply(arrays[at], pa.scalar(factor))
    return pa.StructArray.from_arrays(arrays, fields=list(rows.type))


class Since:
    """True for records from a point in time on: `from=2024-01-01`."""

    keys = (key("from", Type.STRING, "A date, UTC.", required=True, missing="give a date, such as 2024-01-01."),)
    needs = VALUES_ONLY

    def __init__(self, values):
        try:
            day = datetime.fromisoformat(values.text("from")).replace(tzinfo=UTC)
        except ValueError:
            raise WrongSettings({"from": f"{values.quoted('from')} is not a date; write 2024-01-01."}) from None
        self.start_ms = int(day.timestamp() * 1000)

    def test(self, records):
        """For each of the records, in their order; timestamps are milliseconds."""
        timestamps = records.batch.timestamps.take(records.positions)
        return pc.greater_equal(timestamps, pa.scalar(self.start_ms, pa.int64()))
