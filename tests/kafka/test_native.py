"""Whether records are read in C: what is looked at, and what is said."""

import logging
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import parquet_sink
from parquet_sink.kafka import native
from parquet_sink.kafka.native_batches import NativeQueue

PACKAGE = Path(parquet_sink.__file__).parent
SOURCES = (
    "kafka/native_reader.c",
    "convert/json/native_json.c",
    "addons/formats/protobuf/native_protobuf.c",
)


def test_a_variable_turns_it_off() -> None:
    """PARQUET_SINK_NATIVE=0, which all unit tests have, is a reason of its own, and is looked at each time."""
    assert not native.is_used()
    assert "PARQUET_SINK_NATIVE=0" in native.why_not()


def test_without_a_compiler_confluent_kafka_reads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was not built is named with the cure, at DEBUG once."""
    monkeypatch.delenv("PARQUET_SINK_NATIVE")
    monkeypatch.setattr(native, "EXTENSION", "parquet_sink.kafka._of_no_build")
    native._is_fit.cache_clear()
    with caplog.at_level(logging.DEBUG):
        assert (native.is_used(), native.is_used()) == (False, False)
    native._is_fit.cache_clear()
    (line,) = [one.getMessage() for one in caplog.records]
    assert "install a C compiler" in line


@pytest.mark.skipif(bool(native.not_built(native.EXTENSION)), reason="not built")
def test_what_was_built_before_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of an editable installation, of which Python's part alone is new; the cure is named."""
    monkeypatch.delenv("PARQUET_SINK_NATIVE")
    monkeypatch.setattr(native, "NEWEST", "not_there_yet")
    native._misfit.cache_clear()
    assert "install parquet-sink again" in native.why_not()
    native._misfit.cache_clear()


def test_no_other_object_is_read() -> None:
    """What is no consumer of confluent-kafka is refused before its memory is looked at."""
    with pytest.raises(TypeError, match="confluent-kafka"):
        NativeQueue(object(), "orders", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", SOURCES)
def test_what_any_python_built_serves_every_python(source: str) -> None:
    """A length in a format (`y#`) would not: what Python 3.13 makes of it fails in 3.11 and 3.12."""
    assert not re.search(r'"[^" ]*[syz]#[^" ]*"', (PACKAGE / source).read_text())


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("source", SOURCES)
def test_the_compiler_has_no_warning(source: str) -> None:
    """Compiled strictly, for each thing that is more often wrong than right."""
    strict = ("-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-O2", "-fsyntax-only")
    include = sysconfig.get_paths()["include"]
    done = subprocess.run(
        ["cc", *strict, f"-I{include}", str(PACKAGE / source)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
