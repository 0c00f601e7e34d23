"""The file source's task on real files: growth, rotation, truncation, replacement."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.addons.sources.file.task import FileTask
from parquet_sink.addons.sources.task import Memory, Place, Reached
from parquet_sink.errors import SourceFailed
from tests.messages import assert_says, saying

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

    def fail_after(self, lines: int) -> list[object]:
        """The values of a poll of which the next one could not be sent."""
        task = FileTask()
        task.start(self.settings, self._reached())
        sent = task.poll()[:lines]
        self.place = sent[-1].source_offset
        assert self.place is not None
        self.memory = task.remember_at(sent[-1].source_partition, self.place)
        task.stop()
        return [one.value for one in sent]

    def look(self) -> object:
        """What the driver sees; what it notices is remembered."""
        task = FileTask()
        task.start(self.settings, self._reached())
        seen, noticed = task.look(), task.noticed()
        self.memory = self.memory if noticed is None else noticed
        return seen


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
    assert_says(caplog.text, str(path), "is lost", "from its beginning")


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


def test_a_position_on_trust_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing is remembered of a position, a warning says once what may not be sent."""
    add(path, b"a\nb\nc\n")
    follower = Follower(path)
    follower.place = {"position": 2}
    with caplog.at_level(logging.WARNING):
        follower.look()
        follower.look()
        assert follower.run() == ["b", "c"]
    told = [one.message for one in caplog.records]
    assert len(told) == 1
    assert "read from position 2 on" in told[0]
    assert "are not sent" in told[0]


@pytest.mark.parametrize(("content", "position"), [(b"one\ntwo\n", 6), (b"one\r\ntwo\n", 4), (b"one\rtwo\n", 6)])
def test_no_part_of_a_line_is_sent(path: Path, content: bytes, position: int) -> None:
    """A position within a line, as Kafka Connect counts characters, stands for the beginning of that line."""
    add(path, content)
    follower = Follower(path)
    follower.place = {"position": position}
    assert follower.run() == ["two"]


def test_no_part_of_a_line_that_grows_is_sent(path: Path) -> None:
    """A position on trust at the end of a line without its end stands for the beginning of that line, too."""
    add(path, b"one\ntw")
    task = FileTask()
    task.start(Follower(path).settings, Reached([({"filename": str(path)}, {"position": 6})], {}))
    assert not task.poll()
    add(path, b"o\n")
    assert [one.value for one in task.poll()] == ["two"]
    task.stop()


@pytest.mark.parametrize("sent", [1, 2, 3])
def test_a_poll_that_was_sent_in_part_is_found_after_a_rotation(path: Path, sent: int) -> None:
    """A place in the middle of a poll is remembered, so the rest of the old file and the head of the new one come."""
    follower = Follower(path, batch=5)
    add(path, b"a\nb\nc\nd\n")
    assert follower.fail_after(sent) == ["a", "b", "c"][:sent]
    path.rename(path.with_suffix(".1"))
    add(path, b"x\ny\nz\nmore than before\n")
    assert follower.run() == [*["a", "b", "c", "d"][sent:], "x", "y", "z", "more than before"]


def test_a_file_that_was_rotated_before_it_was_sent(path: Path) -> None:
    """Files that had the name while nothing could be sent are read in order, whatever they are called by now."""
    follower = Follower(path)
    for number in range(3):
        add(path, b"%d a\n%d b\n" % (number, number))
        follower.look()
        path.rename(path.with_suffix(f".{number}"))
    add(path, b"last\n")
    assert follower.run() == ["0 a", "0 b", "1 a", "1 b", "2 a", "2 b", "last"]
    assert follower.run() == []


def test_a_first_file_that_is_gone_is_told(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that was seen, and removed before it was read, is lost with a warning."""
    follower = Follower(path)
    add(path, b"a\n")
    follower.look()
    path.unlink()
    add(path, b"b\n")
    with caplog.at_level(logging.WARNING):
        assert follower.run() == ["b"]
    assert_says(caplog.text, str(path), "lines are lost")


def test_files_between_two_rotations_are_named(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that came and went while nobody looked is not read, and a warning names it."""
    follower = Follower(path)
    add(path, b"a\n")
    assert follower.run() == ["a"]
    path.rename(path.with_name("log.txt.2"))
    add(path, b"b\n")
    path.rename(path.with_name("log.txt.1"))
    add(path, b"c\n")
    with caplog.at_level(logging.WARNING):
        assert follower.run() == ["c"]
    assert_says(caplog.text, "rotated more than once", "log.txt.1")


@pytest.mark.parametrize("sent", [True, False])
def test_a_copy_is_read_to_its_end_after_a_truncation(path: Path, sent: bool) -> None:
    """After `copytruncate` what was not read comes from the copy, also when nothing was read before."""
    follower = Follower(path)
    add(path, b"a\n")
    follower.look()
    if sent:
        assert follower.run() == ["a"]
    add(path, b"b\n")
    path.with_name("log.txt.1").write_bytes(path.read_bytes())
    path.write_bytes(b"")
    add(path, b"new\n")
    assert follower.run() == [*([] if sent else ["a"]), "b", "new"]
    assert follower.run() == []


def test_a_file_written_anew_with_the_same_size(path: Path) -> None:
    """The time of its last change tells that there is news, and it is read from its beginning."""
    follower = Follower(path)
    add(path, b"a\nb\n")
    assert follower.run() == ["a", "b"]
    seen = follower.look()
    os.utime(path, ns=(0, 0))
    path.write_bytes(b"c\nd\n")
    assert follower.look() != seen
    assert follower.run() == ["c", "d"]


def test_another_file_and_back(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """When `file` names another file for a while, each goes on where it was, through a rotation, too."""
    follower, other = Follower(path), path.with_name("other.txt")
    add(path, b"a\n")
    add(other, b"x\n")
    places: dict[str, Place | None] = {}
    with caplog.at_level(logging.WARNING):
        for now, values in [(path, ["a"]), (other, ["x"]), (path, ["b", "c"]), (other, [])]:
            follower.place = places.get(str(now))
            follower.settings["file"] = str(now)
            follower.look()
            assert follower.run() == values
            places[str(now)] = follower.place
            if now == other:
                add(path, b"b\n")
                path.rename(path.with_suffix(".1"))
                add(path, b"c\n")
    assert not caplog.records


def test_a_file_that_is_written_anew_while_it_is_read(path: Path) -> None:
    """Half a line of the old content is never joined with the new one."""
    add(path, b"a\nb\nhalf")
    task = FileTask()
    task.start(Follower(path, batch=1).settings, Reached())
    assert [one.value for one in task.poll()] == ["a"]
    assert [one.value for one in task.poll()] == ["b"]
    path.write_bytes(b"c\nd\nand a longer line\n")
    found = []
    while records := task.poll():
        found += [one.value for one in records]
    task.stop()
    assert found == ["c", "d", "and a longer line"]


def test_a_file_that_is_saved_while_it_is_read(path: Path) -> None:
    """A copy with more at its end that takes the place of the open file goes on where that was."""
    add(path, b"a\nhalf")
    task = FileTask()
    task.start(Follower(path).settings, Reached())
    assert [one.value for one in task.poll()] == ["a"]
    other = path.with_name("other")
    other.write_bytes(b"a\nhalf a line\n")
    other.rename(path)
    assert [one.value for one in task.poll()] == ["half a line"]
    assert list(task.poll()) == []
    task.stop()


@pytest.mark.parametrize("memory", [{"waiting": "[1]"}, {"waiting": "{"}, {"of log.txt": "[]", "filename": "else"}])
def test_memory_of_another_form_is_none(path: Path, memory: Memory) -> None:
    """What cannot be read of it is forgotten."""
    add(path, b"a\n")
    follower = Follower(path)
    follower.memory = memory
    assert follower.run() == ["a"]


def test_memory_of_an_earlier_version(path: Path) -> None:
    """A mark that does not say of which file it is belongs to the one that is followed."""
    follower = Follower(path)
    add(path, b"a\nb\n")
    assert follower.run() == ["a", "b"]
    follower.memory = {key: follower.memory[key] for key in ("inode", "head", "edge")}
    add(path, b"c\n")
    path.rename(path.with_suffix(".1"))
    add(path, b"d\n")
    assert follower.run() == ["c", "d"]


@pytest.mark.parametrize("size", [100, 3 << 20])
def test_a_line_that_is_too_long_is_told_before_it_is_sent(path: Path, size: int) -> None:
    """A line without an end, longer than a request may be, names key and cure, and does not fill the memory."""
    add(path, b"a\n" + b"x" * size)
    follower = Follower(path, longest=1000)
    if size == 100:
        assert follower.run() == ["a"]
    else:
        with pytest.raises(SourceFailed, match=saying("position 2", "[producer.override.max.request.size]", "Raise")):
            follower.run()
        assert follower.place == {"position": 2}


def test_a_folder_is_no_file(path: Path) -> None:
    """A folder under the name is an error that names the key."""
    path.mkdir()
    with pytest.raises(SourceFailed, match=saying("[file]", str(path), "is a folder", "name a file")):
        Follower(path).run()


@pytest.mark.parametrize("position", ["12", -1, True, 1.5])
def test_a_position_that_is_none_is_told(path: Path, position: str | float) -> None:
    """A stored position of another form is an error, and not the beginning of the file."""
    follower = Follower(path)
    follower.place = {"position": position}
    with pytest.raises(
        SourceFailed, match=saying(str(path), repr(position), "not a number", "PATCH /connectors/NAME/offsets")
    ):
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
