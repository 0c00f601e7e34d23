"""What is told of libraries, and what is not."""

import io
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import urllib3
from urllib3.connection import HTTPConnection

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process import logs
from parquet_sink.process.log_format import connector_of


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
    assert caught.value.problems == (
        "Invalid [PARQUET_SINK_LOG_FORMAT]. 'yaml' is no format of log lines; use one of text, json",
    )
    assert logs.log_format("json") == "json"
    monkeypatch.setenv(logs.FORMAT_VARIABLE, "JSON")
    assert logs.log_format() == "json"
    monkeypatch.setenv(logs.FORMAT_VARIABLE, "")
    assert logs.log_format() == "text"
