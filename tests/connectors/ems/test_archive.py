"""A connector file with an archive."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.directory.settings import FolderStore
from parquet_sink.targets.s3.settings import BucketSettings, BucketStore
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import GOOD as PUSH
from tests.connectors.ems.connector_files import E
from tests.messages import assert_says

URL = f"{E}archive.url"
GOOD = {**PUSH, f"{E}endpoint": "directory:/data/lake"}
GOOD.pop(f"{E}authorization.key")


def loaded(changes: Mapping[str, str]) -> Loaded:
    """The file of a folder with these changes."""
    return load({**GOOD, **changes}, Worker(machine=Machine()), source="f")


def test_without_the_key_there_is_none() -> None:
    """Nothing is archived unless it is asked for."""
    assert loaded({}).require().archive is None


def test_an_archive_is_required_unless_it_is_said_otherwise() -> None:
    """The folder as it stands, the connector's name, and a folder below tmp.dir for what waits."""
    found = loaded({URL: "directory:/data//archive/", f"{E}tmp.dir": "/tmp/x"})
    assert (found.problems, found.warnings) == ((), ())
    waiting = "/tmp/x/orders/.archive"
    assert found.require().archive == ArchiveSettings(
        FolderStore("/data/archive", URL), "orders", waiting, True, 1_000_000_000
    )
    behind = loaded({URL: "directory:/a", f"{E}archive.required": "false", f"{E}archive.max.waiting.bytes": "2000000"})
    archive = behind.require().archive
    assert archive is not None
    assert (archive.required, archive.max_waiting_bytes, behind.warnings) == (False, 2_000_000, ())


def test_keys_of_http_serve_an_archive_in_a_bucket() -> None:
    """Of a folder's connector, too: only what a push API alone needs has no effect."""
    of_http = {"http.connect.timeout.ms": "1", "pool.max.idle": "2", "proxy.host": "p", "proxy.port": "3"}
    reached = {"s3.endpoint": "http://minio:9000", "endpoint.allow.http": "true", "s3.region": "eu-1", **of_http}
    in_bucket = {URL: "s3://lake/kept", **{f"{E}{name}": text for name, text in reached.items()}}
    found = loaded(in_bucket)
    assert (found.problems, found.warnings) == ((), ())
    archive = found.require().archive
    assert archive is not None
    bucket = BucketSettings(
        "lake", "http://minio:9000", "eu-1", connect_timeout_ms=1, pool_max_idle=2, proxy=ProxySettings("p", 3)
    )
    assert archive.place == BucketStore(bucket, "kept", URL)
    push = {f"{E}authorization.key": "AppKey k", f"{E}connection.id": "c", f"{E}s3.bucket": "lake"}
    bucket_key, key, connection = loaded({**in_bucket, **push}).warnings
    assert_says(bucket_key, f"[{E}s3.bucket]", "no effect", f"set {E}target.type=s3")
    assert_says(key, f"[{E}authorization.key]", "no effect", f"{E}endpoint is a folder")
    assert_says(connection, f"[{E}connection.id]", "no effect", f"{E}endpoint is a folder")


@pytest.mark.parametrize(
    ("url", "cure"),
    [
        *(
            (url, "directory:/path/to/folder")
            for url in ("/data/archive", "file:/data", "directory:", "directory:data")
        ),
        *((url, "s3://bucket/prefix") for url in ("s3:", "s3:/b", "s3://bucket/a//x", "s3://bucket/a/../b")),
        *(("directory:/", "name a folder"), ("s3://b/x", "3 or more"), ("s3://user@bucket/x", "remove them")),
    ],
)
def test_what_names_no_archive_is_told(url: str, cure: str) -> None:
    """One problem, with the form."""
    [problem] = loaded({URL: url}).problems
    assert_says(problem, f"Invalid [{URL}]", cure)


@pytest.mark.parametrize("folder", ["/data/lake", "/data/lake/", "/data/lake/archive", "/data"])
def test_the_targets_own_folder_is_no_archive(folder: str) -> None:
    """Neither itself, nor one within the other."""
    [problem] = loaded({URL: f"directory:{folder}"}).problems
    assert_says(problem, f"Invalid [{URL}]", f'"directory:{folder}"', "the target's", "name a")


def test_a_bucket_is_reached_as_the_keys_say() -> None:
    """Also where the target is none; its keys are checked as for a target, and mean something."""
    keys = {URL: "s3://kept/old/files/", f"{E}s3.region": "eu-central-1", f"{E}s3.access.key.id": "id"}
    found = loaded({**keys, f"{E}s3.secret.access.key": "secret"})
    assert (found.problems, found.warnings) == ((), ())
    archive = found.require().archive
    assert archive is not None
    assert isinstance(archive.place, BucketStore)
    assert (archive.place.bucket.bucket, archive.place.prefix) == ("kept", "old/files")
    assert archive.place.bucket.region == "eu-central-1"
    assert archive.address == "s3://kept/old/files"
    [problem] = loaded(keys).problems
    assert_says(problem, f"Invalid [{E}s3.secret.access.key]", "missing beside", "both, or neither")


@pytest.mark.parametrize(
    ("prefix", "url", "same"),
    [
        ("{topic}", "s3://lake", True),
        ("{topic}", "s3://lake/archive", False),
        ("data/{topic}", "s3://lake/data", True),
        ("data/topic={topic}", "s3://lake/data/archive", True),
        ("data/{topic}", "s3://lake/archive", False),
        ("data/{topic}", "s3://other/data", False),
    ],
)
def test_the_targets_own_prefix_is_no_archive(prefix: str, url: str, same: bool) -> None:
    """Within one bucket they are apart; another bucket is another place. A refusal has the value as it was written."""
    keys = {f"{E}target.type": "s3", f"{E}s3.bucket": "lake", f"{E}s3.prefix": prefix, URL: url}
    problems = loaded(keys).problems
    assert len(problems) == same
    for problem in problems:
        assert_says(problem, f"Invalid [{URL}]", f'"{url}"', "the target's", "name a")


PUSHED = {f"{E}endpoint": "https://t.c.celonis.cloud/api/v1/p/items", f"{E}authorization.key": "AppKey k"}
BUCKET = {f"{E}target.type": "s3", f"{E}s3.bucket": "lake"}


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ({}, f"{E}endpoint=directory:/data/lake"),
        (BUCKET, f"{E}s3.bucket=lake"),
        ({**PUSHED, URL: "directory:/a"}, f"{URL}=directory:/a"),
        ({**PUSHED, URL: "directory:/a", f"{E}archive.required": "false"}, f"{URL}=directory:/a"),
        (PUSHED, None),
    ],
)
def test_fresh_salts_do_not_go_with_what_keeps_files_by_name(place: dict[str, str], named: str | None) -> None:
    """After a crash the same file would have other bytes, which a folder, a bucket and an archive refuse for ever."""
    random = f"{E}obfuscation.sha512.randomsalt"
    salts = {f"{E}obfuscation.fields": "a", f"{E}obfuscation.method": "sha512", random: "true"}
    problems = loaded({**place, **salts}).problems
    assert len(problems) == (named is not None)
    for problem in problems:
        assert_says(problem, f"Invalid [{random}]", "true", f"{named} keeps each file", "give a salt")
    for repeatable in ({f"{E}obfuscation.sha512.salt": "s"}, {random: "false", f"{E}obfuscation.sha512.salt": "s"}):
        assert not loaded({**place, **salts, **repeatable}).problems
    assert not loaded({**place, **salts, f"{E}obfuscation.method": "sha256"}).problems


def test_keys_that_mean_nothing_are_named() -> None:
    """What waits is bounded where something waits; and without an archive there is nothing to require."""
    [warning] = loaded({URL: "directory:/a", f"{E}archive.max.waiting.bytes": "2000000"}).warnings
    assert_says(warning, f"[{E}archive.max.waiting.bytes]", "no effect", f"{E}archive.required is true")
    [warning] = loaded({f"{E}archive.required": "false"}).warnings
    assert_says(warning, f"[{E}archive.required]", "no effect", f"unless {URL}")


@pytest.mark.parametrize("kind", ["absent", "file", "link to the target"])
def test_an_archive_that_cannot_be_used_is_told_before_the_start(tmp_path: Path, kind: str) -> None:
    """Under its key; a link does not hide that it is the target's own folder."""
    place, lake = tmp_path / "place", tmp_path / "lake"
    lake.mkdir()
    if kind == "file":
        place.touch()
    elif kind == "link to the target":
        place.symlink_to(lake)
    keys = {**GOOD, f"{E}endpoint": f"directory:{lake}", URL: f"directory:{place}", f"{E}tmp.dir": str(tmp_path)}
    (tmp_path / "orders.properties").write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
    (tmp_path / "worker.properties").write_text("bootstrap.servers=localhost:1\n")
    checked = inspect(check_files([str(tmp_path / "orders.properties")], str(tmp_path / "worker.properties")), {})
    [problem] = checked.connectors[0].problems
    assert problem.startswith(f"Invalid [{URL}]. ")
