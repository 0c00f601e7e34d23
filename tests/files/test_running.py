"""Whether a lock file is held is seen from outside, without touching the lock."""

import fcntl
from pathlib import Path

from parquet_sink.files.lock import is_locked


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
