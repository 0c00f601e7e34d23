"""The CDS archive of Java's classes: which one is taken, and which is not."""

import logging
from pathlib import Path

import pytest

from parquet_sink.errors import SetupError
from parquet_sink.process.cache import whole_name
from parquet_sink.spark import cds_archive, make_archive
from tests.messages import assert_says

JARS = [("/s/a.jar", 10, 5), ("/s/b.jar", 20, 5)]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A cache folder of its own, for one Java and one set of jars."""
    monkeypatch.setattr(cds_archive, "key_of", lambda java_options, jars, environment: "0123456789abcdef")
    return {"PARQUET_SINK_CACHE": str(tmp_path)}


def put(folder: Path, content: bytes, key: str = "0123456789abcdef") -> Path:
    """An archive whose name tells what it holds."""
    made = folder / "new.jsa"
    made.write_bytes(content)
    return made.rename(folder / whole_name(f"java-{key}", made))


def test_the_order_of_jars_does_not_matter_to_the_key() -> None:
    """A folder lists its files in any order."""
    assert cds_archive.key("17.0.1", JARS, "-Xmx1m") == cds_archive.key("17.0.1", reversed(JARS), "-Xmx1m")


@pytest.mark.parametrize(
    ("java", "jars", "options"),
    [
        ("17.0.2", JARS, "-Xmx1m"),
        ("17.0.1", JARS[:1], "-Xmx1m"),
        ("17.0.1", [("/s/a.jar", 11, 5), ("/s/b.jar", 20, 5)], "-Xmx1m"),
        ("17.0.1", [("/s/a.jar", 10, 6), ("/s/b.jar", 20, 5)], "-Xmx1m"),
        ("17.0.1", [("/s/a.jar", 10, 5), ("/s/c.jar", 20, 5)], "-Xmx1m"),
        ("17.0.1", [("/t/a.jar", 10, 5), ("/t/b.jar", 20, 5)], "-Xmx1m"),
        ("17.0.1", JARS, "-XX:+UseG1GC"),
    ],
)
def test_another_java_has_another_archive(java: str, jars: list[tuple[str, int, int]], options: str) -> None:
    """So has another set of jars, a jar of another size, time or folder, and Java with other options."""
    assert cds_archive.key(java, jars, options) != cds_archive.key("17.0.1", JARS, "-Xmx1m")


def test_folders_among_the_options_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Properties name folders of an installation, and change no class."""
    monkeypatch.setattr(cds_archive, "version_text", lambda java: ("17", 0))
    one, other, third = (
        cds_archive.key_of(f"-Xmx1m {more}", (), {"PATH": "/usr/bin:/bin"}) for more in ("-Da=/b", "-Da=/c", "-Xint")
    )
    assert one == other != third


def test_a_whole_archive_is_taken(environment: dict[str, str], tmp_path: Path) -> None:
    """Its size and its checksum are those of its name."""
    made = put(tmp_path, b"x" * 3_000_000)
    put(tmp_path, b"y", key="f" * 16)
    assert cds_archive.usable("", (), environment) == made


@pytest.mark.parametrize("content", [b"", b"x" * 999, b"x" * 999 + b"y", b"x" * 1001])
def test_a_damaged_archive_is_thrown_away(
    environment: dict[str, str], tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is short, long or altered would end Java in the middle of its work; the log names it, with the cure."""
    made = put(tmp_path, b"x" * 1000)
    made.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert cds_archive.usable("", (), environment) is None
    assert not made.exists()
    assert str(made) in caplog.text
    assert "python -m parquet_sink.spark.make_archive" in caplog.text


def test_a_damaged_archive_hides_no_whole_one(environment: dict[str, str], tmp_path: Path) -> None:
    """Where there are several of one key, a whole one is found."""
    put(tmp_path, b"a").write_bytes(b"b")
    made = put(tmp_path, b"whole")
    put(tmp_path, b"c").write_bytes(b"")
    assert cds_archive.usable("", (), environment) == made


@pytest.mark.parametrize("word", ["off", "OFF"])
def test_it_can_be_switched_off(environment: dict[str, str], tmp_path: Path, word: str) -> None:
    """Then a whole one is not used either, and stays."""
    made = put(tmp_path, b"whole")
    assert cds_archive.usable("", (), {**environment, cds_archive.VARIABLE: word}) is None
    assert made.exists()


def test_without_a_cache_folder_there_is_none(environment: dict[str, str]) -> None:
    """A start needs no archive."""
    assert cds_archive.usable("", (), {"PARQUET_SINK_CACHE": "/dev/null/nothing"}) is None


def test_without_java_there_is_none(tmp_path: Path) -> None:
    """Who needs Java will tell."""
    assert cds_archive.usable("", (), {"PARQUET_SINK_CACHE": str(tmp_path), "PATH": ""}) is None


def test_what_keeps_java_from_making_one_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing else depends on it: the message says what it costs to be without."""

    def no_java(*_: object) -> Path:
        raise SetupError("no java")

    monkeypatch.setattr(make_archive, "make", no_java)
    assert make_archive.main() == 1
    assert_says(capsys.readouterr().err, "CDS archive", "seconds longer", "no java")


def test_a_dump_that_fails_names_its_cause(tmp_path: Path) -> None:
    """With Java's last words."""
    with pytest.raises(SetupError, match=r"exit status 3.*last"):
        make_archive._run(["/bin/sh", "-c", "echo first; echo last; exit 3"])
