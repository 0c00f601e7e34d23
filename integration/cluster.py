"""A Spark standalone cluster on loopback: master and workers as processes, the package installed as pip leaves it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import pyspark

import parquet_sink
from integration import processes
from integration.processes import Process

START_S: Final = 120.0
_MASTER: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
LIGHT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Options of Java for what lives a minute: half of a start's CPU without them is the optimising compiler's."""


def installed(folder: Path, *packages: Path) -> Path:
    """The Python of an environment that has the package as pip installs it, and our packages for everything else.

    packages: folders of further ones, installed as they are, with their entry points. `.ci/run` installs the built
    wheel with all it needs; here that would take longer than the test.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "others.pth").write_text(f"{Path(pyspark.__file__).parents[1]}\n")
    project, source = Path(parquet_sink.__file__).parents[1], folder / "project"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(project / name, source)
    shutil.copytree(project / "parquet_sink", source / "parquet_sink", ignore=shutil.ignore_patterns("__pycache__"))
    sources = [source, *(Path(shutil.copytree(one, folder / one.name)) for one in packages)]
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    pip += ["--no-compile", "--disable-pip-version-check"]  # modules that are imported are compiled then, once
    subprocess.run([*pip, "--target", str(site), *map(str, sources)], check=True, timeout=180)
    return folder / "bin" / "python"


class Cluster:
    """A master and workers with one core each. mark: in the environment of all processes, executors included."""

    def __init__(self, folder: Path, mark: str, workers: int = 2) -> None:
        self._folder, self._mark, self._workers = folder, mark, workers
        self._started: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        try:
            log = self._start("master.Master", "--port", "0")
            self.master = _said(log, _MASTER)[1]
            logs = [
                self._start(
                    "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(self._folder), self.master
                )
                for _ in range(self._workers)
            ]
            for log in logs:
                _said(log, re.compile("Successfully registered with master"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *trouble: object) -> None:
        for process in reversed(self._started):
            process.kill()
            process.wait()
        for one in processes.of_run(self._mark):
            processes.kill(one)

    def executors(self) -> list[Process]:
        """Java of the executors that live."""
        return [one for one in self.processes() if _EXECUTOR in one.command]

    def processes(self) -> list[Process]:
        """Master, workers, executors, and what those started."""
        return processes.of_run(self._mark)

    def _start(self, name: str, *arguments: str) -> Path:
        log = self._folder / f"{len(self._started)}-{name}.log"
        command = Path(pyspark.__file__).parent / "bin" / "spark-class"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    str(command),
                    f"org.apache.spark.deploy.{name}",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**without_python_path(), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m"}
                | {"SPARK_DAEMON_JAVA_OPTS": LIGHT, processes.MARK: self._mark},
                cwd=self._folder,
            )
        self._started.append(process)
        return log


def without_python_path() -> Mapping[str, str]:
    """Our environment for those that are to find the package where it is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _said(log: Path, words: re.Pattern[str]) -> re.Match[str]:
    deadline = time.monotonic() + START_S
    while (found := words.search(log.read_text(errors="replace"))) is None:
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2_000:]
        time.sleep(0.1)
    return found


@contextmanager
def running(python: Path, master: str, folder: Path, arguments: list[str], more: Mapping[str, str]) -> Iterator[Path]:
    """`parquet-sink run` on the cluster; yields its log. At the end it is stopped, and must end with status 0."""
    log = folder / f"run-{time.monotonic_ns()}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(python), "-m", "parquet_sink", "run", "--master", master, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**without_python_path(), **more},
            cwd=folder,
        )
    try:
        yield log
        process.terminate()
        status = process.wait(90)
        assert status == 0, log.read_text(errors="replace")[-3_000:]
    finally:
        process.kill()
        process.wait()
