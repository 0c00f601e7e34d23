"""Kafka Connect's predicates, which choose the records that a transform is for; and Filter, which drops these."""

from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import Check, Key, Type
from parquet_sink.config.values import Values
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.transform.java_regex import JAVA_REGEX, NotKept, java_pattern
from parquet_sink.transform.keys import connect_key
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords


class TopicNameMatches:
    """True for records of topics whose whole name matches a pattern; of a routed record it is the new name."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "pattern",
            Type.STRING,
            f"A Java regular expression that the whole name must match. {JAVA_REGEX}",
            missing="give a regular expression for names of topics.",
            may_be_empty=True,
            check=Check("not empty", lambda value: None if value else "It is empty; give a regular expression."),
        ),
    )
    needs = VALUES_ONLY

    def __init__(self, values: Values) -> None:
        try:
            self._pattern = java_pattern(values.text("pattern") or "")
        except NotKept as error:
            raise WrongSettings({"pattern": f"{values.quoted('pattern')} {error}"}) from None

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        if records.topics is None:
            return pa.repeat(pa.scalar(self._matches(records.batch.topic)), len(records))
        named = records.topics.take(records.positions).dictionary_encode()
        answers = pa.array([self._matches(name) for name in named.dictionary.to_pylist()], pa.bool_())
        return answers.take(named.indices)

    def _matches(self, name: str) -> bool:
        return self._pattern.fullmatch(name) is not None


class HasHeaderKey:
    """True for records that have a header of a name, whatever its value."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "name",
            Type.STRING,
            "The header's name.",
            missing="name the header.",
            may_be_empty=True,
            check=Check("not empty", lambda value: None if value else "It is empty; name a header."),
        ),
    )
    needs: Final = RecordParts(headers=True, header_values=frozenset())

    def __init__(self, values: Values) -> None:
        self._name = values.text("name") or ""

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        if records.headers is None:
            return pa.repeat(pa.scalar(False, pa.bool_()), len(records))
        return records.headers.has(self._name).take(records.positions)


class RecordIsTombstone:
    """True for records with a null value."""

    keys: ClassVar[tuple[Key, ...]] = ()
    needs = VALUES_ONLY

    def __init__(self, values: Values) -> None:
        """As `transform.protocol.PredicateClass` says."""

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        return pc.is_in(records.positions, records.absent_from(records.values))


class Filter:
    """Drops the records that its predicate chooses; all of them without one."""

    keys: ClassVar[tuple[Key, ...]] = ()
    needs = VALUES_ONLY
    drops_all: ClassVar[bool] = True

    def __init__(self, values: Values, side: Side) -> None:
        """As `transform.protocol.TransformClass` says."""

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """No record is left."""
        return records.where(np.zeros(len(records.batch), np.bool_))
