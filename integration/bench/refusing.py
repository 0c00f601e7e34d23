"""A transform of one's own that refuses some records, row by row, as docs/how-to/own-transforms.md has it."""

import pyarrow as pa

from parquet_sink.config.key import Key
from parquet_sink.transform.fields.base import FieldTransform, TypedChange
from parquet_sink.transform.protocol import RecordFault
from parquet_sink.transform.records import Origin


class Refusing(FieldTransform):
    """Refuses records whose code is not a number."""

    keys: tuple[Key, ...] = ()

    def __init__(self, values: object, side: object) -> None:
        super().__init__("value")

    def tree(self, tree: object, origin: Origin) -> object:
        """As `FieldTransform` says."""
        return _judged(tree)

    def typed(self, arrow: pa.DataType) -> TypedChange:
        """As `FieldTransform` says."""
        return _Typed(arrow)


class _Typed(TypedChange):
    def value(self, value: object, origin: Origin) -> object:
        return _judged(value)


def _judged(value: object) -> object:
    if isinstance(value, dict) and not value["code"].isdigit():
        raise RecordFault("field code is not a number")
    return value
