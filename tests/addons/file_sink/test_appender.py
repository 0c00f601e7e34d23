"""Whole lines at the end of a file, whatever dies in between."""

import errno
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

from parquet_sink.addons.file_sink import appender as module
from parquet_sink.addons.file_sink.appender import Appender, note_of
from parquet_sink.errors import RetryLater, StorageFailed
from tests.messages import saying


class Died(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where lines go; not there yet."""
    return tmp_path / "out.txt"


def append(file: Path, *lines: str) -> None:
    """By a process of its own, as far as the file can tell."""
    one = Appender(str(file))
    for line in lines:
        one.append(BytesIO(line.encode()))
    one.close()


def die_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The next write ends after so many bytes, and with it the process."""
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        write(descriptor, bytes(data)[:count])
        raise Died

    monkeypatch.setattr(module.os, "write", half)


def test_lines_are_added_at_the_end(file: Path) -> None:
    """A file that is there keeps what it has; nothing is noted any more in the end."""
    file.write_text("before\n")
    append(file, "one\ntwo\n", "three\n")
    assert file.read_text() == "before\none\ntwo\nthree\n"
    assert Path(note_of(str(file))).read_bytes() == b""


@pytest.mark.parametrize("written", [0, 2, 4, 5, 8])
def test_lines_of_a_writer_that_died_are_cut(file: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """Wherever in its lines it died: they come again, and no half of one stays."""
    append(file, "kept\n")
    dying = Appender(str(file))
    with monkeypatch.context() as patch:
        die_after(patch, written)
        with pytest.raises(Died):
            dying.append(BytesIO(b"one\ntwo\n"))
    dying.close()
    append(file, "one\ntwo\n")
    assert file.read_text() == "kept\none\ntwo\n"


def test_what_others_wrote_is_not_cut(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without an end gets one; what stands behind the lines of a dead writer stays, and so do those."""
    file.write_text("by hand")
    append(file, "one\n")
    assert file.read_text() == "by hand\none\n"
    dying = Appender(str(file))
    with monkeypatch.context() as patch:
        die_after(patch, 2)
        with pytest.raises(Died):
            dying.append(BytesIO(b"two\n"))
    dying.close()
    with file.open("a") as other:
        other.write("and much more by hand\n")
    append(file, "two\n")
    assert file.read_text().splitlines() == ["by hand", "one", "twand much more by hand", "two"]


def test_a_rotated_file_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note about another file of the name is none about this one."""
    dying = Appender(str(file))
    with monkeypatch.context() as patch:
        die_after(patch, 2)
        with pytest.raises(Died):
            dying.append(BytesIO(b"one\n"))
    dying.close()
    file.rename(file.with_suffix(".1"))
    file.write_text("new\n")
    append(file, "one\n")
    assert file.read_text() == "new\none\n"


def test_a_full_disk_leaves_no_half_of_a_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What did fit is taken back, and waiting may help."""
    append(file, "kept\n")
    one, write = Appender(str(file)), os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) < 8:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, bytes(data)[:3])

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "write", full)
        with pytest.raises(RetryLater, match=saying("out.txt", "No space left", "still in Kafka")):
            one.append(BytesIO(b"one\ntwo\n"))
    one.append(BytesIO(b"one\ntwo\n"))
    one.close()
    assert file.read_text() == "kept\none\ntwo\n"


def test_what_cannot_pass_is_told_with_its_cure(tmp_path: Path) -> None:
    """A folder in place of the file; one that is missing may come back."""
    with pytest.raises(StorageFailed, match=saying(str(tmp_path), "(file)", "Is a directory", "Check file")):
        Appender(str(tmp_path))
    with pytest.raises(RetryLater, match=saying("out.txt", "(file)", "No such file", "keep others out")):
        Appender(str(tmp_path / "none" / "out.txt"))


def test_a_pipe_takes_lines(tmp_path: Path) -> None:
    """Such as standard output: nothing is noted, cut or synced."""
    read, write = os.pipe()
    one = Appender(f"/proc/self/fd/{write}", noted=False)
    one.append(BytesIO(b"one\n"))
    one.close()
    assert os.read(read, 10) == b"one\n"
    os.close(read)
    os.close(write)


def test_processes_side_by_side_mix_no_lines(file: Path) -> None:
    """Long lines of four processes come out whole, each once."""
    program = (
        "import sys; from io import BytesIO; from parquet_sink.addons.file_sink.appender import Appender\n"
        "one = Appender(sys.argv[1])\n"
        "for n in range(20): one.append(BytesIO((f'{sys.argv[2]}-{n}-' + sys.argv[2] * 20_000 + '\\n').encode()))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(file), name]) for name in "abcd"]
    assert [one.wait(60) for one in writers] == [0] * 4
    expected = {f"{name}-{n}-{name * 20_000}" for name in "abcd" for n in range(20)}
    lines = file.read_text().splitlines()
    assert (set(lines), len(lines)) == (expected, len(expected))
