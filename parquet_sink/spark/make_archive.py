"""Makes the CDS archive of Java's classes of a start (`cds_archive`), once for a machine.

    python -m parquet_sink.spark.make_archive      make it, print its path

A warm-up run of Spark shows what classes a start loads, and Java itself dumps these.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from parquet_sink.errors import SetupError
from parquet_sink.process.cache import cache_folder, whole_name
from parquet_sink.process.java_home import find_java
from parquet_sink.spark import warm_up
from parquet_sink.spark.cds_archive import FIXED_OPTIONS, key_of, usable
from parquet_sink.spark.java_command import java_command
from parquet_sink.spark.session import JAVA_OPTIONS, LOCAL_MASTER, Session

MICRO_BATCHES: Final = 3
TASKS: Final = 4
PATIENCE_S: Final = 300.0
KEPT: Final = 2
"""Archives in the folder: of this and of one other installation or version."""
DUMP_S: Final = 900.0


def warm_up_run(folder: Path, java_options: str = "") -> str:
    """Runs a few micro-batches in a session of its own; Java's class path in it.

    folder: for temporary files. java_options: on top of the usual ones. Raises SetupError when Spark does not start, or
    does not come to an end.
    """
    session = Session(None, folder, {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options}"})
    try:
        spark = session.start()
        running = warm_up.start(spark, folder / "checkpoint", MICRO_BATCHES, TASKS)
        warm_up.finish(running, PATIENCE_S, MICRO_BATCHES)
        jvm = spark._jvm  # noqa: SLF001 - PySpark has no other way to ask Java
        assert jvm is not None
        return str(jvm.java.lang.System.getProperty("java.class.path"))
    finally:
        session.close()


def make(environment: Mapping[str, str] = os.environ) -> Path:
    """The archive, made if need be, which takes half a minute. Of several processes one makes it, the others wait.

    Raises SetupError when there is no Java, or it makes none; OSError when the cache folder cannot be used.
    """
    folder, jars = cache_folder(environment), java_command(LOCAL_MASTER, (), environment).jars()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "java.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if (found := usable(JAVA_OPTIONS, jars, environment)) is not None:
            return found
        print("Making the CDS archive of Java's classes, once: half a minute to a minute.", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="java-making-", dir=folder) as work:
            made = _dumped(Path(work), find_java(environment), JAVA_OPTIONS)
            name = whole_name(f"java-{key_of(JAVA_OPTIONS, jars, environment)}", made)
            made.replace(folder / name)
        for other in sorted(folder.glob("java-*.jsa"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            other.unlink()
    return folder / name


def _dumped(work: Path, java: str, java_options: str) -> Path:
    """The archive of the classes that a warm-up run loads. Raises SetupError."""
    classes, made = work / "classes", work / "made.jsa"
    class_path = warm_up_run(work / "run", f'"-XX:DumpLoadedClassList={classes}"')
    collector = [option for option in java_options.split() if option.startswith("-XX:+Use")]
    command = [java, "-Xshare:dump", *collector, f"-XX:SharedClassListFile={classes}", "-Xmx512m", "-cp", class_path]
    _run([*command, f"-XX:SharedArchiveFile={made}"])
    use = [java, *FIXED_OPTIONS.split(), *collector, "-Xshare:on", f"-XX:SharedArchiveFile={made}"]
    _run([*use, "-cp", class_path, "-version"])
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made


def _run(command: list[str]) -> None:
    """Raises SetupError when it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_S, check=False)
    except subprocess.TimeoutExpired:
        raise SetupError(f"Java did not make the CDS archive of its classes within {DUMP_S:.0f} s.") from None
    if ended.returncode != 0:
        words = (ended.stderr + ended.stdout).strip().splitlines()
        raise SetupError(f"Java made no CDS archive of its classes (exit status {ended.returncode}): {words[-1:]}")


def main() -> int:
    """Makes it and prints its path; the exit status."""
    try:
        print(make())
    except (SetupError, OSError) as error:
        print(f"No CDS archive of Java's classes, so starts take some seconds longer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
