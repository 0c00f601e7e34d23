"""Kafka Connect's InsertHeader and DropHeaders."""

from dataclasses import replace
from typing import ClassVar, Final

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.connect_values.decoder import parse
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.headers import Headers
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import Side
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.whole.lists import list_key

NAMES_ALONE: Final = RecordParts(headers=True, header_values=frozenset())


def headers_of(records: DecodedRecords) -> Headers:
    """The headers of all records of the batch."""
    return Headers.none(len(records.batch)) if records.headers is None else records.headers


class InsertHeader:
    """Gives every record one more header."""

    keys: ClassVar[tuple[Key, ...]] = (
        Key(
            "header",
            TRANSFORM,
            Type.STRING,
            "The header's name.",
            required=True,
            missing="name the header.",
            may_be_empty=True,
            origin=Origin.CONNECT,
        ),
        Key(
            "value.literal",
            TRANSFORM,
            Type.STRING,
            "The header's value, read as SimpleHeaderConverter reads headers: `12` is a number, `2024-01-31` a date.",
            required=True,
            missing="give the header's value.",
            may_be_empty=True,
            origin=Origin.CONNECT,
        ),
    )
    needs = NAMES_ALONE

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        self._name, self._value = values.text("header") or "", parse(values.text("value.literal") or "")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says."""
        return replace(records, headers=headers_of(records).with_one(self._name, self._value))


class DropHeaders:
    """Takes headers away, all of each name."""

    keys: ClassVar[tuple[Key, ...]] = (list_key("headers", "The headers to drop.", "name the headers to drop."),)
    needs = NAMES_ALONE

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""
        self._names = values.names("headers")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says."""
        return replace(records, headers=headers_of(records).without(self._names))
