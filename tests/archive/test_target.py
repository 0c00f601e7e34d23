"""A target before an archive: what counts as accepted, and what is sent again."""

from pathlib import Path

from parquet_sink.archive.archive import open_archive
from parquet_sink.archive.target import FOR_S, AcceptedFiles, ArchivedTarget
from parquet_sink.targets.outcome import Outcome, Verdict
from tests.archive.files import SECONDS, Taking, archive_in, finished, stored
from tests.factories import Clock
from tests.messages import assert_says


def test_what_the_target_took_is_archived(tmp_path: Path) -> None:
    """The outcome is the target's, and names the archive; a file that is sent again is the same there."""
    taking, file = Taking(), finished(tmp_path / "tmp")
    target = ArchivedTarget(taking, open_archive(archive_in(tmp_path)), AcceptedFiles())
    for pushed in (1, 2):
        outcome = target.push(file, SECONDS)
        assert (outcome.verdict, outcome.status, outcome.answer_id) == (Verdict.ACCEPTED, 200, "7")
        assert outcome.archive is not None
        assert (outcome.archive.place, outcome.archive.cause) == (f"directory:{tmp_path / 'archive'}", None)
        assert taking.pushed == pushed
    assert list(stored(tmp_path / "archive")) == [f"orders/orders/{file.name}"]


def test_what_the_target_refused_is_not_archived(tmp_path: Path) -> None:
    """Its outcome stays as it is, so that it may be passed over."""
    refused = Outcome(Verdict.REFUSED, "bad file", of_file=True)
    target = ArchivedTarget(Taking(refused), open_archive(archive_in(tmp_path)), AcceptedFiles())
    assert target.push(finished(tmp_path / "tmp"), SECONDS) is refused
    assert stored(tmp_path / "archive") == {}


def test_a_file_is_not_sent_again_for_the_archives_sake(tmp_path: Path) -> None:
    """While the archive is away the target gets it once; when long has passed, once more."""
    taking, clock, settings = Taking(), Clock(), archive_in(tmp_path)
    accepted = AcceptedFiles(clock.monotonic)
    (tmp_path / "archive").rmdir()
    file = finished(tmp_path / "tmp")
    for _ in range(2):
        outcome = ArchivedTarget(taking, open_archive(settings), accepted).push(file, SECONDS)
        assert outcome.verdict is Verdict.RETRIABLE
        assert_says(outcome.fate, "accepted", "not archived")
        assert_says(outcome.cause, "connect.ems.archive.url", "archive directory:")
    assert taking.pushed == 1
    clock.sleep(FOR_S)
    ArchivedTarget(taking, open_archive(settings), accepted).push(file, SECONDS)
    assert taking.pushed == 2


def test_a_file_that_the_archive_refuses_is_not_the_targets_to_refuse(tmp_path: Path) -> None:
    """Another one has its name there: the connector stops, and the file's records are not set aside."""
    file = finished(tmp_path / "tmp")
    target = ArchivedTarget(Taking(), open_archive(archive_in(tmp_path)), AcceptedFiles())
    target.push(file, SECONDS)
    Path(file.path).write_bytes(b"CONTENT")
    outcome = target.push(file, SECONDS)
    assert (outcome.verdict, outcome.of_file) == (Verdict.REFUSED, False)
