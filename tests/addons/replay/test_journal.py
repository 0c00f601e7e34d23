"""What is kept of a replay: whole or not at all, one at a time, and readable or told so."""

from pathlib import Path

import pytest

from parquet_sink.addons.replay.journal import Journal, Order, Position, Progress
from parquet_sink.addons.replay.plan import ReplayPlan, ReplayRange
from parquet_sink.errors import AnotherInstance, InvalidConfiguration
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from tests.messages import saying

LEARNED = LearnedSchema(None, 3.0, None)
PLANNED = PlannedRange("orders", 0, 5, 9, "records", 5, known=LearnedSchema(b"s", 1.0, 2.0))
ORDER = Order(ReplayPlan((ReplayRange(PLANNED, ((5, 7), (8, 9)), recorded=True),)), 3, "http://x", "recipe", "1.0")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Of one connector."""
    return Journal(str(tmp_path), "orders")


def test_what_was_begun_comes_back(journal: Journal) -> None:
    """The order as it was, and how far it got; nothing yet, before anything was noted."""
    with journal.alone():
        journal.begin(ORDER)
        assert journal.load() == (ORDER, Progress())
        progress = Progress(
            2, {("orders", 0): Position(1, 6, None)}, {"orders": LearnedSchema(None, 3.0, None)}, 7, 8, 9
        )
        journal.save(progress)
        assert journal.load() == (ORDER, progress)
        assert journal.unfinished


def test_a_new_replay_forgets_how_far_the_last_one_got(journal: Journal) -> None:
    """Its progress is not the new one's."""
    with journal.alone():
        journal.begin(ORDER)
        journal.save(Progress(3))
        journal.begin(ORDER)
        assert journal.load()[1] == Progress()


def test_nothing_to_go_on_with(journal: Journal) -> None:
    """Neither before the first replay, nor after one that ended."""
    with journal.alone():
        with pytest.raises(InvalidConfiguration, match=saying("[--resume]", "connector orders", "leave --resume out")):
            journal.load()
        journal.begin(ORDER)
        journal.forget()
        with pytest.raises(InvalidConfiguration, match=saying("[--resume]", "connector orders", "leave --resume out")):
            journal.load()


@pytest.mark.parametrize("name", ["plan.json", "progress.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":1}', b'{"format":2}', b"\xff\x00", b"null"])
def test_a_torn_journal_is_told(journal: Journal, name: str, content: bytes) -> None:
    """With the folder and the cure, whatever stands in it."""
    with journal.alone():
        journal.begin(ORDER)
        journal.save(Progress())
        (journal.folder / name).write_bytes(content)
        told = saying("[--resume]", str(journal.folder), "cannot be read", "leave --resume out")
        with pytest.raises(InvalidConfiguration, match=told):
            journal.load()


def test_two_at_once_are_refused(journal: Journal, tmp_path: Path) -> None:
    """The second touches nothing; after the first it may."""
    with journal.alone():
        Path(journal.work_dir).mkdir()
        with pytest.raises(AnotherInstance, match="being replayed"), Journal(str(tmp_path), "orders").alone():
            pass
        assert Path(journal.work_dir).is_dir()
    with Journal(str(tmp_path), "orders").alone():
        assert not Path(journal.work_dir).exists()
    with Journal(str(tmp_path), "other").alone(), journal.alone():
        pass
