"""`parquet-sink history`, as it is typed."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.cli.main import main
from parquet_sink.history.records import Origin, UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from tests.cli.connector_file import connector_lines
from tests.history.uploads import HOUR_MS, span, upload
from tests.messages import assert_line_says, assert_says

History = Callable[..., tuple[int, str, str]]
NOW_MS = 1_700_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of the history, whose folder is there."""
    folder = tmp_path / "tmp" / "orders"
    folder.mkdir(parents=True)
    return folder / ".history.db"


@pytest.fixture
def kept(path: Path) -> None:
    """Three files in two hours; one of them is sent a second time, one is refused."""
    first = upload(0, 9, at_ms=NOW_MS)
    refused = upload(20, 29, 1, NOW_MS + HOUR_MS, outcome=UploadOutcome.REFUSED, cause="no \x1b[31m", answer_id=None)
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([first, upload(10, 19, 1, NOW_MS + 60_000, oldest_ms=None), refused])
        history.append_files([replace(first, at_ms=NOW_MS + HOUR_MS, origin=Origin.REPLAY)])
        history.append_ranges([span(0, 20, at_ms=NOW_MS, done_until=20)])


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> History:
    """Runs the command; exit status, standard output and standard error."""
    (tmp_path / "out").mkdir()
    file = tmp_path / "orders.properties"

    def run(*options: str, **more: str) -> tuple[int, str, str]:
        file.write_text("".join(f"{key}={value}\n" for key, value in {**connector_lines(tmp_path), **more}.items()))
        capsys.readouterr()
        status = main(["history", *options, str(file)])
        return status, *capsys.readouterr()

    return run


@pytest.mark.usefixtures("kept")
def test_uploads_are_listed(run: History, path: Path) -> None:
    """In order of time, one line each, with what an operator asks for; nothing of them reaches the terminal raw."""
    status, out, err = run()
    heading, first, second, refused, repeated = out.splitlines()
    assert (status, err) == (0, "")
    assert_says(heading, "connector orders", "4 uploads", "from 2023-11-14 22:13:20.000", str(path))
    assert_says(heading, "to 2023-11-14 23:13:20.000 UTC")
    name = "topic-orders_partition-0_firstOffset-0_lastOffset-9_bytes-1234_rows-10.parquet"
    assert first.startswith(f"  2023-11-14 22:13:20.000 accepted {name}: ")
    assert_says(first, "orders 0", "offsets 0 to 9", "10 rows", "1,234 bytes", "by records", "oldest record 4.0 s")
    assert_says(first, "upload 2.25 s", "2 attempts", "status 200", "table T", "id job-1")
    assert first.endswith("sha256 abababababab")
    assert "oldest record" not in second
    assert " refused " in refused
    assert refused.endswith(": no \\u001b[31m")
    assert repeated.endswith(", repeat 1, by replay")


@pytest.mark.usefixtures("kept")
def test_uploads_are_json(run: History) -> None:
    """One object a line, all fields, and nothing else on standard output."""
    _, out, _ = run("--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["connector"], one["outcome"], one["freshness_ms"], one["repeat"]) for one in found] == [
        ("orders", "accepted", 4_000, 0),
        ("orders", "accepted", None, 0),
        ("orders", "refused", None, 0),
        ("orders", "accepted", HOUR_MS + 4_000, 1),
    ]
    assert found[0]["tried"][0] == {
        "at_ms": 1_000,
        "seconds": 0.5,
        "verdict": "retriable",
        "status": 503,
        "cause": "busy",
    }


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--topic", "orders"], 4),
        (["--topic", "other"], 0),
        (["--partition", "1"], 2),
        (["--offset", "9"], 2),
        (["--offset", "9-10"], 3),
        (["--since", "2023-11-14T22:14:00Z"], 3),
        (["--until", "2023-11-14T22:14"], 1),
        (["--since", str(NOW_MS), "--until", str(NOW_MS + 60_001)], 2),
        (["--outcome", "refused"], 1),
        (["--outcome", "refused", "--outcome", "accepted"], 4),
        (["--file", "topic-orders_partition-1_firstOffset-10_lastOffset-19_bytes-1234_rows-10.parquet"], 1),
        (["--limit", "1"], 1),
        (["--limit", "0"], 4),
        (["--partition", "1", "--outcome", "accepted", "--offset", "12"], 1),
    ],
)
@pytest.mark.usefixtures("kept")
def test_uploads_are_chosen(run: History, options: list[str], found: int) -> None:
    """By each option alone, and by several; in words it is said that none is meant, or that there are more."""
    status, out, _ = run("--json", *options)
    assert (status, len(out.splitlines())) == (0, found)
    _, out, _ = run(*options)
    assert ("none of them matches" in out, "--limit 0 shows all" in out) == (
        found == 0,
        "--limit" in options and found == 1,
    )


@pytest.mark.usefixtures("kept")
def test_attempts_are_told(run: History) -> None:
    """Each in a line of its own below its file."""
    _, out, _ = run("--attempts", "--limit", "1")
    first, second = out.splitlines()[2:4]
    assert_says(first, "    1970-01-01 00:00:01.000 retriable", "0.50 s", "status 503", "busy")
    assert_says(second, "    1970-01-01 00:00:03.000 accepted", "0.25 s", "status 200", "stored")


@pytest.mark.usefixtures("kept")
def test_hours_are_summed_up(run: History) -> None:
    """A line for each, under a heading; as JSON with all that is known of it."""
    _, out, _ = run("--summary")
    heading, names, first, second = out.splitlines()
    assert_says(heading, "connector orders", "3 files accepted", "1 of them repeated", "30 rows")
    assert_says(heading, "3,702 bytes", "2 hours", "oldest record", "upload")
    assert names.split()[:4] == ["hour", "(UTC)", "files", "rows"]
    assert first.split()[:5] == ["2023-11-14", "22:00", "2", "20", "0.0"]
    assert second.endswith("records 1        refused 1")
    _, out, _ = run("--summary", "--json", "--partition", "1")
    assert [(one["hour"], one["files"], one["others"]) for one in map(json.loads, out.splitlines())] == [
        ("2023-11-14T22:00:00+00:00", 1, {}),
        ("2023-11-14T23:00:00+00:00", 0, {"refused": 1}),
    ]


@pytest.mark.parametrize(
    ("where", "status", "words"),
    [
        ("orders:0:3", 0, ("offset 3: accepted 2023-11-14 23:13:20.000 UTC", "in file topic-orders_partition-0_")),
        ("orders:0:12", 0, ("offset 12: delivered", "no file")),
        ("orders:1:25", 1, ("offset 25: not accepted", "refused")),
        ("orders:0:99", 1, ("offset 99: not delivered yet", "ends with offset 19")),
        ("other:0:3", 1, ("topic other", "topic-partition 0", "offset 3: not in the history")),
    ],
)
@pytest.mark.usefixtures("kept")
def test_an_offset_is_found(run: History, where: str, status: int, words: tuple[str, ...]) -> None:
    """In one line, and the exit status says whether it is delivered; the same as JSON."""
    found, out, _ = run("--where", where)
    assert (found, out.count("\n")) == (status, 1)
    assert_says(out, *words)
    _, out, _ = run("--where", where, "--json")
    assert json.loads(out)["delivered"] is (status == 0)


@pytest.mark.parametrize("options", [[], ["--summary"], ["--json"], ["--where", "orders:0:1"]])
def test_a_connector_that_sent_nothing(run: History, path: Path, options: list[str]) -> None:
    """It is said on standard error, and no file is made."""
    status, out, err = run(*options)
    assert (status, out) == (int("--where" in options), "")
    assert len(err.splitlines()) == 1
    assert_says(err, "connector orders", "no history", str(path), "from this machine", "DataFrames")
    assert not path.exists()
    _, _, err = run(**{"connect.ems.history.enable": "false"})
    assert "connect.ems.history.enable is false" in err


@pytest.mark.usefixtures("kept")
def test_without_files_all_connectors_of_a_folder_are_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the names that their folders stand for, below the system's temporary folder where none is named."""
    folder = path.parent.parent
    other = folder / "a%2Fb" / path.name
    other.parent.mkdir()
    (folder / "no connector").mkdir()
    with closing(write_history(other, HistorySettings())) as history:
        history.append_files([upload(0, 9, at_ms=NOW_MS)])
    assert main(["history", "--json", "--tmp-dir", str(folder)]) == 0
    told = [json.loads(line)["connector"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["a/b", "orders", "orders", "orders", "orders"]
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert main(["history", "--summary"]) == 0
    assert "a/b" in capsys.readouterr().out


def test_without_files_all_connectors_of_a_worker_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those below the folder of its store, of each worker of a group; secrets of the worker file need not be there."""
    worker, store = tmp_path / "w.properties", tmp_path / "store"
    keys = ["bootstrap.servers=k:1", f"config.storage.folder={store}", "consumer.sasl.jaas.config=${env:ABSENT}"]
    worker.write_text("\n".join(keys))
    assert main(["history", "--worker", str(worker)]) == 2
    assert_says(capsys.readouterr().err, str(store / "connectors"), "no connector's history", "--tmp-dir")
    for folder in ("connectors/orders", "workers/a%3A1/connectors/items"):
        path = store / folder / ".history.db"
        path.parent.mkdir(parents=True)
        with closing(write_history(path, HistorySettings())) as history:
            history.append_files([upload(0, 9, at_ms=NOW_MS)])
    assert main(["history", "--json", "--worker", str(worker)]) == 0
    assert [json.loads(line)["connector"] for line in capsys.readouterr().out.splitlines()] == ["orders", "items"]
    assert main(["history", "--worker", str(worker), "--tmp-dir", str(store)]) == 2
    assert_says(capsys.readouterr().err, "[--tmp-dir]", "--worker", "remove one")
    for wrong in (tmp_path / "absent", tmp_path):
        assert main(["history", "--worker", str(wrong)]) == 2
        assert_says(capsys.readouterr().err, str(wrong))


def test_without_files_and_histories_the_cure_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder, and one that is not there, are errors of usage; so is a folder beside connector files."""
    for folder in (tmp_path, tmp_path / "absent"):
        assert main(["history", "--tmp-dir", str(folder)]) == 2
        err = capsys.readouterr().err
        assert_says(err, repr(str(folder)), "no connector's history", "--tmp-dir")
    assert main(["history", "--tmp-dir", str(tmp_path), "orders.properties"]) == 2
    assert_line_says(capsys.readouterr().err, "--tmp-dir", "not go with", "connector files")


def test_a_damaged_history_is_told(run: History, path: Path) -> None:
    """With the file and the cure, and status 1; the file stays as it is."""
    path.write_bytes(b"no database" * 1_000)
    for options in ([], ["--summary"], ["--where", "orders:0:1"]):
        status, _, err = run(*options)
        assert status == 1
        assert_line_says(err, "connector orders", str(path), "cannot be read", "creates a damaged one")
    assert path.read_bytes() == b"no database" * 1_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--limit", "-1"], ("[--limit]", "-1 is less than 0")),
        (["--partition", "-1"], ("[--partition]", "-1 is less than 0")),
        (["--offset", "9-3"], ("[--offset]", "9 is more than 3")),
        (["--since", "2023-11-15", "--until", "2023-11-14"], ("[--since]", "not before --until")),
        (["--summary", "--attempts"], ("[--attempts]",)),
        (["--where", "orders:0:1", "--topic", "orders", "--summary"], ("[--summary]", "--where says all")),
    ],
)
def test_options_that_contradict_each_other(run: History, options: list[str], words: tuple[str, ...]) -> None:
    """Are named with the cure, with status 2."""
    status, out, err = run(*options)
    assert (status, out) == (2, "")
    assert_line_says(err, "Invalid", *words)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--offset", "x"), ("--offset", "-3"), ("--offset", "1" + "0" * 20), ("--where", "orders:1"), ("--since", "soon")],
)
def test_values_that_are_none(run: History, option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Are refused with an example."""
    with pytest.raises(SystemExit) as caught:
        run(f"{option}={value}")
    assert caught.value.code == 2
    assert value in capsys.readouterr().err


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("folder", ["named", "the worker's"])
def test_secrets_need_not_be_there(run: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A local file is read; name and folder must be known, and all else in the connector file be right."""
    bucket = {"connector.class": "parquet_sink.S3Sink", "connect.ems.s3.bucket": "lake", "connect.ems.endpoint": ""}
    keys = {f"connect.ems.s3.{key}": "${env:ABSENT}" for key in ("access.key.id", "secret.access.key")}
    if folder != "named":
        monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
        (tmp_path / "state").mkdir()
        (tmp_path / "tmp").rename(tmp_path / "state" / "connectors")
        keys["connect.ems.tmp.dir"] = ""
    status, out, err = run(**bucket, **keys)
    assert (status, err) == (0, "")
    assert out.startswith("connector orders: 4 uploads from ")
    for wrong in ({"name": "${env:ABSENT}"}, {"connect.ems.commit.records": "-1"}):
        status, _, err = run(**bucket, **keys, **wrong)
        assert status == 2
        assert "${env:ABSENT}" in err


def test_a_bucket_has_no_table(path: Path, run: History) -> None:
    """Neither in the list of uploads nor where an offset is."""
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([upload(0, 9, at_ms=NOW_MS, table="")])
        history.append_ranges([span(0, 10, at_ms=NOW_MS, done_until=10)])
    _, listed, _ = run()
    _, found, _ = run("--where", "orders:0:3")
    assert_says(listed, "2 attempts", "status 200", "id job-1")
    assert "10 rows, at " in found
    assert ", table" not in listed + found
