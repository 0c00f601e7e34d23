"""`parquet-sink parked`, as a user runs it: what it says, what it sends, and how it ends."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.commands.parked import replay as parked_drop
from parquet_sink.addons.commands.parked.replay import progress_lines
from parquet_sink.cli.main import main
from parquet_sink.history.sqlite import read_history
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.locks import replaying
from parquet_sink.parked.scan import scan
from tests.cli.connector_file import connector_lines
from tests.messages import assert_line_says, assert_says

Parked = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> ParkedFolder:
    """What connector orders has parked: eight records that are good by now, one that is not, one of a file."""
    found = ParkedFolder(str(tmp_path / "tmp" / "orders" / ".parked"), "orders", 10**8)
    found.prepare()
    late = [record(n, b'{"id":%d}' % n if n != 13 else b"\xff secret") for n in range(10, 19)]
    found.append("orders", 0, late, 1_700_000_100_000)
    refused = record(7, b'{"id":7}', 2, Stage.TASK_PUT, "the target refused file x: \x1b[31m422")
    found.append("orders", 2, [refused], 1_700_000_200_000)
    return found


def record(
    offset: int, value: bytes, partition: int = 0, stage: Stage = Stage.VALUE_CONVERTER, reason: str = "not JSON"
) -> Rejected:
    """One that was passed over."""
    headers = (("h", b"\xfe"),)
    return Rejected("orders", partition, offset, stage, reason, b"k", value, headers, 1_700_000_000_000 + offset)


@pytest.fixture
def parked(tmp_path: Path, folder: ParkedFolder, capsys: pytest.CaptureFixture[str]) -> Parked:
    """Runs the command; exit status, standard output and standard error."""
    (tmp_path / "out").mkdir()
    lines = connector_lines(tmp_path)
    path = tmp_path / "orders.properties"

    def run(action: str, *options: str, **more: str) -> tuple[int, str, str]:
        path.write_text("".join(f"{key}={value}\n" for key, value in {**lines, **more}.items()))
        capsys.readouterr()
        status = main(["parked", action, *options, str(path)])
        return status, *capsys.readouterr()

    return run


def sent(tmp_path: Path) -> list[int]:
    """The ids of all rows at the target."""
    files = sorted((tmp_path / "out" / "T").glob("*.parquet"))
    return sorted(row["id"] for file in files for row in pq.ParquetFile(file).read().to_pylist())


def test_list_groups_refused_files_by_the_answer(parked: Parked, folder: ParkedFolder) -> None:
    """Each file has a name of its own in its reason, and all of them one cause."""
    for first in range(20, 27):
        name = f"topic-orders_partition-2_firstOffset-{first}_lastOffset-{first}_bytes-{first * 7}_rows-1.parquet"
        reason = f"file {name} was refused: the target answered 422: {name}: no column id. Correct the table."
        folder.append("orders", 2, [record(first, b"{}", 2, Stage.TASK_PUT, reason)], 1_700_000_300_000)
    lines = [line.split(maxsplit=1) for line in parked("list")[1].splitlines() if "no column id" in line]
    ((count, cause),) = lines
    assert (count, "topic-orders" in cause) == ("7", False)
    assert_says(cause, "a file was refused", "answered 422: a file:", "no column id", "Correct the table")


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `list` says of a connector without `tmp.dir`, beside the worker that keeps its connectors in `store`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "system"))
    worker, path = tmp_path / "worker.properties", tmp_path / "orders.properties"
    worker.write_text(f"bootstrap.servers=localhost:9\nconfig.storage.folder={tmp_path / 'store'}\n")
    lines = {key: text for key, text in connector_lines(tmp_path).items() if not key.endswith("tmp.dir")}

    def run(**more: str) -> str:
        path.write_text("".join(f"{key}={value}\n" for key, value in {**lines, **more}.items()))
        capsys.readouterr()
        assert main(["parked", "list", "--json", "--worker", str(worker), str(path)]) == 0
        return capsys.readouterr().out

    return run


def test_what_a_worker_parked_is_found_below_its_store(
    tmp_path: Path, beside: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """Where the connector's file names no folder; two are told, and one that is named is taken."""
    (tmp_path / "out").mkdir()
    for place, count in (("system", 1), ("store/connectors", 2), ("named", 3)):
        base = tmp_path / place
        found = ParkedFolder(str(base / "orders" / ".parked"), "orders", 10**8)
        found.prepare()
        found.append("orders", 0, [record(n, b"{}") for n in range(count)], 1_700_000_100_000)
        said = beside(**({"connect.ems.tmp.dir": str(base)} if place == "named" else {}))
        assert json.loads(said)["records"] == count
    told = [one.getMessage() for one in caplog.records if "two folders" in one.getMessage()]
    assert len(told) == 1
    taken = tmp_path / "store" / "connectors" / "orders"
    assert_says(told[0], f"{taken}, which a worker made", "is taken", str(tmp_path / "system" / "orders"))


def test_list_tells_how_many_and_why(parked: Parked, folder: ParkedFolder) -> None:
    """By topic, stage and reason: counts, bytes, offsets, times; what a terminal must not see is escaped."""
    status, out, _ = parked("list")
    assert status == 0
    assert_line_says(out, "connector orders", "10 records parked", folder.path, "2 files")
    assert_line_says(out, "topic orders, VALUE_CONVERTER", "9 records")
    assert_line_says(out, "offsets 10 to 18", "topic-partition 0")
    assert_line_says(out, "records of 2023-11-14 22:13:20 UTC", "parked 2023-11-14 22:15:00 UTC")
    assert "9  not JSON" in out
    assert "\\u001b[31m422" in out
    assert "secret" not in out
    status, out, _ = parked("list", "--json", "--stage", "TASK_PUT")
    (group,) = map(json.loads, out.splitlines())
    assert (status, group["records"], group["offsets"], group["stage"]) == (0, 1, {"2": [7, 7]}, "TASK_PUT")


def test_list_sums_up_reasons_that_are_many(parked: Parked, folder: ParkedFolder) -> None:
    """Each record may have its own: the most frequent are told, the others counted."""
    own = [record(n, b"x", reason=f"reason {n}") for n in range(100, 130)]
    folder.append("orders", 0, own, 1)
    _, out, _ = parked("list")
    assert "VALUE_CONVERTER: 39 records" in out
    assert "21  for 21 other reasons" in out


def test_show_has_content_only_when_asked(parked: Parked) -> None:
    """Place, stage, reason and sizes; with --content the bytes, in base64 where they are no text."""
    status, out, err = parked("show", "--limit", "3")
    assert (status, len(out.splitlines())) == (0, 3)
    first = out.splitlines()[0]
    assert_says(first, "orders 0 at 10", "2023-11-14T22:13:20.010000+00:00", "VALUE_CONVERTER: not JSON", "key 1 bytes")
    assert_line_says(err, "7 more", "--limit 0")
    _, out, _ = parked("show", "--limit", "0")
    assert len(out.splitlines()) == 10
    assert "secret" not in out
    _, out, _ = parked("show", "--json", "--content", "--offset", "13")
    fields = json.loads(out)
    assert (fields["offset"], fields["key"], fields["value_base64"]) == (13, "k", "/yBzZWNyZXQ=")
    assert fields["header_values"] == [{"name": "h", "value_base64": "/g=="}]
    _, out, _ = parked("show", "--content", "--partition", "2")
    assert '\n  value: {"id":7}' in out


def test_times_of_microseconds(parked: Parked, folder: ParkedFolder) -> None:
    """A record whose time is beyond the years of Python is listed and shown with the last of them."""
    odd = replace(record(200, b"x", 5), timestamp_ms=1_700_000_000_000_000)
    folder.append("orders", 5, [odd, replace(odd, offset=201, timestamp_ms=0)], 1)
    _, out, _ = parked("list", "--partition", "5")
    assert "records of 9999-12-31 23:59:59 UTC" in out
    _, out, _ = parked("show", "--json", "--partition", "5")
    assert [json.loads(one)["timestamp"] for one in out.splitlines()] == ["9999-12-31T23:59:59.999000+00:00", None]


def test_replay_sends_what_is_good_now(parked: Parked, folder: ParkedFolder, tmp_path: Path) -> None:
    """What is accepted leaves the folder; what is rejected again stays, and the exit status says so."""
    status, out, _ = parked("replay", "--dry-run")
    assert (status, sent(tmp_path), scan(folder.path).rows) == (1, [], 10)
    assert_line_says(out, "connector orders", "9 would be done with", "1 would stay parked")
    status, out, _ = parked("replay")
    assert (status, sent(tmp_path), scan(folder.path).rows) == (1, [7, 10, 11, 12, 14, 15, 16, 17, 18], 1)
    assert_line_says(out, "orders, topic-partition 0", "8 accepted in 2 files", "without a row", "1 rejected again")
    assert_line_says(out, "connector orders", "9 records done with", "1 stay parked")
    status, out, _ = parked("replay", "--offset", "7-12")
    assert (status, len(out.splitlines())) == (0, 1)
    assert_says(out, "connector orders", "nothing to replay", folder.path)
    names = {path.name for path in (tmp_path / "tmp" / "orders").iterdir() if not path.name.startswith(".history.db")}
    assert names == {".parked", ".parquet-sink"}
    with closing(read_history(tmp_path / "tmp" / "orders" / ".history.db")) as history:
        assert [(one.origin, one.outcome) for one in history.files()] == [("parked replay", "accepted")] * 3


def test_replay_with_a_chosen_part_ends_well(parked: Parked, folder: ParkedFolder) -> None:
    """Only what was chosen decides about the exit status."""
    status, out, _ = parked("replay", "--stage", "TASK_PUT")
    assert (status, scan(folder.path).rows) == (0, 9)
    assert_line_says(out, "connector orders", "1 records done with", "0 stay parked")


def test_what_is_dropped_leaves_for_good(parked: Parked, folder: ParkedFolder, tmp_path: Path) -> None:
    """What was chosen and nothing else, once --yes says so; without, it is listed and stays."""
    status, out, err = parked("drop", "--offset", "13")
    assert (status, scan(folder.path).rows) == (1, 10)
    assert_line_says(out, "connector orders", "1 of 10 records parked")
    assert_line_says(err, "nothing is dropped", "1 record would be gone", "give --yes")
    status, out, err = parked("drop", "--topic", "nope")
    assert (status, "0 of 10 records" in out, err) == (0, True, "")
    status, out, _ = parked("drop", "--offset", "13", "--yes")
    assert status == 0
    assert_says(out.splitlines()[-1], "connector orders", "1 record dropped")
    assert 13 not in [row["offset"] for file in scan(folder.path).files for row in file.read().to_pylist()]
    assert parked("replay")[0] == 0
    assert (sent(tmp_path), scan(folder.path).rows) == ([7, 10, 11, 12, 14, 15, 16, 17, 18], 0)
    status, out, _ = parked("drop", "--all", "--yes")
    assert (status, len(out.splitlines())) == (0, 1)
    assert_says(out, "connector orders", "nothing is parked", folder.path)


def test_all_is_dropped_only_when_all_is_asked_for(parked: Parked, folder: ParkedFolder) -> None:
    """An option that was forgotten drops nothing, and two that contradict each other are refused."""
    status, _, err = parked("drop", "--yes")
    assert status == 2
    assert_says(err, "Invalid [--all]", "missing", "nothing chooses records")
    status, _, err = parked("drop", "--yes", "--all", "--stage", "TASK_PUT")
    assert status == 2
    assert_says(err, "Invalid [--all]", "chosen beside it")
    assert scan(folder.path).rows == 10
    assert_line_says(parked("drop", "--yes", "--all")[1], "connector orders", "10 records dropped")
    assert [path for path in Path(folder.path).rglob("*") if path.is_dir() or "parked-" in path.name] == []


def test_what_is_parked_meanwhile_is_not_dropped(
    parked: Parked, folder: ParkedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody saw it in the list."""
    listing = parked_drop.listing

    def later(*args: Any, **more: Any) -> Iterator[str]:
        yield from listing(*args, **more)
        folder.append("orders", 0, [record(99, b"x")], 1)

    monkeypatch.setattr(parked_drop, "listing", later)
    assert_line_says(parked("drop", "--yes", "--all")[1], "connector orders", "10 records dropped")
    (file,) = scan(folder.path).files
    assert (file.first_offset, file.rows) == (99, 1)


def test_nothing_is_dropped_while_it_is_replayed(parked: Parked, folder: ParkedFolder) -> None:
    """The rows of a replay would be other ones."""
    with replaying(folder.path):
        status, _, err = parked("drop", "--yes", "--all")
    assert (status, scan(folder.path).rows) == (1, 10)
    assert_says(err, "orders", "being replayed already", "wait")


def test_two_replays_at_once_are_refused(parked: Parked, folder: ParkedFolder) -> None:
    """The second says so, and does nothing."""
    with replaying(folder.path):
        status, _, err = parked("replay")
    assert (status, scan(folder.path).rows) == (1, 10)
    assert_says(err, "orders", "being replayed already", "wait")


def test_a_target_that_is_gone_ends_the_replay(parked: Parked, folder: ParkedFolder, tmp_path: Path) -> None:
    """All stays parked, and the message says why and where records are."""
    os.rename(tmp_path / "out", tmp_path / "elsewhere")
    (tmp_path / "out").mkdir(mode=0o500)
    options = {"connect.ems.max.retries": "1"}
    os.rmdir(tmp_path / "out")
    status, _, err = parked("replay", **options)
    assert status == 2
    assert "connect.ems.endpoint" in err
    assert scan(folder.path).rows == 10


def test_torn_files_are_named_and_kept(parked: Parked, folder: ParkedFolder) -> None:
    """Beside them all others are listed and replayed."""
    torn = Path(folder.path) / "orders" / "0" / "parked-000009.parquet"
    torn.write_bytes(b"PAR1")
    status, out, err = parked("list")
    assert (status, "10 records" in out) == (0, True)
    assert_line_says(err, str(torn), "skipped and kept", "not a whole Parquet file")
    parked("replay")
    assert torn.read_bytes() == b"PAR1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--content"), ("[--content]", "parked show", "remove it")),
        (("show", "--dry-run"), ("[--dry-run]", "parked replay", "remove it")),
        (("replay", "--json"), ("[--json]", "parked list or show", "remove it")),
        (("list", "--limit", "3"), ("[--limit]", "parked show", "remove it")),
        (("replay", "--yes"), ("[--yes]", "parked drop", "remove it")),
        (("show", "--limit", "-3"), ("[--limit]", "-3 is less than 0")),
    ],
)
def test_options_of_other_actions_are_refused(parked: Parked, words: tuple[str, ...], said: tuple[str, ...]) -> None:
    """An option without effect would be a promise that is not kept."""
    status, _, err = parked(*words)
    assert status == 2
    assert_line_says(err, "Invalid", *said)


@pytest.mark.parametrize("text", ["x", "-3", "3-", "3-x", "-"])
def test_offsets_that_are_none_are_refused(parked: Parked, text: str) -> None:
    """One offset, or two with a dash between them."""
    with pytest.raises(SystemExit) as caught:
        parked("show", f"--offset={text}")
    assert caught.value.code == 2


def test_a_connector_that_parked_nothing(parked: Parked) -> None:
    """It is no failure."""
    status, out, _ = parked("list", **{"connect.ems.parked.dir": "/nowhere"})
    assert (status, len(out.splitlines())) == (0, 1)
    assert_says(out, "connector orders", "nothing is parked", "/nowhere/orders")
    assert parked("show", name="other")[:2] == (0, "")


def test_check_and_run_warn_of_parked_records(
    parked: Parked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever checks a file learns that something waits for a hand."""
    parked("list")
    capsys.readouterr()
    assert main(["check", str(tmp_path / "orders.properties")]) == 0
    out = capsys.readouterr().out
    cure = "parquet-sink parked list"
    assert_line_says(out, "Warning [connect.ems.parked.dir]", "10 records", "0 % of connect.ems.parked.max.bytes", cure)


def test_long_work_tells_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """One line every few seconds, not one for each batch."""
    now = [0.0]
    progress = progress_lines("orders", lambda: now[0])
    caplog.set_level("INFO")
    for done in range(1_000, 13_000, 1_000):
        now[0] += 1
        progress("orders", 3, done, 12_000)
    for line, done in zip(caplog.messages, (5_000, 10_000), strict=True):
        assert_says(line, "connector orders", "orders, topic-partition 3", f"{done} of 12000")
