"""One attempt at a time owns a topic-partition; whether a lock is held is seen without touching it."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.errors import StorageFailed
from parquet_sink.files.lock import PartitionClaim, is_locked
from tests.messages import saying

ONE, OTHER, THIRD = ("a" * 32, "b" * 32, "c" * 32)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Of a lock file whose folder is not there yet."""
    return str(tmp_path / "claims" / "orders-0")


def test_the_next_attempt_waits_for_the_one_before(path: str) -> None:
    """The newer claim ends the older one, and is granted once that has let go; both files are one."""
    older, newer = PartitionClaim(path, ONE), PartitionClaim(path, OTHER, sleep=lambda seconds: older.release())
    assert older.acquire()
    assert not older.superseded()
    assert newer.acquire()
    assert older.superseded()
    assert not newer.superseded()


def test_patience_ends(path: str) -> None:
    """An attempt that does not end in time keeps the topic-partition, but knows that it is not wanted any more."""
    clock = [0.0]
    older = PartitionClaim(path, ONE)
    newer = PartitionClaim(path, OTHER, monotonic=lambda: clock[0], sleep=lambda s: clock.__setitem__(0, clock[0] + s))
    assert older.acquire()
    assert not newer.acquire(patience_s=2.0)
    assert 2.0 <= clock[0] < 2.2
    assert older.superseded()
    assert newer.superseded()


def test_of_two_that_wait_the_newest_wins(path: str) -> None:
    """An attempt that finds a newer one than itself does not take the topic-partition."""
    older, newest = PartitionClaim(path, ONE), PartitionClaim(path, THIRD)
    assert older.acquire()

    def overtaken(seconds: float) -> None:
        older.release()
        assert newest.acquire()

    assert not PartitionClaim(path, OTHER, sleep=overtaken).acquire()
    assert not newest.superseded()


def test_a_killed_process_lets_go(path: str) -> None:
    """The operating system releases the claim of a process that dies, however it dies."""
    program = (
        "import sys, time; from parquet_sink.files.lock import PartitionClaim; "
        "claim = PartitionClaim(sys.argv[1], 'a' * 32); print(claim.acquire(), flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "True\n"
        assert not PartitionClaim(path, OTHER).acquire(patience_s=0.0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert PartitionClaim(path, THIRD).acquire()


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Trouble with the disk has its own error, with folder and cure."""
    (tmp_path / "claims").write_bytes(b"a file where the folder should be")
    with pytest.raises(StorageFailed, match=saying("claim a topic-partition", "connect.ems.tmp.dir")):
        PartitionClaim(str(tmp_path / "claims" / "orders-0"), ONE).acquire()


def test_a_claim_whose_file_was_removed_is_seen_by_the_next(path: str) -> None:
    """The attempt makes it again, so that a newer one finds it there, ends it, and waits for it."""
    older = PartitionClaim(path, ONE)
    assert older.acquire()
    os.unlink(path)
    assert not older.superseded()
    newer = PartitionClaim(path, OTHER, sleep=lambda seconds: older.release())
    assert not newer.acquire(patience_s=0.0)
    assert older.superseded()
    assert newer.acquire()


def test_a_newer_attempt_that_found_no_file_has_won(path: str) -> None:
    """Whoever was there before sends nothing more, whether the newer one has ended or not."""
    for ended in (False, True):
        older, newer = PartitionClaim(path, ONE), PartitionClaim(path, OTHER)
        assert older.acquire()
        os.unlink(path)
        assert newer.acquire()
        if ended:
            newer.release()
        assert older.superseded()
        older.release()
        newer.release()


def test_a_folder_that_is_gone_is_made_again_by_whoever_holds_it(path: str) -> None:
    """A cleaner of temporary files gives nobody a second claim."""
    older = PartitionClaim(path, ONE)
    assert older.acquire()
    shutil.rmtree(os.path.dirname(path))
    assert not older.superseded()
    assert not PartitionClaim(path, OTHER).acquire(patience_s=0.0)
    assert older.superseded()


def test_a_disk_without_locks_is_told(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that cannot be locked is none."""

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(StorageFailed, match=saying("No locks available", "connect.ems.tmp.dir")):
        PartitionClaim(path, ONE).acquire()


def test_a_lock_is_seen_while_it_is_held(tmp_path: Path) -> None:
    """And not before, nor after; a lock on another file is none."""
    path, other = tmp_path / "lock", tmp_path / "other"
    assert not is_locked(str(path))
    other.touch()
    with path.open("w") as file:
        assert not is_locked(str(path))
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_locked(str(path))
        assert not is_locked(str(other))
    assert not is_locked(str(path))


def test_a_list_that_leaves_a_lock_out_is_read_again(tmp_path: Path) -> None:
    """Linux's does, now and then, while other locks come and go."""
    (tmp_path / "lock").touch()
    inode = (tmp_path / "lock").stat().st_ino

    class Locks:
        """Every other time it is whole."""

        reads = 0

        def read_text(self, **_: str) -> str:
            self.reads += 1
            return "" if self.reads % 2 else f"1: FLOCK  ADVISORY  WRITE 12 00:1b:{inode} 0 EOF\n"

    assert all(is_locked(str(tmp_path / "lock"), Locks()) for _ in range(5))  # type: ignore[arg-type]


def test_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    """Nothing is known, so nothing is said."""
    (tmp_path / "lock").touch()
    assert not is_locked(str(tmp_path / "lock"), tmp_path / "absent")


def test_one_that_waits_does_not_hold(tmp_path: Path) -> None:
    """Lines of processes that wait for a lock are not those of its holder."""
    (tmp_path / "lock").touch()
    inode = (tmp_path / "lock").stat().st_ino
    locks = tmp_path / "locks"
    locks.write_text(
        f"1: -> FLOCK  ADVISORY  WRITE 12 00:1b:{inode} 0 EOF\n2: POSIX  ADVISORY  WRITE 1 0:1:{inode} 0 9\n"
    )
    assert not is_locked(str(tmp_path / "lock"), locks)
    locks.write_text(f"1: FLOCK  ADVISORY  WRITE 12 00:1b:{inode} 0 EOF\n")
    assert is_locked(str(tmp_path / "lock"), locks)
