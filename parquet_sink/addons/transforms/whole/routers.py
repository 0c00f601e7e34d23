"""Kafka Connect's routers: another name of the topic for predicates and transforms behind them, no other table."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.transforms.fields.java.date_format import WRITTEN, DateFormat, PatternUnusable
from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import Values
from parquet_sink.model.records import VALUES_ONLY
from parquet_sink.transform.java_regex import JAVA_REGEX, NotKept, java_pattern, java_replacement
from parquet_sink.transform.keys import connect_key
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords

_NO_TIMESTAMP: Final = "TimestampRouter needs the record's timestamp, and it has none"


class RegexRouter:
    """Renames topics whose whole name matches an expression."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "regex",
            Type.STRING,
            f"A Java regular expression that the topic's whole name must match. {JAVA_REGEX}",
            missing="give a regular expression for names of topics.",
            may_be_empty=True,
        ),
        connect_key(
            "replacement",
            Type.STRING,
            "The new name, with `$1` or `${name}` for groups of the expression. As in Kafka Connect it takes the place "
            "of the first match, which is the whole name unless a shorter part of it matches, too (`a|ab`).",
            missing="give the topic's new name.",
            may_be_empty=True,
        ),
    )
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        key = "regex"
        try:
            self._pattern = java_pattern(values.text(key) or "")
            key = "replacement"
            self._replacement = java_replacement(values.text(key) or "", self._pattern)
        except NotKept as error:
            raise WrongSettings({key: f"{values.quoted(key)} {error}"}) from None

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        return replace(records, topics=_each(records.topics_now(), self._routed))

    def _routed(self, topic: str) -> str:
        found = self._pattern.search(topic)
        if found is None or self._pattern.fullmatch(topic) is None:
            return topic
        return topic[: found.start()] + self._replacement(found) + topic[found.end() :]


class TimestampRouter:
    """Renames topics by the record's timestamp."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "topic.format",
            Type.STRING,
            "The new name, with `${topic}` and `${timestamp}` in it.",
            default="${topic}-${timestamp}",
            may_be_empty=True,
        ),
        connect_key(
            "timestamp.format",
            Type.STRING,
            "How the timestamp is written (UTC), as Java's SimpleDateFormat in English has it.",
            default="yyyyMMdd",
            may_be_empty=True,
        ),
    )
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        self._topic = values.text("topic.format") or ""
        try:
            self._format = DateFormat(values.text("timestamp.format") or "", WRITTEN)
        except PatternUnusable as error:
            raise WrongSettings({"timestamp.format": f"{values.quoted('timestamp.format')} {error}."}) from None

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; a record without a timestamp is rejected."""
        batch = records.batch
        stamps = batch.timestamps.to_numpy()
        steps, which = np.unique(stamps // self._format.step_ms, return_inverse=True)
        written = pa.array([self._format.format(int(step) * self._format.step_ms) for step in steps], pa.string())
        texts = written.take(pa.array(which))
        both = pa.StructArray.from_arrays([records.topics_now(), texts], ["topic", "timestamp"])
        named = [self._named(one["topic"], one["timestamp"]) for one in both.to_pylist()]
        without = records.positions.filter(pc.equal(batch.timestamps, 0).take(records.positions))
        routed = replace(records, topics=pa.array(named, pa.string()))
        return routed.reject(dict.fromkeys(without.to_pylist(), _NO_TIMESTAMP))

    def _named(self, topic: str, timestamp: str) -> str:
        return self._topic.replace("${topic}", topic).replace("${timestamp}", timestamp)


def _each(names: pa.StringArray, change: Callable[[str], str]) -> pa.StringArray:
    """Each name changed, equal ones once."""
    coded = names.dictionary_encode()
    return pa.array([change(name) for name in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)
