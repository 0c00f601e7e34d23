"""Kafka Connect's transforms in a Java process of their own: a case in, what became of its records out."""

import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from integration.transforms.cases import Case
from integration.transforms.jars import class_path
from parquet_sink.process.java_home import find_java

SOURCE: Final = Path(__file__).with_name("Driver.java")
_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xss2m", "-Duser.language=en")

Answer = dict[str, Any]


def compiler() -> str | None:
    """The `javac` beside the Java that is used, or of the PATH; None when there is none."""
    beside = Path(find_java()).resolve().with_name("javac")
    return str(beside) if beside.is_file() else shutil.which("javac")


class Kafka:
    """The Java process, which answers case by case."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked, self._answers = process.stdin, process.stdout

    def answers(self, cases: Iterable[Case]) -> list[Answer]:
        """What Kafka Connect makes of each. They are written by a thread, so that no pipe fills while none reads."""
        lines = [json.dumps(case.to_json()) for case in cases]
        writer = threading.Thread(target=self._write, args=(lines,))
        writer.start()
        found = [json.loads(self._answers.readline()) for _ in lines]
        writer.join()
        return found

    def _write(self, lines: list[str]) -> None:
        for line in lines:
            self._asked.write(line + "\n")
        self._asked.flush()


@contextmanager
def started(javac: str, *more: Path) -> Iterator[Kafka]:
    """Compiles the driver, and keeps it running. more: lock files of jars with other transforms."""
    path = class_path(*more)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([javac, "-proc:none", "-nowarn", "-d", folder, "-cp", path, str(SOURCE)], check=True)
        command = [find_java(), *_OPTIONS, "-cp", f"{folder}:{path}", "Driver"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        ) as process:
            try:
                yield Kafka(process)
            finally:
                process.kill()
