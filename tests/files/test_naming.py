"""Names of uploads and of local files."""

import os

from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files import naming

ODD_TEXT = st.text(max_size=300) | st.sampled_from(["", ".", "..", "../..", "/", "a/b", "\0", ".lock", "%", "\ud800"])


def test_file_name_is_the_references() -> None:
    """The uploaded name has the reference's form, exactly."""
    name = naming.file_name("orders.v1", 3, 100, 199, 12345, 100)
    assert name == "topic-orders.v1_partition-3_firstOffset-100_lastOffset-199_bytes-12345_rows-100.parquet"


@given(ODD_TEXT)
def test_file_name_is_harmless(topic: str) -> None:
    """No topic brings a separator, quote, blank or control character into the uploaded name."""
    name = naming.file_name(topic, 0, 1, 2, 3, 4)
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & set("/\\\"' \r\n;")


@given(ODD_TEXT)
def test_component_is_one_component(text: str) -> None:
    """A component fits a file system, is not hidden, and is neither `.` nor `..`."""
    name = naming.component(text)
    assert name
    assert len(name.encode()) <= naming.LONGEST_COMPONENT
    assert not name.startswith(".")
    assert "/" not in name
    assert "\0" not in name


@given(ODD_TEXT, ODD_TEXT)
def test_components_differ_when_texts_do(one: str, other: str) -> None:
    """Two connectors or topics never share a folder."""
    assert (naming.component(one) == naming.component(other)) == (one == other)


@given(ODD_TEXT, ODD_TEXT, st.integers(0, 10**6))
def test_folders_stay_under_their_base(connector: str, topic: str, partition: int) -> None:
    """Whatever the names, a folder is three levels below its base, resolved as the system resolves it."""
    base = os.path.realpath("/base/of/all")
    folder = os.path.normpath(naming.partition_folder(base, connector, topic, partition))
    assert os.path.commonpath([base, folder]) == base
    assert len(os.path.relpath(folder, base).split(os.sep)) == 3


@given(st.uuids(), st.integers(0, 999_999))
def test_own_names_are_known_again(attempt: object, number: int) -> None:
    """A name made for an attempt is recognised as ours."""
    assert naming.is_own_name(naming.attempt_name(getattr(attempt, "hex"), number))  # noqa: B009


@given(ODD_TEXT)
def test_foreign_names_are_not_ours(text: str) -> None:
    """Kept files, lock, marker and anything else are not taken for leftovers."""
    assert not naming.is_own_name(text)
    assert not naming.is_own_name(naming.kept_name(17))
    assert not naming.is_own_name(naming.LOCK_FILE)
    assert not naming.is_own_name(naming.MARKER_FILE)
