"""What tasks remember goes with the places that it was written for, and with no others."""

from pathlib import Path

from parquet_sink.addons.sources.memory import FILE, MemoryFile

OLD, NEW = {'{"f":"a"}': {"position": 9}}, {'{"f":"a"}': {"position": 2}}


def test_a_crash_before_places_are_stored_finds_what_goes_with_the_old_ones(tmp_path: Path) -> None:
    """Memory of both places is there until the next is written."""
    memory = MemoryFile(str(tmp_path))
    memory.write({}, OLD, {0: {"inode": 1}})
    memory.write(OLD, NEW, {0: {"inode": 2}})
    assert MemoryFile(str(tmp_path)).read(OLD) == {0: {"inode": 1}}
    assert MemoryFile(str(tmp_path)).read(NEW) == {0: {"inode": 2}}


def test_what_is_remembered_later_at_the_same_places_counts(tmp_path: Path) -> None:
    """Of a file that was written anew up to the same position the newer content is known after a restart."""
    memory = MemoryFile(str(tmp_path))
    memory.write(OLD, NEW, {0: {"inode": 1}})
    memory.write(NEW, NEW, {0: {"inode": 2}})
    assert MemoryFile(str(tmp_path)).read(NEW) == {0: {"inode": 2}}


def test_what_is_noticed_before_places_are_known(tmp_path: Path) -> None:
    """It goes with whichever places turn out to be stored: with none at the first start, else with either of two."""
    memory = MemoryFile(str(tmp_path))
    memory.update(lambda places, tasks: {0: {"inode": 7}})
    assert memory.read({}) == {0: {"inode": 7}}
    memory.write({}, OLD, {0: {"inode": 1}})
    memory.update(lambda places, tasks: {0: {**tasks[0], "more": len(places)}})
    assert memory.read({}) == {0: {"inode": 7, "more": 0}}
    assert memory.read(OLD) == {0: {"inode": 1, "more": 1}}
    memory.forget()
    assert memory.read({}) == {}
    memory.forget()


def test_places_that_somebody_set_have_no_memory(tmp_path: Path) -> None:
    """Nothing is remembered of a place that no task reached, nor from a file that is damaged."""
    memory = MemoryFile(str(tmp_path))
    assert memory.read(OLD) == {}
    memory.write({}, OLD, {0: {"inode": 1}})
    assert memory.read(NEW) == {}
    (tmp_path / FILE).write_text("[{")
    assert memory.read(OLD) == {}
