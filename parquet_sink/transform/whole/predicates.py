"""Kafka Connect's predicates: they choose the records that a transform is for."""

from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.values import Values
from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.transform.keys import TRANSFORM
from parquet_sink.transform.protocol import WrongSettings
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.whole.java_regex import JAVA_REGEX, NotKept, java_pattern


def _not_empty(value: Value) -> str | None:
    return None if value else "It is empty; name a header."


class TopicNameMatches:
    """True for records of topics whose whole name matches a pattern; of a routed record it is the new name."""

    keys: ClassVar[tuple[Key, ...]] = (
        Key(
            "pattern",
            TRANSFORM,
            Type.STRING,
            f"A Java regular expression that the whole name must match. {JAVA_REGEX}",
            required=True,
            missing="give a regular expression for names of topics.",
            may_be_empty=True,
            check=Check("not empty", lambda value: None if value else "It is empty; give a regular expression."),
            origin=Origin.CONNECT,
        ),
    )
    needs = VALUES_ONLY

    def __init__(self, values: Values) -> None:
        """As `transform.protocol.PredicateClass` says."""
        try:
            self._pattern = java_pattern(values.text("pattern") or "")
        except NotKept as error:
            raise WrongSettings({"pattern": f"{values.quoted('pattern')} {error}"}) from None

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        """As `transform.protocol.Predicate` says."""
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
        Key(
            "name",
            TRANSFORM,
            Type.STRING,
            "The header's name.",
            required=True,
            missing="name the header.",
            may_be_empty=True,
            check=Check("not empty", _not_empty),
            origin=Origin.CONNECT,
        ),
    )
    needs: Final = RecordParts(headers=True, header_values=frozenset())

    def __init__(self, values: Values) -> None:
        """As `transform.protocol.PredicateClass` says."""
        self._name = values.text("name") or ""

    def test(self, records: DecodedRecords) -> pa.BooleanArray:
        """As `transform.protocol.Predicate` says."""
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
        """As `transform.protocol.Predicate` says."""
        found = np.ones(len(records.batch), np.bool_)
        for piece in records.values:
            found[piece.positions.to_numpy()] = False
        return pc.take(pa.array(found), records.positions)
