"""The lease of a worker: in a file that all of its processes look at."""

import struct
import subprocess
import sys
from pathlib import Path

from parquet_sink.process.lease import LeaseFile, clock_ns, holds

MINUTE_NS = 60_000_000_000


def test_a_lease_goes_on_until_it_says(tmp_path: Path) -> None:
    """It is held before its end and not after; who needs none always has one."""
    lease = LeaseFile(str(tmp_path / "lease"))
    assert not holds(lease.path)
    lease.write(until := clock_ns() + MINUTE_NS)
    assert (holds(lease.path), lease.until_ns()) == (True, until)
    lease.write(clock_ns() - 1)
    assert not holds(lease.path)
    assert holds(None)


def test_another_process_sees_it(tmp_path: Path) -> None:
    """By the same clock, which counts from the start of the machine."""
    lease = LeaseFile(str(tmp_path / "lease"))
    lease.write(clock_ns() + MINUTE_NS)
    program = "import sys; from parquet_sink.process.lease import holds; print(holds(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", program, lease.path], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_file_that_is_gone_or_torn_is_no_lease(tmp_path: Path) -> None:
    """Nor is a link in its place; one that somebody removed is made again at the next writing."""
    path = tmp_path / "lease"
    lease = LeaseFile(str(path))
    lease.write(clock_ns() + MINUTE_NS)
    path.unlink()
    assert (holds(lease.path), lease.until_ns()) == (False, 0)
    for torn in (b"", b"\xff" * 15, struct.pack("<QQ", 2**63, 5)):
        path.write_bytes(torn)
        assert (holds(lease.path), lease.until_ns()) == (False, 0)
    path.unlink()
    lease.write(clock_ns() + MINUTE_NS)
    assert holds(lease.path)
    elsewhere = path.rename(tmp_path / "elsewhere")
    path.symlink_to(elsewhere)
    assert not holds(lease.path)
