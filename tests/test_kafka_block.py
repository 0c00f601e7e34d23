"""Blocks: built from lists, carried across processes as bytes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.block import Block, decode, encode

records = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2**60), st.none() | st.binary(max_size=20)))


@given(st.text(max_size=10), st.integers(0, 2**31 - 1), st.integers(0, 2**60), records)
def test_encode_and_decode_are_inverse(
    topic: str, partition: int, start: int, parts: list[tuple[int, int, bytes | None]]
) -> None:
    """A block comes back with every offset, timestamp and value, tombstones and empty values told apart."""
    offsets, offset = [], start
    for step, _, _ in parts:
        offsets.append(offset)
        offset += step
    block = Block.of(topic, partition, offsets, [t for _, t, _ in parts], [v for _, _, v in parts])
    back = decode(encode(block))
    assert (back.topic, back.partition, len(back)) == (topic, partition, len(parts))
    assert back.offsets.to_pylist() == offsets
    assert back.timestamps.equals(block.timestamps)
    assert back.values.equals(block.values)


def test_contiguous_offsets_take_no_room() -> None:
    """Without a gap only the first offset is stored."""
    count = 1000
    contiguous = encode(Block.of("t", 0, range(count), [0] * count, [b""] * count))
    gaps = encode(Block.of("t", 0, range(0, 2 * count, 2), [0] * count, [b""] * count))
    assert len(gaps) - len(contiguous) >= 8 * count


def test_a_slice_is_encoded_alone() -> None:
    """A block whose arrays are slices of larger ones encodes its own records only."""
    whole = Block.of("t", 0, range(100), range(100), [b"x" * 100] * 100)
    part = Block("t", 0, whole.offsets.slice(90), whole.timestamps.slice(90), whole.values.slice(90))
    assert len(encode(part)) < 2500
    assert decode(encode(part)).offsets.to_pylist() == list(range(90, 100))


def test_lengths_must_match() -> None:
    """One offset, timestamp and value per record; the error names the topic-partition."""
    with pytest.raises(ValueError, match=r"topic t, topic-partition 7: 2 offsets, 1 timestamps and 2 values"):
        Block.of("t", 7, [1, 2], [0], [b"", None])


@pytest.mark.parametrize("data", [b"", b"junk", b"\x00" * 64])
def test_junk_is_no_block(data: bytes) -> None:
    """Bytes that no block was encoded to are refused."""
    with pytest.raises(pa.ArrowInvalid):
        decode(data)


def test_another_stream_is_no_block() -> None:
    """An Arrow stream that is not a block is refused, too."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("value", pa.binary())])):
        pass
    with pytest.raises(pa.ArrowInvalid, match="Not an encoded block"):
        decode(sink.getvalue())
