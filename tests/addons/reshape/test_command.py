"""`parquet-sink reshape`: raw files in, files of a shaped connector out; what is wrong is said before that."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from parquet_sink.addons.reshape.command import report
from parquet_sink.addons.reshape.spans import RawRange
from parquet_sink.cli.main import main
from parquet_sink.model.records import RecordBatch
from tests.addons.reshape.raw_files import orders, raw_table, write
from tests.connectors.ems.connector_files import E
from tests.messages import assert_says

KEYS = {
    "name": "orders",
    "topics": "orders",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    f"{E}endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}


class Scene:
    """Raw files, a connector file, and a folder for what comes out."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.out, self._capsys = folder, folder / "out", capsys
        self.tmp, self.errors = folder / "tmp", ""

    def raw(self, first: int, last: int, name: str = "", **more: Any) -> Path:
        """A raw file of consecutive records."""
        return write(orders(range(first, last + 1), **more), self.folder / "raw" / f"{name or first}.parquet")

    def reshape(self, *inputs: object, options: Sequence[str] = (), **keys: str) -> tuple[int, dict[str, Any]]:
        """Exit status and summary. keys: with underscores for full stops; those that Connect has begin with `_`."""
        changed = {_name(key): text for key, text in keys.items()}
        path, words = self.folder / "c.properties", ["--json", "--out", str(self.out), *options]
        lines = {**KEYS, f"{E}tmp.dir": str(self.tmp), **changed}
        path.write_text("".join(f"{key}={text}\n" for key, text in lines.items()))
        status = main(["reshape", str(path), *map(str, inputs), *words])
        printed = self._capsys.readouterr()
        self.errors = printed.err
        return status, json.loads(printed.out or "{}")

    def rows(self) -> list[tuple[int, int]]:
        """Number and offset of each row, in order."""
        found = [row for path in self.out.glob("ORDERS/*.parquet") for row in pq.read_table(path).to_pylist()]
        return sorted((row["kafkaOffset"], row["n"]) for row in found)


def _name(key: str) -> str:
    return key[1:].replace("_", ".") if key.startswith("_") else E + key.replace("_", ".")


@pytest.fixture
def scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Scene:
    """Of one test."""
    return Scene(tmp_path, capsys)


def test_rows_of_all_files_come_once(scene: Scene) -> None:
    """Files in any order, some resent; gaps, and files of other topics, are told; no temporary file is left."""
    paths = [
        scene.raw(20, 29),
        scene.raw(0, 9),
        scene.raw(5, 12),
        scene.raw(0, 9, "again"),
        scene.raw(0, 1, "a", topic="a"),
    ]
    status, found = scene.reshape(*paths)
    assert (status, scene.rows()) == (0, [(n, n) for n in [*range(13), *range(20, 30)]])
    (one,) = found["ranges"]
    assert (one["records"], one["resent"], one["rows"], one["files"]) == (23, 15, 23, 1)
    assert (one["gaps"], found["left_out"], found["failure"]) == ([{"first": 13, "last": 19}], {"a": 1}, None)
    (path,) = (scene.out / "ORDERS").glob("*.parquet")
    assert path.name.startswith("topic-orders_partition-0_firstOffset-0_lastOffset-29_")
    assert [path.name for path in scene.tmp.rglob("*.parquet*")] == [".parquet-sink"]


def test_folders_and_patterns_are_entered(scene: Scene) -> None:
    """A folder with all that is below it, but for hidden ones; a file that is named twice is read once."""
    scene.raw(0, 4)
    scene.raw(5, 9, "below/5")
    scene.raw(10, 14, ".partial/10")
    folder = scene.folder / "raw"
    status, found = scene.reshape(folder, folder / "*.parquet", folder / "below" / "5.parquet")
    assert (status, found["records"], found["resent"]) == (0, 10, 0)


def test_a_second_run_changes_nothing(scene: Scene) -> None:
    """The same command makes the same files; what is apart joins them."""
    first, second = scene.raw(0, 9), scene.raw(10, 19)
    assert scene.reshape(first)[0] == 0
    before = {path.name: path.stat().st_mtime_ns for path in scene.out.glob("ORDERS/*.parquet")}
    assert scene.reshape(first)[0] == 0
    assert scene.reshape(second)[0] == 0
    after = {path.name: path.stat().st_mtime_ns for path in scene.out.glob("ORDERS/*.parquet")}
    assert (before.items() <= after.items(), len(before), len(after)) == (True, 1, 2)


def test_what_would_mix_is_refused(scene: Scene) -> None:
    """Other settings, other raw files of the same offsets, and a folder that something else fills."""
    first, all_ = scene.raw(0, 9), scene.raw(0, 19, "all")
    assert scene.reshape(first)[0] == 0
    assert scene.reshape(first, flattener_enable="false")[0] == 2
    assert_says(scene.errors, "[--out]", "other settings", "name a place")
    assert scene.reshape(all_)[0] == 2
    assert_says(scene.errors, "[--out]", "offsets 0 to 9", "other raw files", "name a place")
    scene.out = scene.folder / "raw"
    assert scene.reshape(first)[0] == 2
    assert_says(scene.errors, "[--out]", str(scene.out), "not empty", "name a place")


def test_wrong_files_are_all_named_before_anything_is_made(scene: Scene) -> None:
    """Files that are none, not whole, not raw, out of order or of several topic-partitions."""
    good, other = scene.raw(0, 9), scene.folder / "other"
    text, half, shaped = other / "a.parquet", other / "b.parquet", other / "c.parquet"
    mixed = write(raw_table_of([(0, 0), (1, 1)]), other / "d.parquet")
    disordered = write(orders([3, 4]).take([1, 0]), other / "e.parquet")
    text.write_text("no Parquet")
    half.write_bytes(good.read_bytes()[:-20])
    write(orders([1]).drop_columns(["value"]), shaped)
    (other / "empty").mkdir()
    wrong = [text, half, shaped, mixed, disordered]
    status, _ = scene.reshape(good, *wrong, other / "empty", other / "nothing-*")
    assert (status, scene.out.exists()) == (2, False)
    lines = scene.errors.splitlines()
    assert [line.split(" is not a raw file: ")[0] for line in lines if "not a raw file" in line] == [
        f"Invalid [FILES]. {path}" for path in wrong
    ]
    reasons = ("not a whole Parquet file", "no column value", "several topic-partitions", "offsets do not rise")
    assert_says(scene.errors, *reasons, "no .parquet file", "no such file")
    assert len(lines) == 7


def raw_table_of(places: Sequence[tuple[int, int]]) -> Any:
    """Raw rows of topic-partitions and offsets."""
    import pyarrow as pa

    return pa.concat_tables([orders([offset], partition=partition) for partition, offset in places])


def test_the_connector_file_is_a_shaped_one(scene: Scene) -> None:
    """One in raw mode is refused, as is one that reads none of the topics; what is wrong in it is told as ever."""
    path = scene.raw(0, 9)
    assert scene.reshape(path, mode="raw")[0] == 2
    assert_says(scene.errors, "[connect.ems.mode]", "raw", "a shaped one", "c.properties")
    assert scene.reshape(path, _topics="audit")[0] == 2
    assert_says(scene.errors, "[FILES]", "does not read (orders)", "name others")
    assert scene.reshape(path, explode_mode="Many", parquet_compression_codec="lzma")[0] == 2
    assert "Invalid [connect.ems.parquet.compression.codec]" in scene.errors
    assert not scene.out.exists()


def spoilt(scene: Scene) -> Path:
    """A raw file whose third record is not JSON."""
    batch = RecordBatch.of(
        *("orders", 0, range(5), range(1, 6), [b'{"n": 0}', None, b"{", b'{"n": 3}', b'{"n": 4}']),
        *([b"k"] * 5, [[("h", b"1")]] * 5),
        timestamp_types="CreateTime",
    )
    return write(raw_table(batch), scene.folder / "spoilt.parquet")


def test_a_rejected_record_stops_it(scene: Scene) -> None:
    """What comes before it is there; the message names it and the cure; nothing is said of Kafka's group."""
    status, found = scene.reshape(spoilt(scene))
    assert (status, scene.rows(), found["rows"]) == (1, [(0, 0)], 1)
    assert_says(found["failure"], "topic orders, topic-partition 0, offset 2: ", "errors.tolerance=all", "--rejected")
    assert "group" not in found["failure"]
    assert found["failure"] in scene.errors


def test_rejected_records_are_set_aside(scene: Scene) -> None:
    """With their bytes and the reason, once however often it is run, where the summary says."""
    path = spoilt(scene)
    for _ in range(2):
        status, found = scene.reshape(path, _errors_tolerance="all")
        assert (status, found["rejected"], found["rows"]) == (0, 1, 3)
    assert found["rejected_in"] == str(scene.out / "_rejected" / "orders")
    (kept,) = Path(found["rejected_in"]).rglob("*.parquet")
    (row,) = pq.read_table(kept).to_pylist()
    assert (row["offset"], row["key"], row["value"], row["stage"]) == (2, b"k", b"{", "VALUE_CONVERTER")
    scene.out = scene.folder / "elsewhere"
    _, found = scene.reshape(path, options=["--rejected", str(scene.folder / "bad")], _errors_tolerance="all")
    assert found["rejected_in"] == str(scene.folder / "bad" / "orders")


def test_interrupted_it_leaves_whole_files(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends it with 130 and no traceback; the same command goes on."""
    paths = [scene.raw(0, 9), scene.raw(0, 9, "p1", partition=1)]

    def interrupted(self: report.Progress, one: RawRange, records: int) -> None:
        if one.partition:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(report.Progress, "__call__", interrupted)
        status, _ = scene.reshape(*paths)
    assert (status, len(scene.rows())) == (130, 10)
    assert "interrupted; --out has whole files" in scene.errors
    assert not [*scene.tmp.rglob("*.part")]
    status, found = scene.reshape(*paths)
    assert (status, found["rows"], len(scene.rows())) == (0, 20, 20)


def test_a_file_that_breaks_off_in_its_values_is_named(scene: Scene) -> None:
    """What cannot be seen before is told when it is read; nothing of its range is left half done."""
    path = scene.raw(0, 9)
    data, at = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(1).column(1).data_page_offset
    data[at : at + 12] = b"\xff" * 12
    path.write_bytes(data)
    status, found = scene.reshape(path)
    assert (status, found["files"], scene.rows()) == (1, 0, [])
    assert_says(found["failure"], str(path), "cannot be read", "a whole one")


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all files, every few seconds."""
    seconds = iter([0.0, 1.0, 6.0, 6.0, 7.0])
    progress = report.Progress(1_000, lambda: next(seconds))
    one, other = RawRange("a", 0, ()), RawRange("b", 0, ())
    for place, records in ((one, 300), (other, 100), (other, 200)):
        progress(place, records)
    (line,) = capsys.readouterr().err.splitlines()
    assert_says(line, "reshape", "400 of 1,000 records")
