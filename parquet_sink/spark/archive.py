"""Java's classes of a start in one file, which Java maps instead of reading, checking and linking them anew.

    python -m parquet_sink.spark.archive      make it, print its path

It is made by a practice run of Spark (`practice`), which tells what classes a start loads, and by Java's own dump of
these. It lives in the user's cache folder (PARQUET_SINK_CACHE) and belongs to one Java and one set of jars; which, and
what it holds, its name tells. A start takes it if it is there and whole, and never makes it or waits for it. Java looks
once more whether it fits, and goes without otherwise. PARQUET_SINK_JAVA_ARCHIVE=off goes without in any case.
"""

import fcntl
import hashlib
import logging
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.find_spark_home import _find_spark_home

from parquet_sink.errors import SetupError
from parquet_sink.process.cache import cache_folder
from parquet_sink.process.java_home import find_java, version_text

log = logging.getLogger(__name__)

VARIABLE: Final = "PARQUET_SINK_JAVA_ARCHIVE"
OFF: Final = "off"
KEPT: Final = 2
"""Archives in the folder: of this and of one other installation or version."""
DUMP_S: Final = 900.0
_NAME: Final = re.compile(r"java-[0-9a-f]{16}-(?P<size>\d+)-(?P<sum>[0-9a-f]{8})\.jsa")
_FIXED: Final = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""Where it was made for, not at a random address: else all of it is rewritten, which is 0.1 s and 70 MB of memory."""


def options(archive: Path) -> str:
    """Java's options to use an archive."""
    return f'"-XX:SharedArchiveFile={archive}" {_FIXED}'


def key(java: str, jars: Iterable[tuple[str, int]], java_options: str) -> str:
    """Of an archive for a Java (what `java -version` says), jars (name, size in bytes), and Java's options."""
    lines = [java, java_options, *(f"{name} {size}" for name, size in sorted(jars))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def usable(java_options: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The archive for this Java and these jars, if there is one; one that is not whole is thrown away.

    java_options: those that the program starts Java with. Raises nothing.
    """
    if environment.get(VARIABLE, "").lower() == OFF:
        return None
    with suppress(OSError, SetupError):
        for archive in cache_folder(environment).glob(f"java-{_key(java_options, environment)}-*.jsa"):
            if is_whole(archive):
                return archive
            discard(archive)
    return None


def is_whole(archive: Path) -> bool:
    """Whether it has the size and the checksum that its name tells. Raises OSError."""
    named = _NAME.fullmatch(archive.name)
    if named is None or archive.stat().st_size != int(named["size"]):
        return False
    return checksum(archive) == named["sum"]


def checksum(file: Path) -> str:
    """CRC-32 of its content, in hexadecimal. Raises OSError."""
    found = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            found = zlib.crc32(block, found)
    return f"{found:08x}"


def discard(archive: Path) -> None:
    """Throws an archive away that is of no use. One that cannot be removed stays, and is found useless again."""
    log.warning("The archive of Java's classes %s is damaged and is not used; make it anew with %s.", archive, COMMAND)
    with suppress(OSError):
        archive.unlink()


COMMAND: Final = "python -m parquet_sink.spark.archive"


def make(environment: Mapping[str, str] = os.environ) -> Path:
    """The archive, made if need be, which takes half a minute. Of several processes one makes it, the others wait.

    Raises SetupError when there is no Java, or it makes none; OSError when the cache folder cannot be used.
    """
    from parquet_sink.spark.session import JAVA_OPTIONS

    folder = cache_folder(environment)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "java.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if (found := usable(JAVA_OPTIONS, environment)) is not None:
            return found
        with tempfile.TemporaryDirectory(prefix="java-making-", dir=folder) as work:
            made = _dumped(Path(work), find_java(environment), JAVA_OPTIONS)
            name = f"java-{_key(JAVA_OPTIONS, environment)}-{made.stat().st_size}-{checksum(made)}.jsa"
            made.replace(folder / name)
        for other in sorted(folder.glob("java-*.jsa"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
            other.unlink()
    return folder / name


def _key(java_options: str, environment: Mapping[str, str]) -> str:
    jars = Path(_find_spark_home(), "jars").glob("*.jar")
    java, _ = version_text(find_java(environment))
    return key(java, ((jar.name, jar.stat().st_size) for jar in jars), _of_java(java_options))


def _of_java(java_options: str) -> str:
    """Without properties, which name folders and change no class."""
    return " ".join(option for option in java_options.split() if not option.startswith("-D"))


def _dumped(work: Path, java: str, java_options: str) -> Path:
    """The archive of the classes that a practice run loads. Raises SetupError."""
    from parquet_sink.spark.practice import practise

    classes, made = work / "classes", work / "made.jsa"
    class_path = practise(work / "run", f'"-XX:DumpLoadedClassList={classes}"')
    collector = [option for option in java_options.split() if option.startswith("-XX:+Use")]
    command = [java, "-Xshare:dump", *collector, f"-XX:SharedClassListFile={classes}", "-Xmx512m", "-cp", class_path]
    _run([*command, f"-XX:SharedArchiveFile={made}"])
    use = [java, *_FIXED.split(), *collector, "-Xshare:on", f"-XX:SharedArchiveFile={made}"]
    _run([*use, "-cp", class_path, "-version"])
    with made.open("rb") as file:
        os.fsync(file.fileno())
    return made


def _run(command: list[str]) -> None:
    """Raises SetupError when it fails."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_S, check=False)
    except subprocess.TimeoutExpired:
        raise SetupError(f"Java did not make the archive of its classes within {DUMP_S:.0f} s.") from None
    if ended.returncode != 0:
        words = (ended.stderr + ended.stdout).strip().splitlines()
        raise SetupError(f"Java made no archive of its classes (exit status {ended.returncode}): {words[-1:]}")


def main() -> int:
    """Makes it and prints its path; the exit status."""
    try:
        print(make())
    except (SetupError, OSError) as error:
        print(f"No archive of Java's classes, so starts take some seconds longer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
