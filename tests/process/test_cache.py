"""Files whose names tell whether they are whole."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.process.cache import is_whole, whole_name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples."""
    return tmp_path_factory.mktemp("files")


@given(st.binary(max_size=50), st.binary(max_size=50), st.sampled_from(["a", "java-0123", "kafka-4.1.2-x"]))
def test_a_file_is_whole_with_its_own_content_alone(folder: Path, content: bytes, other: bytes, stem: str) -> None:
    """Another content, of the same size or not, is found out."""
    made = folder / "made.jsa"
    made.write_bytes(content)
    named = made.replace(folder / whole_name(stem, made))
    assert is_whole(named)
    named.write_bytes(other)
    assert is_whole(named) is (content == other)


@pytest.mark.parametrize("name", ["a.jsa", "a-5.jsa", "a-5-zz345678.jsa", "5-12345678", ".jsa"])
def test_other_names_are_of_no_whole_file(folder: Path, name: str) -> None:
    """Whatever they hold."""
    (folder / name).write_bytes(b"12345")
    assert not is_whole(folder / name)
