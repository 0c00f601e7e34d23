"""A folder as a target: whole files under their names, never over another one, with cause and cure for each trouble."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from parquet_sink.errors import StorageFailed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name, file_name
from parquet_sink.files.rotation import Reason
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.targets.directory import target as directory
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.directory.target import ABANDONED_S, PARTIAL_FOLDER, PIECE_BYTES, DirectoryTarget, unusable
from parquet_sink.targets.outcome import Health, Verdict
from tests.factories import Clock
from tests.messages import assert_says, saying

SECONDS = 60.0


def finished(folder: Path, content: bytes = b"content", number: int = 0) -> FinishedFile:
    """A finished file with this content."""
    folder.mkdir(exist_ok=True)
    path = folder / attempt_name("ab" * 16, number)
    path.write_bytes(content)
    name = file_name("orders", 0, number * 10, number * 10 + 9, len(content), 10)
    return FinishedFile(
        str(path), name, "orders", 0, number * 10, number * 10 + 9, 10, 10, len(content), Reason.SIZE, 0.0, 0.0, None
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that takes files."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def target(root: Path) -> DirectoryTarget:
    """A target with the table t."""
    return DirectoryTarget(DirectorySettings(str(root), "t"))


def stored(root: Path) -> dict[str, bytes]:
    """All files below, by their path within the folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES - 1])
def test_a_file_of_any_size_arrives_under_its_name(
    target: DirectoryTarget, root: Path, tmp_path: Path, size: int
) -> None:
    """In the table's folder, byte for byte; the local file stays, and nothing else is left behind."""
    content = bytes(i % 251 for i in range(size))
    file = finished(tmp_path / "tmp", content)
    assert target.push(file, SECONDS).verdict is Verdict.ACCEPTED
    assert stored(root) == {f"t/{file.name}": content}
    assert Path(file.path).read_bytes() == content


def test_files_have_the_rights_of_other_new_files(target: DirectoryTarget, root: Path, tmp_path: Path) -> None:
    """Others may read them as far as the umask lets them, although the local file is private."""
    file = finished(tmp_path / "tmp")
    os.chmod(file.path, 0o600)
    target.push(file, SECONDS)
    (tmp_path / "new").touch()
    assert (root / "t" / file.name).stat().st_mode == (tmp_path / "new").stat().st_mode


@pytest.mark.parametrize("table", ["a/b", "..", ".", ".hidden", "ü x"])
def test_a_table_is_one_folder_within(root: Path, tmp_path: Path, table: str) -> None:
    """Whatever it is called, files stay below the folder."""
    file = finished(tmp_path / "tmp")
    assert DirectoryTarget(DirectorySettings(str(root), table)).push(file, SECONDS).verdict is Verdict.ACCEPTED
    [path] = stored(root)
    assert len(Path(path).parts) == 2
    assert not path.startswith(".")


def test_the_same_file_again_is_accepted(target: DirectoryTarget, root: Path, tmp_path: Path) -> None:
    """A resend, also by a process that knows nothing of the first, changes nothing."""
    file = finished(tmp_path / "tmp", b"x" * (PIECE_BYTES + 5))
    target.push(file, SECONDS)
    before = (root / "t" / file.name).stat().st_ino
    again = DirectoryTarget(DirectorySettings(str(root), "t")).push(file, SECONDS)
    assert (again.verdict, again.cause) == (Verdict.ACCEPTED, "was stored before")
    assert (root / "t" / file.name).stat().st_ino == before


@pytest.mark.parametrize("other", [b"", b"contenT", b"longer content"])
def test_another_content_is_refused(target: DirectoryTarget, root: Path, tmp_path: Path, other: bytes) -> None:
    """What is there stays, and both files are named."""
    file = finished(tmp_path / "tmp")
    (root / "t").mkdir()
    (root / "t" / file.name).write_bytes(other)
    outcome = target.push(file, SECONDS)
    assert outcome.verdict is Verdict.REFUSED
    assert str(root / "t" / file.name) in outcome.cause
    assert file.path in outcome.cause
    assert outcome.cure
    assert stored(root) == {f"t/{file.name}": other}


@pytest.mark.parametrize("size", [1, PIECE_BYTES, PIECE_BYTES + 1])
def test_bytes_that_were_altered_are_not_taken(target: DirectoryTarget, root: Path, tmp_path: Path, size: int) -> None:
    """Of the size that they had: the digest tells, and nothing gets the name."""
    file = finished(tmp_path / "tmp", bytes(size))
    known = replace(file, digest=sha256(Path(file.path).read_bytes()).hexdigest())
    Path(file.path).write_bytes(bytes(size - 1) + b"\1")
    with pytest.raises(StorageFailed, match=saying(file.path, "other bytes", "when it was verified")):
        target.push(known, SECONDS)
    assert stored(root) == {}


@pytest.mark.parametrize("kind", ["folder", "link", "dangling link"])
def test_what_is_no_file_is_not_followed(target: DirectoryTarget, root: Path, tmp_path: Path, kind: str) -> None:
    """A folder or link of that name is refused, and where it points to is left alone."""
    file = finished(tmp_path / "tmp")
    (root / "t").mkdir()
    place = root / "t" / file.name
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(file.path if kind == "link" else tmp_path / "absent")
    assert target.push(file, SECONDS).verdict is Verdict.REFUSED
    assert not (tmp_path / "absent").exists()


def test_without_hard_links_a_file_is_renamed(
    target: DirectoryTarget, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems that know none (FAT, some network mounts) take files, too, and resends."""

    def no_links(*arguments: object, **options: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    file = finished(tmp_path / "tmp")
    assert [target.push(file, SECONDS).verdict for _ in range(2)] == [Verdict.ACCEPTED] * 2
    assert stored(root) == {f"t/{file.name}": b"content"}


@pytest.mark.parametrize("links", [True, False])
def test_a_name_taken_meanwhile_is_not_overwritten(
    target: DirectoryTarget, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Another process that gives the same name while we write is told from us by its content."""
    file = finished(tmp_path / "tmp")
    fsync = os.fsync

    def taken(descriptor: int) -> None:
        fsync(descriptor)
        if (root / "t" / PARTIAL_FOLDER).exists() and not (root / "t" / file.name).exists():
            (root / "t" / file.name).write_bytes(b"another")

    def no_links(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "fsync", taken)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    assert target.push(file, SECONDS).verdict is Verdict.REFUSED
    assert stored(root) == {f"t/{file.name}": b"another"}


@pytest.mark.parametrize(
    ("number", "verdict", "cure"),
    [
        (errno.ENOSPC, Verdict.RETRIABLE, "Free space"),
        (errno.EDQUOT, Verdict.RETRIABLE, "quota"),
        (errno.EIO, Verdict.RETRIABLE, "disk"),
        (errno.ESTALE, Verdict.RETRIABLE, "disk"),
        (errno.EROFS, Verdict.REFUSED, "connect.ems.endpoint"),
        (errno.EACCES, Verdict.REFUSED, "right to write"),
        (errno.EFBIG, Verdict.REFUSED, "connect.ems.commit.size.bytes"),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "mkdir", "link"])
def test_trouble_has_cause_and_cure(
    target: DirectoryTarget,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    verdict: Verdict,
    cure: str,
) -> None:
    """Whichever step fails, the file is not there, and what follows depends on whether it may pass."""
    file = finished(tmp_path / "tmp")

    def fails(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fails)
        outcome = target.push(file, SECONDS)
    assert outcome.verdict is verdict
    assert os.strerror(number) in outcome.cause
    assert str(root) in outcome.cause
    assert cure in outcome.cure
    assert stored(root) == {}
    assert target.push(file, SECONDS).verdict is Verdict.ACCEPTED


def test_a_name_that_may_not_last_is_unknown(
    target: DirectoryTarget, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the folder cannot be synced the file is there, and is sent again until that is known."""
    file = finished(tmp_path / "tmp")
    (root / "t").mkdir()

    def fails(folder: str) -> None:
        if folder == str(root / "t"):
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(directory, "sync_folder", fails)
        assert [target.push(file, SECONDS).verdict for _ in range(2)] == [Verdict.UNKNOWN] * 2
    assert target.push(file, SECONDS).verdict is Verdict.ACCEPTED


def test_a_folder_that_vanished_is_not_made(target: DirectoryTarget, root: Path, tmp_path: Path) -> None:
    """It may be a mount that is away: below its mount point nothing is put. Once it is back, files are taken."""
    file = finished(tmp_path / "tmp")
    root.rmdir()
    outcome = target.push(file, SECONDS)
    assert (outcome.verdict, root.exists()) == (Verdict.RETRIABLE, False)
    assert "mount" in outcome.cure
    root.mkdir()
    assert target.push(file, SECONDS).verdict is Verdict.ACCEPTED


def test_a_name_too_long_is_refused(target: DirectoryTarget, root: Path, tmp_path: Path) -> None:
    """A push API takes names of any length, a file system does not."""
    file = finished(tmp_path / "tmp")
    long = FinishedFile(file.path, "n" * 300 + ".parquet", *list(vars(file).values())[2:])
    outcome = target.push(long, SECONDS)
    assert outcome.verdict is Verdict.REFUSED
    assert "too long" in outcome.cure


def test_time_that_runs_out_leaves_nothing(root: Path, tmp_path: Path) -> None:
    """A copy that takes longer than the upload may is given up between two pieces."""
    clock = Clock()

    def monotonic() -> float:
        clock.seconds += 1
        return clock.seconds

    target = DirectoryTarget(DirectorySettings(str(root), "t"), monotonic=monotonic)
    file = finished(tmp_path / "tmp", bytes(5 * PIECE_BYTES))
    outcome = target.push(file, 4)
    assert outcome.verdict is Verdict.RETRIABLE
    assert "connect.ems.sink.put.timeout.ms" in outcome.cure
    assert stored(root) == {}
    assert target.push(file, 100).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("change", ["gone", "shorter"])
def test_trouble_with_the_local_file_is_not_the_targets(
    target: DirectoryTarget, root: Path, tmp_path: Path, change: str
) -> None:
    """It ends the upload as storage trouble, and nothing is stored."""
    file = finished(tmp_path / "tmp")
    if change == "gone":
        os.unlink(file.path)
    else:
        Path(file.path).write_bytes(b"con")
    with pytest.raises(StorageFailed):
        target.push(file, SECONDS)
    assert stored(root) == {}


KILLED = """
import os, signal, sys
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.directory.target import store
from parquet_sink.targets.store import LocalFile
count = [0]
real = getattr(os, sys.argv[1])
def killed(*arguments, **options):
    if sys.argv[2] == "after":
        real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[1], killed)
store(LocalFile(sys.argv[3], int(sys.argv[4])), sys.argv[5], sys.argv[6], lambda: False)
"""


@pytest.mark.parametrize("call", ["write", "fsync", "link", "unlink"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_any_step_leaves_a_whole_file_or_none(root: Path, tmp_path: Path, call: str, when: str) -> None:
    """The resend of the next process is accepted, and what was left beside is removed once it is old."""
    content = b"x" * (PIECE_BYTES + 7)
    file = finished(tmp_path / "tmp", content)
    (root / "t").mkdir()
    arguments = [call, when, file.path, str(len(content)), str(root / "t"), file.name]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    named = {path: found for path, found in stored(root).items() if PARTIAL_FOLDER not in path}
    assert named in ({}, {f"t/{file.name}": content})
    left = len(stored(root)) - len(named)
    assert left <= 1
    old = Clock(4e9)
    young = DirectoryTarget(DirectorySettings(str(root), "t"))
    assert young.push(file, SECONDS).verdict is Verdict.ACCEPTED
    assert len(stored(root)) == 1 + left
    DirectoryTarget(DirectorySettings(str(root), "t"), now=old)
    assert stored(root) == {f"t/{file.name}": content}


def test_what_is_being_written_is_not_swept(
    target: DirectoryTarget, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow copy that another process finds old is left to its writer."""
    file = finished(tmp_path / "tmp")
    fsync = os.fsync

    def sweeping(descriptor: int) -> None:
        directory.sweep(str(root / "t"), 4e9 + ABANDONED_S)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", sweeping)
    assert target.push(file, SECONDS).verdict is Verdict.ACCEPTED


def test_many_at_once(root: Path, tmp_path: Path) -> None:
    """Threads with one target, and with one each, put files side by side, some of them the same."""
    shared = DirectoryTarget(DirectorySettings(str(root), "t"))
    files = [finished(tmp_path / "tmp", bytes([n]) * 1000, n) for n in range(8)]
    outcomes: list[Verdict] = []

    def send(target: DirectoryTarget, file: FinishedFile) -> Callable[[], None]:
        return lambda: outcomes.append(target.push(file, SECONDS).verdict)

    own = [DirectoryTarget(DirectorySettings(str(root), "t")) for _ in files]
    jobs = [send(target, file) for file, one in zip(files, own, strict=True) for target in (shared, one)]
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outcomes == [Verdict.ACCEPTED] * 16
    assert stored(root) == {f"t/{file.name}": bytes([n]) * 1000 for n, file in enumerate(files)}


def test_a_probe_stores_nothing(target: DirectoryTarget, root: Path) -> None:
    """It says where files would go and how much room there is."""
    found = target.probe(SECONDS)
    assert found.health is Health.OK
    assert f"{root} can be written, " in found.text
    assert stored(root) == {}
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "health"), [(errno.ENOSPC, Health.WARNING), (errno.EACCES, Health.FAILED), (errno.EROFS, Health.FAILED)]
)
def test_a_probe_tells_what_would_fail(
    target: DirectoryTarget, monkeypatch: pytest.MonkeyPatch, number: int, health: Health
) -> None:
    """A full disk may have room later; no right to write stays."""

    def fails(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("builtins.open", fails)
    found = target.probe(SECONDS)
    assert found.health is health
    assert os.strerror(number) in found.text


def test_unusable_folders_are_told_without_writing(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent, a file, or not writable: in words, with the cure."""
    (tmp_path / "file").touch()
    assert unusable(str(root), ENDPOINT) is None
    absent = unusable(str(tmp_path / "absent"), ENDPOINT)
    assert_says(absent, str(tmp_path / "absent"), "No such file or directory", "Make the folder")
    assert_says(unusable(str(tmp_path / "file"), ENDPOINT), str(tmp_path / "file"), "Not a directory")
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert_says(unusable(str(root), ENDPOINT), str(root), "Permission denied")


def test_each_table_has_its_folder(target: DirectoryTarget, root: Path, tmp_path: Path) -> None:
    """A file of a connector with several tables goes to that of its table; what was left there is removed first."""
    left = root / "A%2FB" / PARTIAL_FOLDER / "left"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    for table in ("A/B", None, "A/B"):
        outcome = target.push(replace(finished(tmp_path / "own"), table=table), SECONDS)
        assert outcome.verdict is Verdict.ACCEPTED
    name = finished(tmp_path / "own").name
    assert set(stored(root)) == {f"A%2FB/{name}", f"t/{name}"}
