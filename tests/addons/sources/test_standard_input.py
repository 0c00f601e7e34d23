"""Standard input, copied to a file that other processes read."""

import os
from pathlib import Path

import pytest

from parquet_sink.addons.sources.flow.flow import StandardInput
from parquet_sink.errors import SourceFailed
from tests.messages import saying


def test_what_comes_is_in_the_file(tmp_path: Path) -> None:
    """All that was written until the end is copied, to a file of this user alone."""
    out, into = os.pipe()
    spool = tmp_path / "spool"
    spool.write_bytes(b"of an earlier run")
    copied = StandardInput(str(spool), "one", out)
    copied.start()
    os.write(into, b"a\n" * 5000)
    os.close(into)
    copied.wait()
    copied.close()
    os.close(out)
    assert spool.read_bytes() == b"a\n" * 5000


def test_one_connector_reads_it(tmp_path: Path) -> None:
    """A second one is refused by both names, until the first has ended."""
    out, into = os.pipe()
    first, second = (StandardInput(str(tmp_path / name), name, out) for name in ("one", "two"))
    first.start()
    with pytest.raises(SourceFailed, match=saying("connector one", "two", "standard input", "[file]")):
        second.start()
    first.close()
    second.start()
    second.close()
    os.close(into)
    os.close(out)
