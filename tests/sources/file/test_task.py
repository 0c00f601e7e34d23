"""The file source's task on real files: growth, rotation, truncation, replacement."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.errors import SourceFailed
from parquet_sink.sources.file.task import FileTask
from parquet_sink.sources.task import Memory, Place, Reached

NEVER = 1 << 20


class Follower:
    """Runs a task again and again, as micro-batches do: each begins from what the one before reached."""

    def __init__(self, path: Path, batch: int = 2, longest: int = NEVER) -> None:
        self.settings = {"file": str(path), "topic": "t", "batch.size": str(batch), "longest.line": str(longest)}
        self.place: Place | None = None
        self.memory: Memory = {}

    def _reached(self) -> Reached:
        partition = {"filename": self.settings["file"]}
        return Reached([] if self.place is None else [(partition, self.place)], self.memory)

    def run(self) -> list[object]:
        """The values of one micro-batch."""
        task, found = FileTask(), []
        task.start(self.settings, self._reached())
        while records := task.poll():
            found += [one.value for one in records]
            self.place = records[-1].source_offset
        self.memory = task.remember()
        task.stop()
        return found

    def look(self) -> object:
        """What the driver sees."""
        task = FileTask()
        task.start(self.settings, self._reached())
        return task.look()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file that is followed; not there yet."""
    return tmp_path / "log.txt"


def add(path: Path, data: bytes) -> None:
    """Appends to a file, as a program does that logs."""
    with path.open("ab") as file:
        file.write(data)


def test_a_record_is_connects(path: Path) -> None:
    """A line is a text with a schema, no key, and the time; its place is in bytes, under Kafka Connect's names."""
    path.write_bytes("ä\nb\n".encode())
    task = FileTask(clock=lambda: 1.5)
    task.start(Follower(path).settings, Reached())
    first, second = task.poll()
    task.stop()
    assert (first.topic, first.value, str(first.value_type), first.key, first.key_type) == (
        "t",
        "ä",
        "string",
        None,
        None,
    )
    assert (first.timestamp_ms, first.partition) == (1500, None)
    assert (first.source_partition, first.source_offset) == ({"filename": str(path)}, {"position": 3})
    assert second.source_offset == {"position": 5}


def test_a_missing_file_is_waited_for(path: Path) -> None:
    """A file that is not there gives nothing; once it is there all of it is read, and what is added later."""
    follower = Follower(path)
    assert follower.run() == []
    add(path, b"a\nb\nc\nhalf")
    assert follower.run() == ["a", "b", "c"]
    add(path, b" line\r\n")
    assert follower.run() == ["half line"]
    assert follower.run() == []
    assert follower.place == {"position": path.stat().st_size}


def test_a_renamed_file_is_read_to_its_end_first(path: Path) -> None:
    """After a rotation the rest of the old file comes first, its unterminated last line, too; then the new one."""
    follower = Follower(path)
    add(path, b"a\n")
    assert follower.run() == ["a"]
    add(path, b"b\nlast")
    path.rename(path.with_suffix(".txt.1"))
    assert follower.run() == ["b"]  # as long as there is no new one, somebody may go on writing
    path.touch()
    add(path.with_suffix(".txt.1"), b" words")
    assert follower.run() == []
    add(path, b"new\n")
    assert follower.run() == ["last words", "new"]
    assert follower.place == {"position": 4}


def test_an_old_file_that_is_gone_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that was replaced by another is read from its beginning, with a warning about what may be lost."""
    follower = Follower(path)
    add(path, b"a\nb\n")
    assert follower.run() == ["a", "b"]
    other = path.with_name("other")
    other.write_bytes(b"x\ny\nz\n")
    os.replace(other, path)
    with caplog.at_level(logging.WARNING):
        assert follower.run() == ["x", "y", "z"]
    assert "what was not read of that is lost" in caplog.text


def test_a_copy_of_the_file_is_the_same(path: Path) -> None:
    """A file that was put back, or saved by an editor, with more at its end goes on where it was."""
    follower = Follower(path)
    add(path, b"a\nb\n" * 2000)
    assert len(follower.run()) == 4000
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + b"c\n")
    os.replace(other, path)
    assert follower.run() == ["c"]


@pytest.mark.parametrize("content", [b"x\n", b"x\ny\nz\nlonger than before\n"])
def test_a_truncated_file_begins_anew(path: Path, content: bytes) -> None:
    """A file that was emptied and written again is read from its beginning, however long it is by now."""
    follower = Follower(path)
    add(path, b"a\nb\n")
    assert follower.run() == ["a", "b"]
    path.write_bytes(content)
    assert follower.run() == content.decode().splitlines()


def test_a_file_that_is_emptied_while_it_is_read(path: Path) -> None:
    """Within one micro-batch, too, what comes after a truncation is read."""
    add(path, b"a\nb\n")
    task = FileTask()
    task.start(Follower(path).settings, Reached())
    assert [one.value for one in task.poll()] == ["a", "b"]
    path.write_bytes(b"c\n")
    assert [(one.value, one.source_offset) for one in task.poll()] == [("c", {"position": 2})]
    task.stop()


def test_without_memory_the_position_counts(path: Path) -> None:
    """When all that is known is the position, the file of that name is taken for the same, unless it is shorter."""
    follower = Follower(path)
    add(path, b"a\nb\nc\n")
    follower.place = {"position": 2}
    assert follower.run() == ["b", "c"]
    follower.place, follower.memory = {"position": 99}, {}
    assert follower.run() == ["a", "b", "c"]


@pytest.mark.parametrize("size", [100, 3 << 20])
def test_a_line_that_is_too_long_is_told_before_it_is_sent(path: Path, size: int) -> None:
    """A line without an end, longer than a request may be, names key and cure, and does not fill the memory."""
    add(path, b"a\n" + b"x" * size)
    follower = Follower(path, longest=1000)
    if size == 100:
        assert follower.run() == ["a"]
    else:
        with pytest.raises(SourceFailed, match=r"position 2 has .* \[producer\.override\.max\.request\.size\]"):
            follower.run()
        assert follower.place == {"position": 2}


def test_a_folder_is_no_file(path: Path) -> None:
    """A folder under the name is an error that names the key."""
    path.mkdir()
    with pytest.raises(SourceFailed, match=r"Invalid \[file\]\. .* is a folder"):
        Follower(path).run()


@pytest.mark.parametrize("position", ["12", -1, True, 1.5])
def test_a_position_that_is_none_is_told(path: Path, position: str | float) -> None:
    """A stored position of another form is an error, and not the beginning of the file."""
    follower = Follower(path)
    follower.place = {"position": position}
    with pytest.raises(SourceFailed, match="no number of bytes"):
        follower.run()


def test_a_look_tells_news(path: Path) -> None:
    """What the driver sees changes when the file comes, grows, or is rotated, and is the same otherwise."""
    follower = Follower(path)
    seen = [follower.look(), follower.look()]
    assert seen[0] == seen[1]
    add(path, b"a\n")
    seen.append(follower.look())
    follower.run()
    assert follower.look() == seen[-1]
    add(path, b"b")
    seen.append(follower.look())
    path.rename(path.with_suffix(".1"))
    seen.append(follower.look())
    add(path, b"new\n")
    seen.append(follower.look())
    assert len(set(seen)) == 5


def test_memory_is_plain() -> None:
    """A task that read nothing remembers nothing."""
    memory: Mapping[str, object] = FileTask().remember()
    assert memory == {}
