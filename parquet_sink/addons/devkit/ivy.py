"""The Ivy that PySpark ships, as a process that brings jars from a Maven repository."""

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from parquet_sink.errors import SetupError

MAVEN_CENTRAL: Final = "Maven Central"
"""Stands for the public repository, whose address Ivy knows."""
SILENCE_LIMIT_S: Final = 90.0


@dataclass(frozen=True)
class Jar:
    """One jar: Maven coordinates, size in bytes, SHA-256 in hexadecimal."""

    organisation: str
    module: str
    revision: str
    size_bytes: int = 0
    sha256: str = ""

    @property
    def name(self) -> str:
        return f"{self.module}-{self.revision}.jar"


def run_ivy(
    java: str,
    work: Path,
    jars: Sequence[Jar],
    address: str,
    *,
    transitive: bool = False,
    pattern: str = "jars/[artifact]-[revision].[ext]",
    on_line: Callable[[str], None] = lambda line: None,
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Let Ivy bring `jars` (and all they need, if `transitive`) below the folder `work`.

    Raises SetupError when the repository does not deliver, or says nothing for 90 s.
    """
    (work / "ivysettings.xml").write_text(settings_xml(address, transitive))
    (work / "ivy.xml").write_text(module_xml(jars, transitive))
    command = [java, "-XX:TieredStopAtLevel=1", f"-Divy.default.ivy.user.dir={work}", *proxy_flags(environment)]
    command += ["-jar", str(ivy_jar()), "-settings", "ivysettings.xml", "-ivy", "ivy.xml", "-cache", "cache"]
    command += ["-confs", "default", "-retrieve", pattern]
    output: list[str] = []
    with subprocess.Popen(
        command, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        silent = _read_until_silent(process, output, on_line)
    if silent or process.returncode != 0:
        cause = f"no answer for {SILENCE_LIMIT_S:.0f} s" if silent else _cause(output)
        raise SetupError(f"Kafka's jars could not be fetched from {address}: {cause}. {repository_cure()}")


def _read_until_silent(process: subprocess.Popen[str], output: list[str], on_line: Callable[[str], None]) -> bool:
    """Read all output. True when the process was ended because it had said nothing for too long."""
    assert process.stdout is not None
    ended_by_us = threading.Event()

    def give_up() -> None:
        ended_by_us.set()
        process.kill()

    try:
        timer = threading.Timer(SILENCE_LIMIT_S, give_up)
        timer.start()
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(SILENCE_LIMIT_S, give_up)
            timer.start()
            output.append(line.rstrip())
            on_line(line)
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
    return ended_by_us.is_set()


def _cause(output: Sequence[str]) -> str:
    """The line of Ivy's report that says most about a failure."""
    for sign in ("Server access error", "not found", "FAILED", "Exception", "Error"):
        for line in output:
            if sign in line:
                return line.strip(" \t:")
    return "Ivy gave no reason"


def repository_cure() -> str:
    """What to do when a repository does not deliver, as the end of a message."""
    return (
        "Check that this machine reaches the address; behind a proxy set https_proxy (http://host:port); where Maven "
        "Central is not allowed, name a mirror in PARQUET_SINK_MAVEN_REPOSITORY."
    )


def ivy_jar() -> Path:
    """The Ivy among PySpark's jars. Raises SetupError when PySpark is not whole."""
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).glob("jars/ivy-*.jar"))
    if not found:
        raise SetupError("PySpark's jars/ivy-*.jar was not found. Install the package again: pip install pyspark.")
    return found[-1]


def settings_xml(address: str, transitive: bool) -> str:
    """Ivy's settings. Without dependencies to resolve, no POM and no weak checksum is asked for."""
    light = "" if transitive else ' usepoms="false" checksums=""'
    root = "" if address == MAVEN_CENTRAL else f" root={quoteattr(address)}"
    return (
        '<ivysettings><settings defaultResolver="maven"/><timeout-constraints>'
        '<timeout-constraint name="patience" connectionTimeout="15000" readTimeout="60000"/></timeout-constraints>'
        f'<resolvers><ibiblio name="maven" m2compatible="true" timeoutConstraint="patience"{light}'
        f"{root}/></resolvers></ivysettings>\n"
    )


def module_xml(jars: Sequence[Jar], transitive: bool) -> str:
    """Ivy's module file: depends on each of `jars`."""
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.module)} rev={quoteattr(jar.revision)} "
        f'conf="default->default" transitive="{str(transitive).lower()}"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="parquet-sink" module="kafka"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies>'
        "</ivy-module>\n"
    )


def proxy_flags(environment: Mapping[str, str]) -> list[str]:
    """Java's flags for the proxy variables of the environment, which Java itself does not read."""
    flags = []
    for scheme in ("http", "https"):
        value = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme}_proxy".upper())
        parts = urlsplit(value if not value or "//" in value else f"//{value}")
        if isinstance(parts.hostname, str):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            flags += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={port}"]
    if direct := environment.get("no_proxy") or environment.get("NO_PROXY"):
        hosts = [host.strip() for host in direct.split(",") if host.strip()]
        flags.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{host}" if host.startswith(".") else host for host in hosts))
    return flags
