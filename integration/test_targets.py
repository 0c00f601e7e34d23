"""What every target must do: one suite, run against each kind of target over what it really stands on."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration import scripted_target as script
from integration.s3.front import Fault, S3Front
from integration.s3.server import S3Server
from integration.scripted_target import Behaviour, Connection, ScriptedTarget
from parquet_sink.config.secret import Secret
from parquet_sink.errors import StorageFailed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name, component, file_name
from parquet_sink.files.rotation import Reason
from parquet_sink.net.settings import ClientCredentials
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.outcome import Health, Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3.settings import S3Settings
from parquet_sink.targets.settings import Target

CANARY = "AppKey canary-0123456789"
KEY = Secret(CANARY)
SECONDS = 20.0
SIZES = (1, 1 << 20, (3 << 20) + 7)


@dataclass(frozen=True)
class Site:
    """Targets of one kind. Each is opened when it is asked for, and closed at the end of the test.

    working: takes files, each call another one for the same place. refusing: takes none, now or later. stalling: takes
    none in `stall_seconds`. absent: is not there. stored: what the working one holds, by name.
    """

    working: Callable[[], Target]
    refusing: Callable[[], Target]
    stalling: Callable[[], Target]
    absent: Callable[[], Target]
    stored: Callable[[], dict[str, bytes]]
    stall_seconds: float


def token_site(stack: ExitStack, folder: Path) -> Site:
    """The push API, signed with access tokens of another server."""
    token = json.dumps({"access_token": "canary-token", "token_type": "Bearer", "expires_in": 899}).encode()
    server = stack.enter_context(ScriptedTarget(then=script.answer(200, token)))
    return push_site(stack, folder, ClientCredentials("sink", Secret(CANARY), server.endpoint))


def push_site(stack: ExitStack, folder: Path, signs: Secret | ClientCredentials = KEY) -> Site:
    """The push API, on sockets."""
    working = stack.enter_context(ScriptedTarget(then=_refuse_what_has_no_file))

    def opened(endpoint: str) -> Target:
        return stack.enter_context(closing(PushSettings(endpoint, signs, "t").open()))

    def behaving(behaviour: Behaviour) -> Callable[[], Target]:
        return lambda: opened(stack.enter_context(ScriptedTarget(then=behaviour)).endpoint)

    return Site(
        working=lambda: opened(working.endpoint),
        refusing=behaving(script.answer(403, b"no right to push")),
        stalling=behaving(script.hang),
        absent=lambda: opened(f"http://127.0.0.1:{stack.enter_context(script.closed_port())}/"),
        stored=lambda: dict(filter(None, (_sent(request.body) for request in working.requests))),
        stall_seconds=0.3,
    )


def directory_site(stack: ExitStack, folder: Path) -> Site:
    """A folder. Another file of every name is what it refuses; its deadline is over before it begins."""
    (folder / "out").mkdir()
    (folder / "taken" / component("t")).mkdir(parents=True)
    for size in SIZES:
        for number in range(2):
            (folder / "taken" / component("t") / _name(size, number)).write_bytes(b"another")

    def opened(place: str) -> Callable[[], Target]:
        settings = DirectorySettings(str(folder / place), "t")
        return lambda: stack.enter_context(closing(settings.open()))

    def stored() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}

    return Site(opened("out"), opened("taken"), opened("out"), opened("absent"), stored, stall_seconds=0.0)


def s3_site(stack: ExitStack, s3: S3Server) -> Site:
    """A bucket of S3, larger files in parts. What refuses has no bucket."""
    bucket = s3.bucket()

    def opened(bucket: str, endpoint: str | None = None) -> Target:
        reached = s3.settings(bucket, endpoint, multipart_bytes=200_000, part_bytes=500_000)
        return stack.enter_context(closing(S3Settings(reached, "").open()))

    def stalling() -> Target:
        front = stack.enter_context(S3Front(s3.port, Fault("", script.hang, 9)))
        return opened(bucket, front.endpoint)

    return Site(
        working=lambda: opened(bucket),
        refusing=lambda: opened("no-such-bucket"),
        stalling=stalling,
        absent=lambda: opened(bucket, f"http://127.0.0.1:{stack.enter_context(script.closed_port())}"),
        stored=lambda: {key: s3.content(bucket, key) for key in s3.keys(bucket)},
        stall_seconds=0.3,
    )


@pytest.fixture(params=[push_site, token_site, directory_site, s3_site], ids=["push", "tokens", "directory", "s3"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Each kind of target in turn."""
    with ExitStack() as stack:
        kind = request.param
        yield kind(stack, request.getfixturevalue("s3") if kind is s3_site else tmp_path)


def _refuse_what_has_no_file(connection: Connection) -> None:
    """As a push target: a form without a file is refused."""
    connection.read_body()
    behave = script.accept if _sent(connection.request.body) else script.answer(400, b"no part file")
    connection.rest = connection.request.body
    behave(connection)


def _sent(body: bytes) -> tuple[str, bytes] | None:
    """Name and content of the file in a form."""
    head, _, rest = body.partition(b"\r\n\r\n")
    if b'filename="' not in head:
        return None
    return head.split(b'filename="')[1].split(b'"')[0].decode(), rest[: rest.rindex(b"\r\n--", 0, -4)]


def _name(size: int, number: int) -> str:
    return file_name("orders", 0, 10 * number, 10 * number + 9, size, 10)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., FinishedFile]:
    """Makes files of ten records of a topic-partition, with random content."""

    def made(size: int = SIZES[0], number: int = 0) -> FinishedFile:
        path = tmp_path / attempt_name("ab" * 16, number)
        path.write_bytes(os.urandom(size))
        first = 10 * number
        about = ("orders", 0, first, first + 9, 10, 10, size, Reason.RECORDS, 0.0, 0.0, None)
        return FinishedFile(str(path), _name(size, number), *about)

    return made


@pytest.mark.parametrize("size", SIZES)
def test_a_file_is_taken_whole(site: Site, make: Callable[..., FinishedFile], size: int) -> None:
    """Under its name, byte for byte; the local file stays where it is."""
    file = make(size)
    content = Path(file.path).read_bytes()
    assert site.working().push(file, SECONDS).verdict is Verdict.ACCEPTED
    assert site.stored() == {file.name: content}
    assert Path(file.path).read_bytes() == content


def test_the_same_file_again_is_accepted(site: Site, make: Callable[..., FinishedFile]) -> None:
    """By the same target and by another process's; it is there once."""
    file = make(SIZES[1])
    target = site.working()
    outcomes = [one.push(file, SECONDS) for one in (target, target, site.working())]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.ACCEPTED] * 3
    assert site.stored() == {file.name: Path(file.path).read_bytes()}


@pytest.mark.parametrize("size", SIZES)
def test_a_refusal_has_cause_and_cure(site: Site, make: Callable[..., FinishedFile], size: int) -> None:
    """It is refused as often as it is tried, and the local file stays."""
    file, target = make(size), site.refusing()
    for outcome in (target.push(file, SECONDS), target.push(file, SECONDS)):
        assert outcome.verdict is Verdict.REFUSED
        assert outcome.cause
        assert outcome.cure
        assert "canary" not in repr(outcome)
    assert Path(file.path).exists()


def test_an_attempt_ends_with_its_time(site: Site, make: Callable[..., FinishedFile]) -> None:
    """What is not taken by then was not accepted, and may be sent again."""
    file = make(SIZES[2])
    outcome = site.stalling().push(file, site.stall_seconds)
    assert outcome.verdict in {Verdict.RETRIABLE, Verdict.UNKNOWN}
    assert "in time" in outcome.cause
    assert outcome.cure
    assert site.working().push(file, SECONDS).verdict is Verdict.ACCEPTED


def test_a_target_that_is_not_there_may_come_back(site: Site, make: Callable[..., FinishedFile]) -> None:
    """Nothing was taken, so it is retriable."""
    outcome = site.absent().push(make(), SECONDS)
    assert outcome.verdict is Verdict.RETRIABLE
    assert outcome.cure


def test_a_local_file_that_is_gone_is_not_the_targets_fault(site: Site, make: Callable[..., FinishedFile]) -> None:
    """It is storage trouble, and nothing is stored."""
    file = make()
    os.unlink(file.path)
    with pytest.raises(StorageFailed):
        site.working().push(file, SECONDS)
    assert site.stored() == {}


def test_files_may_be_pushed_side_by_side(site: Site, make: Callable[..., FinishedFile]) -> None:
    """Threads share a target."""
    files = [make(SIZES[number % 2], number) for number in range(6)]
    target = site.working()
    verdicts: list[Verdict] = []

    def send(file: FinishedFile) -> None:
        verdicts.append(target.push(file, SECONDS).verdict)

    threads = [threading.Thread(target=send, args=(file,)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert verdicts == [Verdict.ACCEPTED] * 6
    assert site.stored() == {file.name: Path(file.path).read_bytes() for file in files}


def test_closing_twice_does_no_harm(site: Site, make: Callable[..., FinishedFile]) -> None:
    """Before a file and after one."""
    fresh, used = site.working(), site.working()
    used.push(make(), SECONDS)
    for target in (fresh, used):
        target.close()
        target.close()


def test_a_probe_finds_what_works_and_stores_nothing(site: Site) -> None:
    """Again and again."""
    target = site.working()
    found = [target.probe(SECONDS), target.probe(SECONDS)]
    assert [one.health for one in found] == [Health.OK] * 2
    assert all(one.text for one in found)
    assert site.stored() == {}


def test_a_probe_finds_what_is_not_there(site: Site) -> None:
    """With the cure, and without a secret."""
    found = site.absent().probe(SECONDS)
    assert found.health is Health.FAILED
    assert any(f"connect.ems.{key}" in found.text for key in ("endpoint", "s3.endpoint"))
    assert "canary" not in found.text


def test_a_name_tells_where_files_go(site: Site) -> None:
    """For messages: never empty, never with a secret."""
    for target in (site.working(), site.absent()):
        assert target.name
        assert "canary" not in target.name
