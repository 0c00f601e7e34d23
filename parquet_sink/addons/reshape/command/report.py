"""What a reshape did, in words and as JSON."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from parquet_sink.addons.reshape.run import Reshaped
from parquet_sink.addons.reshape.spans import RawRange
from parquet_sink.files.storage import TEMPORARY
from parquet_sink.model.receipts import Failure
from parquet_sink.targets.uploader import NOT_COMMITTED

PROGRESS_S: Final = 5.0
_AGAIN: Final = "What is in --out is whole files; the same command goes on, and makes the same ones."
_STOPPED: Final = ". Everything before this record is delivered and committed. "
_CURE: Final = (
    ". Everything before this record is in --out. Correct the connector file if it asks for something else than the "
    "record has; or set errors.tolerance=all: then such records are kept in --rejected."
)


def worded(failure: Failure) -> Failure:
    """What its message says of records in Kafka is said of those in files."""
    head, stopped, _ = failure.message.partition(_STOPPED)
    message = head + _CURE if stopped else failure.message
    for words in (NOT_COMMITTED, TEMPORARY.kept):
        message = message.replace(words, _AGAIN)
    return replace(failure, message=message)


class Progress:
    """A line on standard error every few seconds. total: records of all files. monotonic: seconds."""

    def __init__(self, total: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._total, self._monotonic, self._last_s = total, monotonic, monotonic()
        self._before = self._now = 0
        self._range: RawRange | None = None

    def __call__(self, one: RawRange, records: int) -> None:
        """So many records of a range were read."""
        if one is not self._range:
            self._before, self._range = self._before + self._now, one
        self._now = records
        if self._monotonic() - self._last_s >= PROGRESS_S:
            self._last_s = self._monotonic()
            print(f"reshape: {self._before + records:,} of {self._total:,} records read", file=sys.stderr, flush=True)


@dataclass
class Summary:
    """Of all topic-partitions. left_out: files of topics that the connector does not read, by topic."""

    connector: str
    out: str
    rejected_in: str
    left_out: dict[str, int] = field(default_factory=dict)
    done: list[Reshaped] = field(default_factory=list)

    @property
    def failure(self) -> Failure | None:
        return next((worded(one.failure) for one in self.done if one.failure is not None), None)

    def to_json(self) -> str:
        """One object."""
        failure = self.failure
        whole = {
            "connector": self.connector,
            "out": self.out,
            **{name: sum(one[name] for one in map(_counts, self.done)) for name in _COUNTED},
            "rejected_in": self.rejected_in if any(one.rejected for one in self.done) else None,
            "left_out": self.left_out,
            "ranges": [_counts(one) for one in self.done],
            "failure": None if failure is None else failure.message,
        }
        return json.dumps(whole, ensure_ascii=False)

    def lines(self) -> Sequence[str]:
        """For people."""
        found = [_line(one) for one in self.done]
        found += [f"left out: {count} of topic {topic}" for topic, count in self.left_out.items()]
        if any(one.rejected for one in self.done):
            found.append(f"rejected records are in {self.rejected_in}")
        return found


_COUNTED: Final = ("records", "resent", "rejected", "rows", "files")


def _counts(one: Reshaped) -> dict[str, Any]:
    return {
        "topic": one.range.topic,
        "partition": one.range.partition,
        "first": one.range.first,
        "last": one.range.last,
        "records": one.records,
        "resent": one.resent,
        "rejected": one.rejected,
        "rows": sum(file.rows for file in one.files),
        "files": len(one.files),
        "gaps": [{"first": first, "last": last} for first, last in one.range.gaps],
    }


def _line(one: Reshaped) -> str:
    counts = _counts(one)
    parts = [
        f"{one.records:,} records, {counts['rows']:,} rows",
        f"{len(one.files):,} file{'' if len(one.files) == 1 else 's'}",
        *([f"{one.resent:,} more came again"] if one.resent else []),
        *([f"{one.rejected:,} rejected"] if one.rejected else []),
        *(f"offsets {first} to {last} are in no file" for first, last in one.range.gaps),
    ]
    return f"topic {one.range.topic}, topic-partition {one.range.partition}: {'; '.join(parts)}"
