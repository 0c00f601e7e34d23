"""Classes of a user's own, as a connector file of a golden case names them by their path."""

from collections.abc import Mapping

from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.custom import OneByOne
from parquet_sink.convert.invalid import InvalidValue


class CsvLines(OneByOne):
    """A line of text with commas is a record."""

    keys = (Key("columns", "CSV", Type.LIST, "Names.", default=(), required=True, missing="name them."),)

    def __init__(self, values: Values, side: str) -> None:
        self.columns = values.names("columns")

    def record(self, value: bytes) -> Mapping[str, object] | None:
        """As `OneByOne` says."""
        fields = value.decode("latin-1").split(",")
        if len(fields) != len(self.columns):
            raise InvalidValue(f"it has {len(fields)} fields")
        return dict(zip(self.columns, fields, strict=True))
