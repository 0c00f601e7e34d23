"""The search of the canary test finds what there is to find."""

import base64
import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, quote_plus

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from integration.canaries import Canaries


def sqlite(path: Path, secret: str) -> None:
    """A table with a row."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", (f"before {secret} behind",))
        connection.commit()


def zstd(path: Path, secret: str) -> None:
    """An event log as Spark writes it."""
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(f'{{"a": "{secret}"}}\n'.encode() * 3)


def parquet(path: Path, secret: str) -> None:
    """Rows, compressed and as a dictionary."""
    pq.write_table(pa.table({"x": [secret, "y", secret]}), path, compression="zstd")


def metadata(path: Path, secret: str) -> None:
    """No row has it."""
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({"key": secret}), path, compression="zstd")


@pytest.mark.parametrize(
    "write",
    [
        *(sqlite, zstd, parquet, metadata),
        lambda path, secret: path.write_text(f"x{secret}y"),
        lambda path, secret: path.write_bytes(gzip.compress(secret.encode())),
        lambda path, secret: path.write_text(quote_plus(f"a b{secret}")),
        lambda path, secret: path.write_text(quote(secret, safe="")),
        lambda path, secret: path.write_text(secret.encode().hex()),
        *(
            lambda path, secret, before=before: path.write_bytes(base64.b64encode(f"{before}{secret}/".encode()))
            for before in ("", "a", "ab", "user:")
        ),
    ],
)
def test_a_secret_is_found_in_whatever_form(write: Callable[[Path, str], None], tmp_path: Path) -> None:
    """With the place that it was made for, and no other."""
    canaries = Canaries()
    canaries("another")
    write(tmp_path / "file", canaries("place"))
    assert canaries.below(tmp_path) == [f"{tmp_path / 'file'}: place"]


def test_names_count_and_what_is_passed_over_does_not(tmp_path: Path) -> None:
    """A folder called like a secret; a file that the test itself wrote."""
    canaries = Canaries()
    secret = canaries("place")
    (tmp_path / secret).mkdir()
    (tmp_path / "own").write_text(secret)
    assert canaries.below(tmp_path, lambda path: path.name == "own") == [f"{tmp_path / secret}: place"]


def test_what_others_can_read_is_told_from_what_is_private(tmp_path: Path) -> None:
    """By its own mode, or that of a folder above it."""
    canaries = Canaries()
    for mode, name in ((0o700, "closed"), (0o755, "open")):
        (tmp_path / name).mkdir(mode=mode)
        for file_mode in (0o600, 0o644):
            file = tmp_path / name / f"{file_mode:o}"
            file.write_text(canaries("place"))
            file.chmod(file_mode)
    assert canaries.open_to_others(tmp_path, tmp_path) == [f"{tmp_path / 'open' / '644'}: place"]
