"""How Java starts, with real Java: the CDS archive of its classes is used, and a start survives a damaged one."""

import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from parquet_sink.spark import cds_archive, make_archive
from parquet_sink.spark.java_command import MODULE_OPTIONS, java_command
from parquet_sink.spark.session import JAVA_OPTIONS, LOCAL_MASTER

HEADER_BYTES = 1_000_000
"""What Java checks of an archive before it uses it, and somewhat more."""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this machine's archive, which is made if need be, in a cache folder of the test's own."""
    command = [sys.executable, "-m", "parquet_sink.spark.make_archive"]  # by itself: it starts a Spark of its own
    original = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout.strip()
    monkeypatch.setenv("PARQUET_SINK_CACHE", str(tmp_path))
    return Path(shutil.copy(original, tmp_path))


SESSION = """
import logging, sys
from pathlib import Path
from parquet_sink.spark.session import Session
logging.basicConfig(level="WARNING")
session = Session("local[1]", Path(sys.argv[1]))
assert session.start().range(3).count() == 3
print(Path(f"/proc/{session.java.pid}/maps").read_text())
print("loaded:", *{"numpy", "pyarrow", "unittest"} & set(sys.modules))
session.close()
"""


def start(folder: Path) -> tuple[str, str]:
    """The files that Java has mapped, with a Spark that works in a process of its own; then what was logged."""
    ended = subprocess.run(
        [sys.executable, "-c", SESSION, str(folder / "run")], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


def test_the_archive_that_was_made_is_used(made: Path, tmp_path: Path) -> None:
    """Java maps it: it was made for this Java, these jars and these options.

    Nor does the program load Arrow, which PySpark would for values of NumPy, of which none goes to Java.
    """
    assert make_archive.make() == made
    said, log = start(tmp_path)
    assert str(made) in said, log
    assert "archive" not in log
    assert "loaded:\n" in said, log


@pytest.mark.in_turn
def test_a_start_goes_without_a_damaged_archive(made: Path, tmp_path: Path) -> None:
    """Half of it is there, as after a full disk: it is thrown away, and Spark works."""
    made.chmod(0o600)
    with made.open("r+b") as file:
        file.truncate(made.stat().st_size // 2)
    maps, log = start(tmp_path)
    assert str(tmp_path) not in maps.replace(f"{tmp_path}/run", "")
    assert not made.exists()
    assert str(made) in log


@pytest.mark.in_turn
def test_java_refuses_an_archive_of_something_else(made: Path, tmp_path: Path) -> None:
    """Its name and header are right and its content is not: Java goes without, and Spark works."""
    content = made.read_bytes()
    content = content[:HEADER_BYTES].ljust(len(content), b"\x5a")
    made.unlink()
    wrong = tmp_path / f"java-{made.name.split('-')[1]}-{len(content)}-{zlib.crc32(content):08x}.jsa"
    wrong.write_bytes(content)
    assert cds_archive.usable(JAVA_OPTIONS, java_command(LOCAL_MASTER, (), os.environ).jars()) == wrong
    maps, _ = start(tmp_path)
    assert str(wrong) not in maps


def test_java_gets_the_options_of_sparks_own_launcher() -> None:
    """In its order; what is left out are the vectors of Spark ML, and a property of a database that nothing opens."""
    home = java_command(LOCAL_MASTER, (), {}).home
    main = "org.apache.spark.deploy.SparkSubmit"
    launcher = ["java", "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main", main]
    variables = {"PATH": os.environ["PATH"], "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    told = subprocess.run([*launcher, "pyspark-shell"], capture_output=True, text=True, check=True, env=variables)
    words = re.split(r"[\0\n]+", told.stdout)
    given = words[words.index(MODULE_OPTIONS[0]) : words.index(main)]
    unused = {"--add-modules=jdk.incubator.vector", "-Dderby.connection.requireAuthentication=false"}
    assert tuple(word for word in given if word not in unused) == MODULE_OPTIONS
    assert unused <= set(given)
