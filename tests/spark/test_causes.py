"""The failure at the bottom of what Spark says when a query ends."""

import sqlite3

import pytest

from parquet_sink.errors import BrokerAway, failure_named
from parquet_sink.spark import causes
from parquet_sink.spark.causes import LONGEST, failure_of
from tests.messages import assert_says

QUERY = "Writing job failed.\n=== Streaming Query ===\nIdentifier: orders [id = 1]\nLogical Plan:\nWrite parquet_sink\n"
TRACE = (
    "org.apache.spark.SparkException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data "
    'source perform commit: Traceback (most recent call last):\n  File "s/sink.py", line 89, in commit\n    note()\n'
    "    ^^^^^^\n{}\n SQLSTATE: 38000"
)


class Captured(Exception):
    """As PySpark gives what Java threw."""

    def __init__(self, text: str, cause: BaseException | None = None) -> None:
        super().__init__(text)
        self._cause = cause


def wrapped(bottom: str) -> Captured:
    """The layers of a real failure, with this text at the bottom."""
    return Captured(QUERY, Captured("org.apache.spark.SparkException: Writing job failed.", Captured(bottom)))


def test_python_error_at_the_bottom_is_the_cause() -> None:
    """Not the description of the query, and not the lines of the trace."""
    found = failure_of(wrapped(TRACE.format("ValueError: no such thing")), "/tmp")
    assert found == failure_named("Defect", "ValueError: no such thing")


def test_of_several_tracebacks_the_last_counts() -> None:
    """That is what was raised in the end."""
    trace = TRACE.format(
        "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\nRuntimeError: b'
    )
    assert failure_of(wrapped(trace), "/tmp").message == "RuntimeError: b"


def test_our_own_errors_are_known_by_their_class() -> None:
    """So that what may be cured is started again, and the operator reads our words alone."""
    words = "Group g: no answer.\nCheck the broker."
    trace = TRACE.format(f"parquet_sink.errors.BrokerAway: {words}")
    assert failure_of(wrapped(trace), "/tmp") == failure_named("BrokerAway", words)


def test_trouble_with_the_state_file_names_the_folder() -> None:
    """A full disk may be met there first."""
    found = failure_of(wrapped(TRACE.format("sqlite3.OperationalError: database or disk is full")), "/data/tmp")
    assert found.kind == "StorageFailed"
    assert_says(found.message, "/data/tmp", "connect.ems.tmp.dir", "database or disk is full")


def test_task_that_failed_for_good_is_told_by_its_python_error() -> None:
    """Spark's words about attempts and executors are left out, and so is Java's trace."""
    text = (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times: org.apache.spark.api.python."
        'PythonException: Traceback (most recent call last):\n  File "w.py", line 1, in f\n    g()\nMemoryError\n\n'
        "\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)\n\nDriver stacktrace:\n\tat x"
    )
    assert failure_of(wrapped(text), "/tmp").message == "MemoryError"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (BrokerAway("Group g: no answer."), "BrokerAway", ("Group g: no answer.",)),
        (sqlite3.OperationalError("disk I/O error"), "StorageFailed", ("connect.ems.tmp.dir", "disk I/O error")),
        (OSError(28, "No space left", "/run/x"), "Defect", ("OSError", "No space left", "'/run/x'")),
    ],
)
def test_what_goes_wrong_in_the_program_itself_has_words(error: Exception, kind: str, words: tuple[str, ...]) -> None:
    """Our own errors keep their class; files and the state file are named."""
    found = failure_of(error, "/data/tmp")
    assert found.kind == kind
    assert_says(found.message, *words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SparkException: Job aborted\n\tat x.y(Z.java:1)\n  at q", "SparkException: Job aborted"),
        (QUERY, "Writing job failed."),
        ("", ""),
        ("word " * 1_000, ("word " * 1_000)[:LONGEST]),
    ],
)
def test_without_python_the_innermost_text_counts(text: str, expected: str) -> None:
    """Without its trace, and cut when long."""
    assert failure_of(Captured("outer", Captured(text)), "/tmp") == failure_named("Defect", expected)


CONTEXT = (
    "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
    ": org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] Insufficient driver "
    "memory: System memory 98172928 must be at least 471859200.\nPlease increase heap size. SQLSTATE: F0000\n"
    "\tat org.apache.spark.memory.UnifiedMemoryManager$.getMaxMemory(UnifiedMemoryManager.scala:478)\n"
)
SPARK_SAYS = (
    "[INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] Insufficient driver memory: System memory 98172928 must be at least "
    "471859200. Please increase heap size."
)


def test_an_error_of_java_s_is_one_line_without_its_trace() -> None:
    """What Spark says when it cannot start, without classes, without frames."""
    assert causes.message_of(Exception(CONTEXT)) == SPARK_SAYS


def test_a_master_that_does_not_answer_is_told_as_that() -> None:
    """Spark tells the reason to its log alone, and then that it has stopped, with a trace of Java's without `at`."""
    stopped = "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n\norg.apache"
    error = Exception(
        f"An error occurred while calling None.J.\n: java.lang.IllegalStateException: {stopped}.spark.J(1)"
    )
    assert_says(causes.message_of(error), "no master answered", "for a minute")


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ([], ""),
        (
            ["Invalid maximum heap size: -Xmxlots", "Error: Could not create the JVM."],
            "Invalid maximum heap size: -Xmxlots",
        ),
        (
            ["Error occurred during initialization of VM", "Too small maximum heap"],
            "Error occurred during initialization of VM: Too small maximum heap",
        ),
        (["one", "two"], "two"),
        (["Exception in thread main: no", "\tat a.Error(B.java:1)"], "Exception in thread main: no"),
    ],
)
def test_what_java_message_before_it_ended_is_the_line_that_tells_most(lines: list[str], line: str) -> None:
    """The first that speaks of an error, else the last one."""
    assert causes.java_message(lines) == line


def test_a_busy_machine_is_told_apart() -> None:
    """A Python process that Spark did not wait long enough for is no defect of the connector."""
    late = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    found = failure_of(wrapped(late), "/tmp")
    assert found.kind == "MachineBusy"
    assert "too busy" in found.message
