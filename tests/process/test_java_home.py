"""Java: found where it should be, and new enough."""

from pathlib import Path

import pytest

from parquet_sink.errors import SetupError
from parquet_sink.process.java_home import find_java, java_version
from tests.factories import with_java
from tests.messages import saying


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_java_version_is_read_from_what_java_prints(text: str, expected: int | None) -> None:
    """The feature release is found in every form that Java runtimes print."""
    assert java_version(text) == expected


def test_missing_java_is_told_with_its_cure(tmp_path: Path) -> None:
    """Without any java the message says which version is needed and how to get it."""
    with pytest.raises(SetupError, match=saying("Java 17 or newer", "on the PATH", "Install", "JAVA_HOME")):
        find_java({"PATH": str(tmp_path)})


def test_empty_java_home_is_named(tmp_path: Path) -> None:
    """A JAVA_HOME without java in it is named, and the PATH is not taken instead."""
    with pytest.raises(SetupError, match=saying("no java", "JAVA_HOME", str(tmp_path / "nothing"))):
        find_java({"JAVA_HOME": str(tmp_path / "nothing"), "PATH": "/usr/bin"})


def test_too_old_java_is_told_with_its_version(tmp_path: Path) -> None:
    """Java 11 is refused by its number."""
    old = with_java(tmp_path, "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    with pytest.raises(SetupError, match=saying(old["JAVA_HOME"], "is Java 11", "17 or newer")):
        find_java(old)


def test_silent_java_is_refused(tmp_path: Path) -> None:
    """A java that fails to tell its version is not trusted to run Kafka."""
    with pytest.raises(SetupError, match=saying("not print its version", "exit status 3")):
        find_java(with_java(tmp_path, "#!/bin/sh\nexit 3\n"))
