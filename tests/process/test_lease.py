"""The lease of a worker: in a file that all of its processes look at."""

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.errors import StorageFailed
from parquet_sink.process.lease import LeaseFile, LeaseFolder, clock_ns, holds
from tests.messages import saying

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


def test_each_member_id_has_a_file_of_its_own(tmp_path: Path) -> None:
    """What an earlier stay began does not go on by the lease of the next; one that ended is gone."""
    files = LeaseFolder(tmp_path)
    files.write("parquet-sink|1|a/b|u-1", clock_ns() + MINUTE_NS)
    files.write("m-2", 0)
    assert holds(files.path("parquet-sink|1|a/b|u-1"))
    assert not holds(files.path("m-2"))
    files.write("parquet-sink|1|a/b|u-1", 0)
    assert list(tmp_path.iterdir()) == []


def test_a_lease_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The message names the file, the cause and the cure."""
    told = saying("lease", str(tmp_path / "gone"), "No such file or directory", "Make its folder")
    with pytest.raises(StorageFailed, match=told):
        LeaseFolder(tmp_path / "gone").write("m-1", 1)


def test_an_earlier_life_has_ended_when_nobody_holds_its_lock(tmp_path: Path) -> None:
    """Its leases are removed in any case; what ended is known only where a lease was left, and its program is gone."""
    folder = tmp_path / "leases"
    leases = LeaseFolder(folder)
    with leases.prepared() as ended:
        assert ended == frozenset()
        lease = folder / "lease-1"
        lease.touch()
        with leases.prepared() as beside:
            assert beside == frozenset()
        assert not lease.exists()
        lease.touch()
    with leases.prepared() as ended_by_now:
        assert ended_by_now == {str(lease)}
    assert not lease.exists()
