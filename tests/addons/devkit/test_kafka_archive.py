"""The archive of a broker's Java classes: whose it is, and when it is used."""

from pathlib import Path

import pytest

from parquet_sink.addons.devkit import kafka_archive
from parquet_sink.addons.devkit.kafka_archive import archive_options, stem, usable_archive
from parquet_sink.process.cache import whole_name


@pytest.fixture(autouse=True)
def javas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Java tells its name as its version."""
    monkeypatch.setattr(kafka_archive, "version_text", lambda java: (java, 0))


def put(jars: Path, java: str) -> Path:
    """An archive that is whole."""
    made = jars.with_name("made.jsa")
    made.write_bytes(b"classes")
    return made.replace(jars.with_name(whole_name(stem(jars, java), made)))


def test_it_belongs_to_one_kafka_and_one_java(tmp_path: Path) -> None:
    """Another one has another file, beside the folder of jars."""
    made = {(kafka, java): put(tmp_path / kafka, java) for kafka in ("kafka-4.1.2", "kafka-4.2.0") for java in "ab"}
    assert len(set(made.values())) == 4
    assert {key: usable_archive(tmp_path / key[0], key[1]) for key in made} == made


def test_it_is_used_where_it_is_whole(tmp_path: Path) -> None:
    """Without one, with a part of one, or with one of another Java only, a start has no further options."""
    jars = tmp_path / "kafka-4.1.2"
    assert archive_options(jars, "17") == ()
    put(jars, "21")
    assert archive_options(jars, "17") == ()
    made = put(jars, "17")
    assert archive_options(jars, "17") == (f"-XX:SharedArchiveFile={made}", "-Xlog:disable")
    made.write_bytes(b"class")
    assert archive_options(jars, "17") == ()


def test_a_folder_that_cannot_be_read_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start needs no archive."""
    jars = tmp_path / "kafka-4.1.2"
    put(jars, "17").unlink()
    jars.with_name(f"{stem(jars, '17')}-7-00000000.jsa").symlink_to(tmp_path / "nowhere")
    assert archive_options(jars, "17") == ()
