"""The class data sharing (CDS) archive: classes of a start, which Java maps and need not read and link again.

With it a start takes 2.3 s of CPU less. Making it takes 35 s of CPU and another Java, for which a machine that is sized
for the sink may have no room: so the set-up makes it (`make_archive`), and never a start, which says how it is made. It
lives in the user's cache folder (PARQUET_SINK_CACHE) and belongs to one Java and one installation of Spark; which, and
what it holds, its name tells. A start takes it if it is there and whole, and never makes it or waits for it. Java looks
once more whether it fits, and goes without otherwise. PARQUET_SINK_JAVA_ARCHIVE=off goes without in any case.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from parquet_sink.errors import SetupError
from parquet_sink.process.cache import cache_folder, is_whole
from parquet_sink.process.java_home import find_java, version_text

log = logging.getLogger(__name__)

# Java does not look at the content of a class archive: half of one, or a damaged one, may end it at any time. So its
# name carries size and checksum (`process.cache`), and a start looks at both.
VARIABLE: Final = "PARQUET_SINK_JAVA_ARCHIVE"
OFF: Final = "off"
FIXED_OPTIONS: Final = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""Where it was made for, not at a random address: else all of it is rewritten, which is 0.1 s and 70 MB of memory."""


def options(archive: Path) -> str:
    """Java's options to use an archive."""
    return f'"-XX:SharedArchiveFile={archive}" {FIXED_OPTIONS}'


def key(java: str, jars: Iterable[tuple[str, int, int]], java_options: str) -> str:
    """Of an archive for a Java (what `java -version` says), jars (path, bytes, seconds of change), and Java's options.

    Java itself refuses an archive when a jar has another path, size or time of change than when it was made.
    """
    lines = [java, java_options, *(f"{path} {size} {changed}" for path, size, changed in sorted(jars))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def is_off(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the operator wants to go without."""
    return environment.get(VARIABLE, "").lower() == OFF


def usable(java_options: str, jars: Sequence[Path], environment: Mapping[str, str] = os.environ) -> Path | None:
    """The archive for this Java and these jars, if there is one; one that is not whole is thrown away.

    java_options, jars: those that the program starts Java with. Raises nothing.
    """
    if is_off(environment):
        return None
    with suppress(OSError, SetupError):
        for archive in cache_folder(environment).glob(f"java-{key_of(java_options, jars, environment)}-*.jsa"):
            if is_whole(archive):
                return archive
            discard(archive)
    return None


def discard(archive: Path) -> None:
    """Throws an archive away that is of no use. One that cannot be removed stays, and is found useless again."""
    log.warning("CDS archive %s is damaged and is not used; make it again with %s.", archive, COMMAND)
    with suppress(OSError):
        archive.unlink()


COMMAND: Final = "python -m parquet_sink.spark.make_archive"


def key_of(java_options: str, jars: Sequence[Path], environment: Mapping[str, str]) -> str:
    """The key of the archive for these jars and the Java of this machine. Raises SetupError, OSError."""
    java, _ = version_text(find_java(environment))
    known = ((str(jar), jar.stat()) for jar in jars)
    return key(java, ((jar, stat.st_size, int(stat.st_mtime)) for jar, stat in known), _of_java(java_options))


def _of_java(java_options: str) -> str:
    """Without properties, which name folders and change no class."""
    return " ".join(option for option in java_options.split() if not option.startswith("-D"))
