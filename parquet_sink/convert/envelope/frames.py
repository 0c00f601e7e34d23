"""What stands around the payloads of an envelope's records, so that records of one schema are recognised.

A *frame* is the text before and after the payload. It is taken from a record that is a valid envelope; so any text of
a single JSON value between them makes a valid envelope of the same schema again, whatever order its members have.
"""

import re
from dataclasses import dataclass
from json import JSONDecoder

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import MAX_DEPTH
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.typed_json.reader import TypedReader
from parquet_sink.process.lru_cache import LruCache

_MOST_FRAMES = 128
_LONGEST_FRAME = 2**18
_MOST_TEXT = 2**20
_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN = JSONDecoder().raw_decode


@dataclass(frozen=True)
class Frame:
    """prefix, suffix: bytes around a payload. reader: of the payload; None: it has no schema."""

    prefix: bytes
    suffix: bytes
    reader: TypedReader | None

    @property
    def size(self) -> int:
        """Bytes around a payload."""
        return len(self.prefix) + len(self.suffix)

    def fits(self, value: bytes) -> bool:
        """Whether a value has this frame; what is between is not looked at."""
        return value.startswith(self.prefix) and value.endswith(self.suffix) and len(value) >= self.size

    def fit(self, values: pa.BinaryArray) -> pa.BooleanArray:
        """For each value whether it has this frame."""
        long = pc.greater_equal(pc.binary_length(values), pa.scalar(self.size, pa.int32()))
        around = pc.and_(pc.starts_with(values, self.prefix), pc.ends_with(values, self.suffix))
        return pc.and_(long, around)

    def payloads(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """What is between, of values that have this frame."""
        return pc.binary_slice(values, len(self.prefix), -len(self.suffix))


class Frames:
    """The frames used last; at most 128, none longer than 256 KiB, and of 1 MiB together."""

    def __init__(self) -> None:
        self._frames: LruCache[tuple[bytes, bytes], Frame] = LruCache(
            _MOST_FRAMES, weigh=lambda frame: frame.size, max_weight=_MOST_TEXT
        )

    def find(self, value: bytes) -> Frame | None:
        """A frame that the value has."""
        return self._frames.first(lambda frame: frame.fits(value))

    def learn(self, value: bytes, reader: TypedReader | None) -> Frame | None:
        """The frame of a valid envelope, from now on known; None when it is too long or has more than two members."""
        text = value.decode()
        found = spans(text)
        if sorted(name for name, _, _ in found) != ["payload", "schema"]:
            return None
        _, start, end = found[0] if found[0][0] == "payload" else found[1]
        frame = Frame(text[:start].encode(), text[end:].encode(), reader)
        if frame.size > _LONGEST_FRAME:
            return None
        self._frames.put((frame.prefix, frame.suffix), frame)
        return frame


def spans(text: str) -> list[tuple[str, int, int]]:
    """Name, start and end of the value of each member of a JSON object, which `text` is known to be.

    Names may come twice. Raises InvalidValue for excess depth.
    """
    try:
        return _spans(text)
    except RecursionError:
        raise InvalidValue(f"the value is nested deeper than {MAX_DEPTH} levels") from None


def _spans(text: str) -> list[tuple[str, int, int]]:
    found = []
    at = _after_space(text, _after_space(text, 0) + 1)
    while text[at] != "}":
        name, at = _SCAN(text, at)
        start = _after_space(text, _after_space(text, at) + 1)
        _, end = _SCAN(text, start)
        found.append((name, start, end))
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()
