"""Apache Kafka's server jars, for a local broker: fetched once with the Ivy that PySpark ships, verified, cached.

`kafka-jars.json` beside this module is the lock file: every jar with its coordinates, size and SHA-256. Because it
names all of them, Ivy has nothing to resolve (6 s instead of 50), and nothing unnamed or altered reaches a class path.

    python -m parquet_sink.addons.devkit.jars                    fetch what the lock file names, print the folder
    python -m parquet_sink.addons.devkit.jars --lock REVISION    write the lock file anew (4.1.+ is the newest 4.1)

Environment: `PARQUET_SINK_CACHE` (folder for the jars), `PARQUET_SINK_MAVEN_REPOSITORY` (a mirror of Maven Central),
`JAVA_HOME`, and `http_proxy`, `https_proxy`, `no_proxy` in either case.
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from parquet_sink.addons.devkit.ivy import MAVEN_CENTRAL, Jar, repository_cure, run_ivy
from parquet_sink.errors import SetupError
from parquet_sink.process.cache import cache_folder
from parquet_sink.process.java_home import find_java

Report = Callable[[str], None]

LOCK_FILE: Final = Path(__file__).with_name("kafka-jars.json")
MARKER: Final = "verified"
_COUNTED: Final = "[SUCCESSFUL ]"


@dataclass(frozen=True)
class Lock:
    """The lock file: Kafka's version and all its jars. `digest` identifies this very list; name: of the folder."""

    kafka_version: str
    jars: tuple[Jar, ...]
    name: str = "kafka"

    @property
    def digest(self) -> str:
        lines = "\n".join(f"{jar.name} {jar.size_bytes} {jar.sha256}" for jar in self.jars)
        return hashlib.sha256(lines.encode()).hexdigest()


def read_lock(path: Path = LOCK_FILE) -> Lock:
    """The lock file that this package ships, or another one of its form."""
    content = json.loads(path.read_text())
    return Lock(content["kafka"], tuple(Jar(**jar) for jar in content["jars"]), content.get("name", "kafka"))


def repository(environment: Mapping[str, str] = os.environ) -> str:
    """The address to fetch from, MAVEN_CENTRAL unless named. Raises SetupError for a mirror that is not usable."""
    address = environment.get("PARQUET_SINK_MAVEN_REPOSITORY")
    if not address:
        return MAVEN_CENTRAL
    parts = urlsplit(address)
    if parts.username is not None or parts.password is not None:
        raise SetupError("PARQUET_SINK_MAVEN_REPOSITORY holds a user or password. Name a mirror that needs none.")
    if parts.scheme not in ("http", "https", "file"):
        raise SetupError(
            f"PARQUET_SINK_MAVEN_REPOSITORY is {address!r}, which is not an address of a Maven repository. "
            f"Give one that starts with https://, http:// or file://, or none for {MAVEN_CENTRAL}."
        )
    return address.rstrip("/")


def is_complete(folder: Path, lock: Lock) -> bool:
    """Whether `folder` was verified against this lock file and still holds every jar in its size."""
    try:
        if (folder / MARKER).read_text() != lock.digest:
            return False
        return all((folder / jar.name).stat().st_size == jar.size_bytes for jar in lock.jars)
    except OSError:
        return False


def print_progress(text: str) -> None:
    """Progress for a person, on standard error."""
    print(text, file=sys.stderr, flush=True)


def _print_line(line: str) -> None:
    print_progress(line.rstrip())


def fetch(
    lock: Lock | None = None, *, report: Report = print_progress, environment: Mapping[str, str] = os.environ
) -> tuple[Path, str]:
    """The folder that holds Kafka's jars, fetched if need be, and the `java` to run them with.

    Several processes may call it at once: one fetches, the others wait. Raises SetupError when Java is missing or too
    old, the repository or the cache folder cannot be used, or a jar is not the one that the lock file names.
    """
    lock = lock or read_lock()
    java = find_java(environment)
    folder = cache_folder(environment) / f"{lock.name}-{lock.kafka_version}"
    if is_complete(folder, lock):
        return folder, java
    try:
        with _alone(folder, report):
            if not is_complete(folder, lock):
                _fetch_into(folder, lock, java, report, environment)
    except OSError as error:
        raise SetupError(
            f"The folder for Kafka's jars cannot be used: {folder}: {error.strerror or error}. "
            f"Make it writable, or name another one in PARQUET_SINK_CACHE."
        ) from error
    return folder, java


@contextmanager
def _alone(folder: Path, report: Report) -> Iterator[None]:
    """Hold the lock between processes for one folder; the system releases it if the holder dies."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(folder.name + ".lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process is fetching Kafka: waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _fetch_into(folder: Path, lock: Lock, java: str, report: Report, environment: Mapping[str, str]) -> None:
    for left_over in folder.parent.glob(f"{folder.name}.part-*"):  # of a process that was killed: we hold the lock
        shutil.rmtree(left_over, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.part-", dir=folder.parent) as work:
        address = repository(environment)
        total = len(lock.jars)
        report(f"fetching Kafka {lock.kafka_version}: {total} jars from {address}")
        progress = _progress(lambda done: report(f"fetching Kafka {lock.kafka_version}: {done} of {total} jars"), total)
        run_ivy(java, Path(work), lock.jars, address, on_line=progress, environment=environment)
        jars = Path(work) / "jars"
        verify(jars, lock, address)
        (jars / MARKER).write_text(lock.digest)
        if folder.exists():
            shutil.rmtree(folder)
        jars.chmod(0o755)
        jars.rename(folder)


def _progress(report: Callable[[int], None], total: int) -> Callable[[str], None]:
    """Count Ivy's downloads; tell every tenth and the last, so that a log of CI stays short."""
    done = 0

    def on_line(line: str) -> None:
        nonlocal done
        if _COUNTED in line:
            done += 1
            if done % 10 == 0 or done == total:
                report(done)

    return on_line


def verify(folder: Path, lock: Lock, address: str) -> None:
    """Compare each jar with the lock file. Raises SetupError naming the first that is absent or another."""
    for jar in lock.jars:
        path = folder / jar.name
        if not path.is_file():
            raise SetupError(f"{jar.name} did not arrive from {address}. Try again; {repository_cure()}")
        if (actual := _sha256(path)) != jar.sha256:
            raise SetupError(
                f"{jar.name} from {address} is not the published file: its SHA-256 is {actual}, expected {jar.sha256}. "
                f"It was not used. Try again in case the download was damaged; if it stays so, the mirror or a proxy "
                f"alters files: use another one (PARQUET_SINK_MAVEN_REPOSITORY)."
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_lock(revision: str, java: str, address: str) -> Lock:
    """Resolve `kafka_2.13` in full, add Kafka's command line tools and a logging back end, and hash every jar."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        server = [Jar("org.apache.kafka", "kafka_2.13", revision)]
        pattern = "all/[organisation]/[module]/[revision]/[artifact].[ext]"
        run_ivy(
            java,
            work,
            server,
            address,
            transitive=True,
            pattern=pattern,
            on_line=_print_line,
        )
        found = [Jar(path.parts[-4], path.parts[-3], path.parts[-2]) for path in (work / "all").glob("*/*/*/*.jar")]
        revisions = {jar.module: jar.revision for jar in found}
        found.append(Jar("org.apache.kafka", "kafka-tools", revisions["kafka_2.13"]))
        # Kafka's own distribution adds this: without it the broker logs nothing.
        found.append(Jar("org.apache.logging.log4j", "log4j-slf4j-impl", revisions["log4j-core"]))
    return Lock(revisions["kafka_2.13"], hashed(found, java, address))


def hashed(jars: Sequence[Jar], java: str, address: str) -> tuple[Jar, ...]:
    """The same jars with the size and SHA-256 of what the repository has, by name."""
    with tempfile.TemporaryDirectory() as folder:
        run_ivy(java, Path(folder), jars, address)
        found = [(jar, Path(folder, "jars", jar.name)) for jar in sorted(jars, key=lambda jar: jar.name)]
        return tuple(replace(jar, size_bytes=path.stat().st_size, sha256=_sha256(path)) for jar, path in found)


def write_lock(lock: Lock, path: Path = LOCK_FILE) -> None:
    """Write the lock file in a form that differs line by line."""
    name = {} if lock.name == Lock.name else {"name": lock.name}
    content = {"kafka": lock.kafka_version, **name, "jars": [asdict(jar) for jar in lock.jars]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of `python -m parquet_sink.addons.devkit.jars`."""
    parser = argparse.ArgumentParser(
        prog="python -m parquet_sink.addons.devkit.jars", description="Fetch Kafka's server jars."
    )
    parser.add_argument("--lock", metavar="REVISION", help="write a new lock file for this Kafka, such as 4.1.+")
    args = parser.parse_args(arguments)
    try:
        if args.lock:
            write_lock(make_lock(args.lock, find_java(), repository()))
        print(fetch()[0])
    except SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
