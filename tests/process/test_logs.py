"""What is told of libraries, and what is not."""

import io
import json
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from urllib3.connection import HTTPConnection

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process import logs
from parquet_sink.process.logs import JsonLines, TextLines, about, concerning, connector_of, json_line
from tests.messages import assert_says


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The loggers of this process, as they were before the test; within, none that a task left marks its lines."""
    found = {name: logging.getLogger(name) for name in ("root", "py4j", *logs.CHATTY)}
    levels, handlers = {name: one.level for name, one in found.items()}, logging.getLogger().handlers[:]
    logging.getLogger().handlers[:] = [one for one in handlers if not isinstance(one, logs._Marked)]
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    logging.captureWarnings(False)
    for name, one in found.items():
        one.setLevel(levels[name])
    logging.getLogger().handlers[:] = handlers


@pytest.mark.parametrize("configure", [logs.configure_program, logs.configure_worker])
def test_requests_are_not_told(
    configure: Callable[[], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A schema that is fetched is no news in either kind of process; trouble of a library is."""
    monkeypatch.setenv(logs.VARIABLE, "1")
    caplog.set_level(logging.DEBUG)
    configure()
    for name in ("urllib3", "urllib3.connectionpool", "pyspark"):
        logging.getLogger(name).info("HTTP Request: GET http://registry/schemas/ids/1")
        logging.getLogger(name).warning("trouble in %s", name)
    assert [message.split()[0] for message in caplog.messages] == ["trouble"] * 3


@pytest.mark.parametrize("configure", [logs.configure_program, logs.configure_worker])
def test_connections_that_are_not_kept_are_not_told(
    configure: Callable[[], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Uploads side by side have more for a moment than `connect.ems.pool.max.idle` keeps: that is no trouble."""
    monkeypatch.setenv(logs.VARIABLE, "1")
    configure()
    pool = urllib3.HTTPConnectionPool("localhost", maxsize=1)
    for _ in range(2):
        pool._put_conn(HTTPConnection("localhost"))
    assert caplog.messages == []


TRACE = """spark: ERROR Executor: Exception in task 0.0
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_traces_of_java_and_python_are_for_debug(level: int, caplog: pytest.LogCaptureFixture) -> None:
    """At INFO none of their lines comes; at DEBUG all do, each with its prefix, and once."""
    caplog.set_level(level)
    logs.relay(io.BytesIO(TRACE.encode())).join(10)
    expected = [] if level == logging.INFO else TRACE.splitlines()
    assert caplog.messages == [f"spark: {line.removeprefix('spark: ')}" for line in expected]
    assert all(record.levelno == logging.DEBUG for record in caplog.records)


def test_a_worker_s_message_keeps_its_level_on_every_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A message of several lines crosses whole: none of them is taken for Spark's."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv(logs.VARIABLE, "1")
    logs.configure_worker("sink")
    logging.getLogger("parquet_sink.task").warning("one\ntwo %s", "three")
    logging.getLogger().handlers[:] = [h for h in logging.getLogger().handlers if type(h).__name__ != "_Marked"]
    caplog.clear()
    logs.relay(io.BytesIO(written.getvalue().encode())).join(10)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "connector sink: one"),
        ("WARNING", "two three"),
    ]


@pytest.mark.parametrize(
    "message", ["registry https://r: no answer", "connector orders: registry https://r: no answer"]
)
def test_lines_of_a_worker_name_the_connector(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever writes them need not know it; a line that names it itself is left as it is."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv(logs.VARIABLE, "1")
    monkeypatch.setattr(logs._Marked, "connector", "")
    logs.configure_worker("items")
    logs.configure_worker("orders")
    logging.getLogger("parquet_sink.convert").warning("%s", message)
    words = "connector orders: registry https://r: no answer"
    assert written.getvalue() == f"\x1eWARNING\x1eparquet_sink.convert\x1eorders\x1e{words}\n"


def test_a_worker_s_line_is_logged_as_it_was_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the same logger, at the same level, and with the connector, whatever its name holds."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv(logs.VARIABLE, "1")
    monkeypatch.setattr(logs._Marked, "connector", "")
    logs.configure_worker("a \x1e b\nc")
    logging.getLogger("parquet_sink.convert").error("no %s", "answer")
    logging.getLogger().handlers[:] = [h for h in logging.getLogger().handlers if type(h).__name__ != "_Marked"]
    caplog.clear()
    logs.relay(io.BytesIO(written.getvalue().encode())).join(10)
    assert {(one.name, one.levelname, connector_of(one)) for one in caplog.records} == {
        ("parquet_sink.convert", "ERROR", "a   b\nc")
    }


@pytest.mark.parametrize("written_as", ["text", "json"])
def test_lines_of_the_program(written_as: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text each line of a worker's message has its time and level; as JSON they are one object."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv(logs.LEVEL_VARIABLE, "INFO")
    logging.getLogger().handlers[:] = []
    logs.configure_program(written_as)
    logging.getLogger("parquet_sink").info("connector %s: %s", "o r", "running")
    logs._log("\x1eWARNING\x1eparquet_sink.x\x1eo r\x1econnector o r: one\x1dtwo")
    lines = written.getvalue().splitlines()
    if written_as == "text":
        assert [line.split(" ", 2)[2] for line in lines] == [
            "INFO connector o r: running", "WARNING connector o r: one", "WARNING two",
        ]  # fmt: skip
        return
    found = [json.loads(line) for line in lines]
    assert [(one["level"], one["connector"], one["message"], one["logger"]) for one in found] == [
        ("INFO", "o r", "connector o r: running", "parquet_sink"),
        ("WARNING", "o r", "connector o r: one\ntwo", "parquet_sink.x"),
    ]


def test_a_format_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable's name; the option wins over it."""
    monkeypatch.setenv(logs.FORMAT_VARIABLE, "yaml")
    with pytest.raises(InvalidConfiguration) as caught:
        logs.log_format()
    (problem,) = caught.value.problems
    assert_says(problem, "[PARQUET_SINK_LOG_FORMAT]", "'yaml'", "not a format", "text, json")
    assert logs.log_format("json") == "json"
    monkeypatch.setenv(logs.FORMAT_VARIABLE, "JSON")
    assert logs.log_format() == "json"
    monkeypatch.setenv(logs.FORMAT_VARIABLE, "")
    assert logs.log_format() == "text"


PROGRAM = """
import threading, warnings
from parquet_sink.process import logs

class Torn:
    def __del__(self):
        raise ValueError("torn")

logs.configure_program("json")
warnings.warn("old", DeprecationWarning, stacklevel=1)
thread = threading.Thread(target=lambda: 1 / 0, name="worker 1")
thread.start()
thread.join()
Torn()
raise RuntimeError("two\\nlines")
"""


def test_what_nobody_foresaw_is_a_line() -> None:
    """A warning of a library, a thread's end, an error in a destructor, the program's end: an object each."""
    words = [sys.executable, "-W", "default", "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    warned, thread, torn, end = map(json.loads, done.stderr.splitlines())
    assert done.returncode == 1
    assert (warned["level"], "DeprecationWarning: old" in warned["message"]) == ("WARNING", True)
    assert_says(thread["message"], "thread worker 1", "ended", "ZeroDivisionError: division by zero")
    assert_says(torn["message"], "ignored", "ValueError: torn")
    assert_says(end["message"], "program ends", "RuntimeError: two\nlines")
    assert {one["level"] for one in (thread, torn, end)} == {"ERROR"}
    assert [one["trace"].splitlines()[-1] for one in (thread, torn)] == [
        "ZeroDivisionError: division by zero",
        "ValueError: torn",
    ]


def record(words: str, *args: object, level: int = logging.INFO, **more: Any) -> logging.LogRecord:
    """As a logging call makes it."""
    return logging.getLogger("parquet_sink.x").makeRecord(
        "parquet_sink.x", level, __file__, 1, words, args, more.pop("exc_info", None), extra=more.pop("extra", None)
    )


def read(one: logging.LogRecord) -> dict[str, Any]:
    """What a program reads of it: one line, one object."""
    line = JsonLines().format(one)
    assert "\n" not in line
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def test_a_line_is_an_object_with_what_it_is_about() -> None:
    """Time in UTC, level, logger, message, and the fields that were given with it."""
    one = record("accepted %s", "f.parquet", extra=about(connector="orders", event="FileAccepted", rows=7))
    one.created = 1_767_225_600.1239
    assert read(one) == {
        "time": "2026-01-01T00:00:00.123Z",
        "level": "INFO",
        "logger": "parquet_sink.x",
        "message": "accepted f.parquet",
        "connector": "orders",
        "event": "FileAccepted",
        "rows": 7,
    }
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} INFO accepted f.parquet", TextLines().format(one))


@pytest.mark.parametrize(
    ("one", "connector"),
    [
        (record("connector %s: %s", "a: b", "c"), "a: b"),
        (record("connector %s failed: %s", "orders", "no"), "orders"),
        (record("%s", "connector orders: x", extra=about(connector="orders")), "orders"),
        (record("connector %s: x", "one", extra=about(connector="other")), "other"),
        (record("connector %s"), None),
        (record("%s of a connector", "x"), None),
        (record("nothing"), None),
    ],
)
def test_the_connector_is_known_where_a_line_names_it(one: logging.LogRecord, connector: str | None) -> None:
    """By what it was called with, not by reading words: names may hold anything."""
    assert connector_of(one) == connector
    assert read(one).get("connector") == connector


@pytest.mark.parametrize("words", ['say "hi"', "two\nlines", "\udcff", "日本 \u2028", "\x1b[31m", "back\\slash"])
def test_whatever_is_said_is_one_line(words: str) -> None:
    """Quotes, ends of lines, what is no Unicode: a reader gets back what was said."""
    found = read(record("%s", words, extra=about(topic=words)))
    assert (found["message"], found["topic"]) == (words, words)
    assert JsonLines().format(record("%s", words)).isascii()


def test_a_trace_is_a_field() -> None:
    """And what is not JSON is written as its text."""
    try:
        int("why")
    except ValueError:
        found = read(record("it failed", level=logging.ERROR, exc_info=sys.exc_info(), extra=about(what={1})))
    assert found["trace"].startswith("Traceback (most recent call last):\n")
    assert found["trace"].endswith("with base 10: 'why'")
    assert (found["level"], found["what"]) == ("ERROR", "{1}")


def test_fields_take_nothing_away() -> None:
    """A field that is called like one of the line's own does not hide it."""
    found = read(record("said", extra=about(message="hidden", level="no", time=1)))
    assert (found["message"], found["level"]) == ("said", "INFO")
    assert json.loads(json_line("WARNING", "stopping"))["message"] == "stopping"


def test_lines_of_libraries_concern_whom_their_caller_names() -> None:
    """Within, and not after; a line that names another connector is about that one."""
    line, other = record("Kafka client: connection refused"), record("connector %s: x", "other")
    with concerning("orders"):
        assert (connector_of(line), connector_of(other)) == ("orders", "other")
    assert connector_of(line) is None
