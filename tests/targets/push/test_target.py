"""The request as it is built: address and body."""

from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.errors import StorageFailed
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.target import PIECE_BYTES, MultipartFile, push_url
from tests.messages import saying

KEY = Secret("AppKey k")


def test_all_parameters_in_order() -> None:
    """The query has the reference's parameters in the reference's order, each encoded."""
    settings = PushSettings(
        "https://x/api/v1/p/items",
        KEY,
        "a+b ü&c",
        "con 1",
        80,
        primary_keys=("id", "day"),
        order_column="__celonis_order",
    )
    assert push_url(settings, "1.2") == (
        "https://x/api/v1/p/items?targetName=a%2Bb+%C3%BC%26c&connectionId=con+1&clientId=Kafka2Ems+1.2"
        "&fallbackVarcharLength=80&primaryKeys=id%2Cday&duplicateRemovalOrderColumn=__celonis_order"
    )


def test_the_fewest_parameters() -> None:
    """What is not set is not sent, and the order column never without primary keys."""
    settings = PushSettings("https://x/items", KEY, "t", order_column="o")
    assert push_url(settings, "1") == "https://x/items?targetName=t&clientId=Kafka2Ems+1"


def test_an_endpoint_with_a_query() -> None:
    """Parameters of the configured address stay in front."""
    assert push_url(PushSettings("https://x/i?a=b", KEY, "t"), "1").startswith("https://x/i?a=b&targetName=t")


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_body_is_one_part_in_pieces(tmp_path: Path, size: int) -> None:
    """The body is exactly the documented part, of the stated length, in bounded pieces."""
    content = bytes(i % 251 for i in range(size))
    (tmp_path / "f").write_bytes(content)
    body = MultipartFile(str(tmp_path / "f"), 'name".parquet', size)
    boundary = body.content_type.removeprefix("multipart/form-data; boundary=")
    pieces = list(body)
    assert max(map(len, pieces)) <= PIECE_BYTES
    assert len(b"".join(pieces)) == len(body)
    assert (
        b"".join(pieces)
        == (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="name%22.parquet"\r\n'
            f"Content-Transfer-Encoding: binary\r\n\r\n"
        ).encode()
        + content
        + f"\r\n--{boundary}--\r\n".encode()
    )


def test_a_file_that_shrank_is_not_sent(tmp_path: Path) -> None:
    """A file that is shorter than verified ends the upload with a storage failure."""
    (tmp_path / "f").write_bytes(b"123")
    with pytest.raises(StorageFailed, match=saying(str(tmp_path / "f"), "2 bytes shorter")):
        list(MultipartFile(str(tmp_path / "f"), "n", 5))


def test_a_file_that_vanished_is_told(tmp_path: Path) -> None:
    """A file that is gone ends the upload with a storage failure."""
    with pytest.raises(StorageFailed, match=saying("a finished file", str(tmp_path), "No such file")):
        list(MultipartFile(str(tmp_path / "f"), "n", 5))


def test_sending_trouble_is_not_storage_trouble(tmp_path: Path) -> None:
    """An error thrown into the body by the connection stays what it is."""
    (tmp_path / "f").write_bytes(b"123")
    pieces = iter(MultipartFile(str(tmp_path / "f"), "n", 3))
    next(pieces)
    with pytest.raises(ConnectionResetError):
        pieces.throw(ConnectionResetError())  # type: ignore[attr-defined]


def test_a_file_for_another_table_names_that() -> None:
    """One connector may fill several."""
    assert push_url(PushSettings("https://x/i", KEY, "t"), "1", "a+b").startswith("https://x/i?targetName=a%2Bb&")
