"""`parquet-sink tune`: options, the report in words and as JSON, the connector file, and what is refused."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from parquet_sink.addons.tune.command.command import Lines
from parquet_sink.addons.tune.command.flow import machine_of
from parquet_sink.cli import main as cli
from parquet_sink.cli.main import parser_for
from tests.messages import assert_says

STATED = ["tune", "--rate", "30/h", "--record-bytes", "300", "--partitions", "2"]
FILE = """\
# orders of the shop
name=orders
topics=orders
connect.ems.endpoint=https://team.example/api
connect.ems.authorization.key=AppKey secret-canary
connect.ems.target.table=ORDERS
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false

connect.ems.commit.size.bytes = 5000000
connect.ems.commit.records = 20000
# two seconds
connect.ems.commit.interval.ms = 2000
"""


@pytest.fixture
def connector(tmp_path: Path) -> Path:
    """A connector file."""
    path = tmp_path / "orders.properties"
    path.write_text(f"{FILE}connect.ems.tmp.dir={tmp_path}/tmp\n")
    return path


def test_a_declared_load_needs_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Words are enough: the report has the load, a table, the objectives, why, and a block to paste."""
    assert cli.main([*STATED, "--freshness", "5m", "--max-files-per-hour", "100"]) == 0
    out = capsys.readouterr().out
    first, *rest = out.splitlines()
    assert_says(first, "load", "30 an hour", "300 B", "2 topic-partitions")
    freshness, files = (line for line in rest if line.startswith("objective"))
    assert_says(freshness, "p99 freshness of 5 min", "kept")
    assert_says(files, "100", "kept")
    block = out.split("(simulated by parquet-sink tune)\n")[1].splitlines()
    assert [line.split("=")[0] for line in block] == [
        *("connect.ems.commit.size.bytes", "connect.ems.commit.records", "connect.ems.commit.interval.ms")
    ]
    assert 60_000 < int(block[2].split("=")[1]) < 300_000
    assert block[:2] == ["connect.ems.commit.size.bytes=10000000", "connect.ems.commit.records=100000"]
    assert "as you run now" not in out


@pytest.mark.parametrize(
    ("options", "slots", "connectors"),
    [
        ((), 4, 1),
        (("--connectors", "5"), 8, 5),
        (("--slots", "3"), 3, 1),
        (("--connectors", "6", "--slots", "2"), 2, 6),
    ],
)
def test_who_shares_the_process_is_simulated(options: Sequence[str], slots: int, connectors: int) -> None:
    """Connectors and slots as the options say; by itself the sink takes three slots more than connectors."""
    words = [*STATED, *options]
    machine = machine_of(parser_for(words).parse_args(words), None)
    assert (machine.slots, machine.connectors) == (slots, connectors)


def test_json_is_all_that_is_printed(connector: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json standard output is one object with every part of the report, and no secret."""
    assert cli.main([*STATED, "--json", "--freshness", "max:60s", str(connector)]) == 0
    out = capsys.readouterr().out
    found = json.loads(out)
    assert {"load", "durations", "machine", "wishes", "present", "recommended", "front", "why", "limits"} < set(found)
    assert found["wishes"] == [{"wish": "max freshness of 60 s", "kept": True}]
    assert found["present"]["keys"] == {
        "connect.ems.commit.size.bytes": 5_000_000,
        "connect.ems.commit.records": 20_000,
        "connect.ems.commit.interval.ms": 2_000,
    }
    assert found["recommended"]["freshness"]["max_s"] <= 60
    assert len(found["load"]["partitions"]) == 2
    assert "canary" not in out


def test_the_order_of_objectives_is_their_importance(capsys: pytest.CaptureFixture[str]) -> None:
    """Of two objectives that exclude each other the first one is kept."""
    fresh, few = ["--freshness", "10s"], ["--max-files-per-hour", "4"]
    kept = []
    for order in ([*fresh, *few], [*few, *fresh]):
        assert cli.main([*STATED, "--json", *order]) == 0
        found = json.loads(capsys.readouterr().out)
        kept.append([one["kept"] for one in found["wishes"]])
        first, second = (one["wish"] for one in found["wishes"])
        assert_says(found["why"][0], "No settings", f"keep {first}", f"keep {second}")
        assert_says(found["limits"][0], "keep what matters more")
    assert kept == [[True, False], [True, False]]


def test_files_that_cannot_be_so_small(capsys: pytest.CaptureFixture[str]) -> None:
    """An objective for files smaller than one with a single record is told to be just that."""
    assert cli.main([*STATED, "--json", "--file-size", "1KB"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wishes"] == [{"wish": "files of about 1 kB", "kept": False}]
    assert_says(found["limits"][0], "a single record", "3.08 kB", "commit.size.bytes", "below 100 kB")


def test_apply_writes_three_keys(connector: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The change is shown, then written; comments, order and all else stay; a second time there is nothing to do."""
    words = [*STATED, "--max-files-per-hour", "10", "--apply", str(connector)]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    before, after = FILE.splitlines(), connector.read_text().splitlines()
    changed = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    assert [old for old, _ in changed] == ["connect.ems.commit.interval.ms = 2000"]
    assert f"-{changed[0][0]}\n+{changed[0][1]}\n" in out
    assert cli.main(words) == 0
    assert "nothing is written" in capsys.readouterr().out


def test_a_json_file_gets_a_json_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is to be pasted has the form of the file, which --apply keeps."""
    path = tmp_path / "orders.json"
    pairs = dict(line.replace(" = ", "=").split("=", 1) for line in FILE.splitlines() if line and line[0] != "#")
    path.write_text(json.dumps({"name": pairs.pop("name"), "config": {**pairs, "connect.ems.tmp.dir": str(tmp_path)}}))
    assert cli.main([*STATED, "--freshness", "60s", "--apply", str(path)]) == 0
    assert '    "connect.ems.commit.interval.ms": ' in capsys.readouterr().out
    assert json.loads(path.read_text())["config"]["connect.ems.commit.interval.ms"].isdigit()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rate", "5"], ("--rate", "'5'", "not a rate", "500/s")),
        (["--freshness", "p98:5s"], ("--freshness", "'p98:5s'", "p50, p95, p99 and max", "p95:30s")),
        (["--freshness", "5"], ("--freshness", "'5'", "not a duration", "30s")),
        (["--max-files-per-hour", "0"], ("--max-files-per-hour", "'0'", "not a number", "250")),
        (["--file-size", "big"], ("--file-size", "'big'", "not a size", "10MB")),
        (["--partitions", "0"], ("--partitions", "'0'", "not a whole number", "1 to 10,000")),
        (["--skew", "9"], ("--skew", "'9'", "not a number", "0 to 5")),
        (["--records", "-5"], ("--records", "'-5'", "not a whole number")),
        (["--bursts", "5/1m:2m"], ("--bursts", "'5/1m:2m'", "cannot come each 1m")),
    ],
)
def test_values_that_are_none(words: list[str], told: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A value that cannot be read is named with its option and an example."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["tune", *words])
    assert ended.value.code == 2
    assert_says(capsys.readouterr().err, *told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], ("[connector.properties]", "missing", "name the connector file", "--rate 500/s")),
        (["--rate", "1/s", "--partitions", "3"], ("[--record-bytes]", "missing", "--rate needs it", "for example")),
        (["--skew", "1", "a.properties"], ("[--skew]", "with --rate alone", "remove it", "add --rate")),
        (
            ["--sample", "1m", "--history", "--", "a.properties"],
            ("[--history]", "--sample or --records and --history", "keep one"),
        ),
        ([*STATED[1:], "--apply"], ("[--apply]", "no connector file", "name it", "leave --apply out")),
        ([*STATED[1:], "--plot", "x.gif"], ("[--plot]", "x.gif", "not end in", ".png, .svg, .pdf", "name the picture")),
        ([*STATED[1:], "--plot", "/no/x.png"], ("[--plot]", "no folder /no", "make it")),
        (["no.properties"], ("[no.properties]", "No such file or directory", "correct the path")),
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], told: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing or contradicts is told at once, with the cure, and the status is 2."""
    assert cli.main(["tune", *words]) == 2
    assert_says(capsys.readouterr().err, *told)


def test_without_a_history(connector: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A connector that has not run here is told so, with what to do instead."""
    assert cli.main(["tune", "--history", "--bootstrap-servers", "nowhere:9092", "--", str(connector)]) == 2
    told = capsys.readouterr().err
    assert_says(told, "Connector orders", "no history", "--sample 10m", "--rate")


def test_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--plot writes the picture in the format that its name says."""
    for name, begin in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert cli.main([*STATED, "--freshness", "60s", "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(begin)
        assert f"drawn: {tmp_path / name}" in capsys.readouterr().err


def test_lines_of_progress() -> None:
    """Progress in lines is told at the begin, the end, and every few seconds between."""
    now = [0.0]
    stream = io.StringIO()
    lines = Lines(stream, lambda: now[0])
    for done in range(101):
        now[0] += 0.125
        lines.tell("simulating settings", done, 100)
    assert stream.getvalue().splitlines() == [f"simulating settings: {done} of 100" for done in (0, 40, 80, 100)]
