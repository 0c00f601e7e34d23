"""Java's classes of a local broker in one file, which Java maps instead of reading, checking and linking them anew.

It is made by `make_kafka_archive`, stands beside Kafka's jars in the user's cache folder, and belongs to one Kafka and
one Java. A start takes it if it is there and whole; Java looks once more whether it fits, and goes without otherwise.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

from parquet_sink.process.cache import is_whole
from parquet_sink.process.java_home import version_text


def stem(jars: Path, java: str) -> str:
    """How the names begin of archives for Kafka's jars and a Java."""
    version, _ = version_text(java)
    return f"{jars.name}-{hashlib.sha256(version.encode()).hexdigest()[:16]}"


def usable_archive(jars: Path, java: str) -> Path | None:
    """The archive for Kafka's jars and a Java, if there is one that is whole: Java crashes with a part of one."""
    with suppress(OSError):
        return next((one for one in sorted(jars.parent.glob(f"{stem(jars, java)}-*.jsa")) if is_whole(one)), None)
    return None


def archive_options(jars: Path, java: str) -> tuple[str, ...]:
    """Java's options to use it, none where there is no archive.

    Java is told to say nothing of one that does not fit: what tools print is read by programs.
    """
    archive = usable_archive(jars, java)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")
