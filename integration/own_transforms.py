"""Transforms, a predicate and a converter of one's own, for tests: connector files name them by their path."""

import os

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.custom import OneByOne
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.errors import RetryLater
from parquet_sink.model.records import VALUES_ONLY
from parquet_sink.transform.protocol import Side
from parquet_sink.transform.records import DecodedRecords


class DropEvery:
    """Drops the records whose offset can be divided by a number."""

    keys = (Key("number", "Test", Type.INT, "Which.", required=True, missing="give it.", minimum=1),)
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        self._number = values.number("number") or 1

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        offsets = records.batch.offsets.to_pylist()
        return records.without(at for at in records.positions.to_pylist() if offsets[at] % self._number == 0)


class WaitFor:
    """Works as soon as a file is there."""

    keys = (Key("file", "Test", Type.STRING, "Which.", required=True, missing="give it."),)
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        self._file = values.text("file") or ""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        if not os.path.exists(self._file):
            raise RetryLater(f"{self._file} is not there yet")
        return records


class Breaks:
    """Has a mistake."""

    keys = ()
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        """It has no settings."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        raise KeyError("nobody thought of this")


class Pairs(OneByOne):
    """Values like `a=1;b=2`."""

    keys = ()

    def __init__(self, values: Values, side: Side) -> None:
        """It has no settings."""

    def record(self, value: bytes) -> Tree:
        if b"=" not in value:
            raise InvalidValue("the value has no =")
        return dict(pair.split("=", 1) for pair in value.decode().split(";"))


class From:
    """Chooses records from an offset on."""

    keys = (Key("offset", "Test", Type.LONG, "Which.", required=True, missing="give it."),)
    needs = VALUES_ONLY

    def __init__(self, values: Values) -> None:
        self._offset = values.number("offset") or 0

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return pc.greater_equal(records.batch.offsets.take(records.positions), self._offset)
