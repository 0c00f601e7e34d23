"""Reads Protobuf messages in C, whole and damaged; prints how many were read. One argument: a seed."""

import random
import sys

import pyarrow as pa

from parquet_sink.addons.formats.protobuf import wire

VARINTS, NARROW, WIDE, TEXTS, MESSAGE, TIMESTAMP = range(8), (8, 9), (10, 11), (12, 13), 14, 15
NUMBERS = (0, 1, 5)


def field(number: int, kind: int, is_list: bool = False, below: tuple[object, ...] = ()) -> tuple[object, ...]:
    """A field as the extension takes it: in a wrapper, or in a oneof, now and then."""
    wrapped = number % 5 == 0 and kind not in (MESSAGE, TIMESTAMP)
    oneof = 0 if number % 7 == 0 and not is_list else -1
    return number, kind, is_list, wrapped, oneof, NUMBERS if kind == 7 else (), below


SINGLE = tuple(field(kind + 1, kind) for kind in (*range(14), TIMESTAMP))
LISTS = tuple(field(kind + 31, kind, is_list=True) for kind in (*range(14), TIMESTAMP))
BELOW = (*SINGLE, *LISTS)
FIELDS = (*BELOW, field(50, MESSAGE, below=BELOW), field(51, MESSAGE, is_list=True, below=BELOW))


def varint(number: int) -> bytes:
    """A number as it stands on the wire."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def value(chance: random.Random, kind: int) -> bytes:
    """A value of a kind that is no message."""
    if kind in VARINTS:
        return varint(chance.choice((0, 1, 5, 2**31, 2**63 - 1, chance.randrange(2**20))))
    if kind in NARROW or kind in WIDE:
        return bytes(chance.randrange(128) for _ in range(4 if kind in NARROW else 8))
    if kind in TEXTS:
        text = chance.choice(("", "a", "größe", "x" * chance.randrange(300))).encode()
        return varint(len(text)) + text
    return b"\x04\x08\x07\x10\x09"


def message(chance: random.Random, fields: tuple[tuple[object, ...], ...], share: float) -> bytes:
    """A message with some of the fields."""
    found = b""
    for number, kind, is_list, wrapped, _, _, below in fields:
        assert isinstance(number, int)
        assert isinstance(kind, int)
        assert isinstance(below, tuple)
        for _ in range(chance.randrange(3) if is_list else 1):
            if chance.random() > share:
                continue
            one = message(chance, below, share / 2) if below else value(chance, kind)
            one = b"" if not one and kind != MESSAGE else one
            wire_type = 0 if kind in VARINTS else 5 if kind in NARROW else 1 if kind in WIDE else 2
            if wrapped:
                one, wire_type = varint(8 | wire_type) + one, 2
            if below or wrapped:
                one = varint(len(one)) + one
            elif is_list and wire_type != 2 and chance.random() < 0.5:
                one, wire_type = varint(2 * len(one)) + 2 * one, 2
            found += varint(number << 3 | wire_type) + one
    return found


def main(seed: int) -> None:
    """Raises AssertionError where no message is read, and pa.ArrowInvalid where a column is none."""
    chance, read = random.Random(seed), 0
    extension = wire.extension()
    assert extension is not None
    for _ in range(1_500):
        values = [message(chance, FIELDS, chance.choice((0.05, 0.5))) for _ in range(chance.choice((1, 3, 50)))]
        for at in range(len(values)):
            if chance.random() < 0.3:
                place = chance.randrange(len(values[at]) + 1)
                values[at] = (
                    values[at][:place]
                    + chance.randbytes(chance.randrange(3))
                    + values[at][place + chance.randrange(2) :]
                )
        _, offsets, data = pa.array(values, pa.binary()).buffers()
        left, columns = extension.read(FIELDS, data or b"", offsets, 0, len(values))
        assert len(columns) == len(FIELDS) + 2 * len(BELOW)
        read += left.count(0)
        for _, count, _, numbers, text in columns:
            if memoryview(text).nbytes:
                pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(numbers), pa.py_buffer(text)]).validate(
                    full=True
                )
    assert read
    print("read", read)


if __name__ == "__main__":
    main(int(sys.argv[1]))
