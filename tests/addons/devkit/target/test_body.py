"""The multipart body, in pieces of every size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.target.body import MAX_HEAD_BYTES, UploadBody, boundary_of, file_name_of
from parquet_sink.addons.devkit.target.contract import BadUpload

BOUNDARY = b"b0undary"


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes | memoryview) -> None:
        self.data += data


def multipart(data: bytes, name: str = "f.parquet", field: str = "file") -> bytes:
    """A body as the sink sends it."""
    head = f'Content-Disposition: form-data; name="{field}"; filename="{name}"\r\nContent-Transfer-Encoding: binary\r\n'
    return b"--" + BOUNDARY + b"\r\n" + head.encode() + b"\r\n" + data + b"\r\n--" + BOUNDARY + b"--\r\n"


def opened(body: bytes, piece: int = 1 << 16) -> UploadBody:
    """The body, arriving in pieces."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), piece):
            yield body[start : start + piece]

    return UploadBody(chunks(), BOUNDARY)


async def copied(body: UploadBody) -> tuple[str, bytes]:
    """Name and bytes of the file."""
    name, kept = await body.head(), Kept()
    await body.copy_to(kept)
    return name, kept.data


async def measured(body: UploadBody) -> int:
    """The file's size, counted without looking."""
    await body.head()
    return await body.measure()


DATA = st.one_of(
    st.binary(max_size=300), st.lists(st.sampled_from([b"\r\n", b"--", BOUNDARY, b"x"])).map(b"".join)
).filter(lambda data: b"--" + BOUNDARY not in data)


@given(DATA, st.integers(1, 400))
def test_any_bytes_in_any_pieces_arrive_whole(data: bytes, piece: int) -> None:
    """However the network cuts the body, the file's bytes and their count are right."""
    body = multipart(data)
    assert asyncio.run(copied(opened(body, piece))) == ("f.parquet", data)
    assert asyncio.run(measured(opened(body, piece))) == len(data)


def test_names_outside_ascii_arrive() -> None:
    """The head is UTF-8."""
    assert asyncio.run(copied(opened(multipart(b"x", "bestellung-ü.parquet"))))[0] == "bestellung-ü.parquet"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"--other\r\nContent-Disposition: form-data; name=file; filename=f\r\n\r\nx",
        multipart(b"x", field="data"),
        multipart(b"x", name=""),
        multipart(b"x", name="a\x01b"),
        multipart(b"x", name="n" * 1_025),
        b"--" + BOUNDARY + b"\r\nContent-Type: text/plain\r\n\r\nx",
        b"--" + BOUNDARY + b"\r\nX: " + b"y" * MAX_HEAD_BYTES,
    ],
)
def test_a_body_without_the_one_part_is_refused(body: bytes) -> None:
    """Another field, no name, no part, or a head without end."""
    with pytest.raises(BadUpload):
        asyncio.run(opened(body).head())


@pytest.mark.parametrize("read", [copied, measured])
@pytest.mark.parametrize("cut", [12, 60])
def test_a_body_cut_short_is_refused_in_both_modes(read: object, cut: int) -> None:
    """A file is whole only when the closing boundary came."""
    body = multipart(b"x" * 100)[:-cut]
    with pytest.raises(BadUpload, match="closing boundary"):
        asyncio.run(read(opened(body)))  # type: ignore[operator]


def test_a_second_part_is_refused() -> None:
    """The contract knows one part."""
    two = multipart(b"x").removesuffix(b"--\r\n") + b"\r\n" + multipart(b"y").removeprefix(b"--" + BOUNDARY + b"\r\n")
    with pytest.raises(BadUpload, match="one part"):
        asyncio.run(copied(opened(two)))


@pytest.mark.parametrize("kind", [None, "", "text/csv", "multipart/form-data", "multipart/mixed; boundary=x"])
def test_another_content_type_is_refused(kind: str | None) -> None:
    """Only multipart/form-data with a boundary is an upload."""
    with pytest.raises(BadUpload, match="multipart/form-data"):
        boundary_of(kind)


@given(st.binary(max_size=200))
def test_any_head_is_read_or_refused(head: bytes) -> None:
    """No bytes from outside raise anything but BadUpload."""
    for start in (b"", b"--" + BOUNDARY + b"\r\nContent-Disposition:"):
        with suppress(BadUpload):
            assert file_name_of(start + head, BOUNDARY)
