"""Decimals of many Avro datums at once: big-endian bytes of any length to the little-endian words of Arrow."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_sink.convert.avro.cursor import Batch, Cursor, Flags, Ints, word_at
from parquet_sink.convert.avro.leaves import Steps, fixed_width
from parquet_sink.convert.avro.types import Decimal

_WORD = 64
_LOW_WORD = 2**_WORD - 1
_DIGITS_IN_A_WORD = 18


class DecimalColumn:
    """Unscaled integers in two's complement. Longer ones than the column are for the exact decoder."""

    def __init__(self, node: Decimal) -> None:
        self._node = node
        self._steps = Steps(*[np.int64] * node.words)

    def read(self, cursor: Cursor, rows: Ints | None) -> None:
        fixed = self._node.bytes.size
        start, size = cursor.sized() if fixed is None else cursor.fixed(fixed)
        words = _words(cursor.batch, start + size, size, self._node.words)
        wrong = (size == 0) | (size > 8 * self._node.words) | _is_beyond(words, size, self._node.precision)
        if wrong.any():
            cursor.mark(wrong)
            words = [np.where(wrong, 0, word) for word in words]
        self._steps.add(rows, *words)

    def finish(self, count: int, into: Ints | None, valid: Flags | None) -> pa.Array:
        words = [self._steps.place(place, count, into) for place in range(self._node.words)]
        return fixed_width(self._node.arrow, np.stack(words, axis=1), valid)


def _words(batch: Batch, end: Ints, size: Ints, number: int) -> list[Ints]:
    """The lowest word first, each with the sign of the whole number above its bytes."""
    found: list[Ints] = []
    sign = np.zeros(len(end), np.int64)
    for place in range(number):
        left = size - 8 * place
        word = sign
        if left.max() > 0:
            read = word_at(batch, np.maximum(end - 8 * (place + 1), 0)).byteswap().view(np.int64)
            unused = np.clip(8 - left, 0, 7) << 3
            word = np.where(left > 0, (read << unused) >> unused, sign)
        found.append(word)
        sign = word >> (_WORD - 1)
    return found


def _is_beyond(words: list[Ints], size: Ints, precision: int) -> Flags:
    """Which numbers have more digits."""
    if size.max() <= 8:
        if precision > _DIGITS_IN_A_WORD:
            return np.zeros(len(size), np.bool_)
        single: Flags = (words[0] >= 10**precision) | (words[0] <= -(10**precision))
        return single
    return _is_at_least(words, 10**precision) | ~_is_at_least(words, 1 - 10**precision)


def _is_at_least(words: list[Ints], bound: int) -> Flags:
    """A comparison of numbers of several words, from the lowest word, which like all but the highest has no sign."""
    result: Flags = np.ones(len(words[0]), np.bool_)
    for place, word in enumerate(words):
        part = (bound >> (_WORD * place)) & _LOW_WORD
        this: npt.NDArray[np.int64] | npt.NDArray[np.uint64] = word.view(np.uint64)
        limit: np.int64 | np.uint64 = np.uint64(part)
        if place == len(words) - 1:
            this, limit = word, np.int64(part - 2**_WORD if part >> (_WORD - 1) else part)
        result = (this > limit) | ((this == limit) & result)
    return result
