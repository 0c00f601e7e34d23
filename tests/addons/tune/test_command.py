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
    assert out.startswith("load: 30 an hour of 300 B, 2 topic-partitions\n")
    assert "objective: p99 freshness of 5 min: kept" in out
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
        assert found["why"][0].startswith(f"No settings that keep {first} keep {second} as well; ")
        assert "of those that keep what matters more" in found["limits"][0]
    assert kept == [[True, False], [True, False]]


def test_files_that_cannot_be_so_small(capsys: pytest.CaptureFixture[str]) -> None:
    """An objective for files smaller than one with a single record is told to be just that."""
    assert cli.main([*STATED, "--json", "--file-size", "1KB"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wishes"] == [{"wish": "files of about 1 kB", "kept": False}]
    assert "one of a single record has 3.08 kB, and commit.size.bytes cannot be below 100 kB" in found["limits"][0]


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
        (["--rate", "5"], "argument --rate: '5' is not a rate above 0, such as 500/s"),
        (["--freshness", "p98:5s"], "argument --freshness: 'p98:5s': there is p50, p95, p99 and max"),
        (["--freshness", "5"], "argument --freshness: '5' is not a duration above 0"),
        (["--max-files-per-hour", "0"], "argument --max-files-per-hour: '0' is not a number of files above 0"),
        (["--file-size", "big"], "argument --file-size: 'big' is not a size above 0"),
        (["--partitions", "0"], "argument --partitions: '0' is not a whole number from 1 to 10,000"),
        (["--skew", "9"], "argument --skew: '9' is not a number from 0 to 5"),
        (["--records", "-5"], "argument --records: "),
        (["--bursts", "5/1m:2m"], "cannot come each 1m"),
    ],
)
def test_values_that_are_none(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A value that cannot be read is named with its option and an example."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["tune", *words])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Invalid [connector.properties]. It is missing; name the connector file, or state a load: --rate 500/s"),
        (["--rate", "1/s", "--partitions", "3"], "Invalid [--record-bytes]. It is missing, and --rate needs it"),
        (["--skew", "1", "a.properties"], "Invalid [--skew]. It goes with --rate alone; remove it, or add --rate."),
        (["--sample", "1m", "--history", "--", "a.properties"], "--sample or --records and --history are given"),
        ([*STATED[1:], "--apply"], "Invalid [--apply]. There is no connector file to write to"),
        ([*STATED[1:], "--plot", "x.gif"], "Invalid [--plot]. x.gif does not end in .png, .svg, .pdf"),
        ([*STATED[1:], "--plot", "/no/x.png"], "Invalid [--plot]. There is no folder /no; make it, or correct the"),
        (["no.properties"], "Invalid file [no.properties]. It cannot be read (No such file or directory)"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing or contradicts is told at once, with the cure, and the status is 2."""
    assert cli.main(["tune", *words]) == 2
    assert told in capsys.readouterr().err


def test_without_a_history(connector: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A connector that has not run here is told so, with what to do instead."""
    assert cli.main(["tune", "--history", "--bootstrap-servers", "nowhere:9092", "--", str(connector)]) == 2
    told = capsys.readouterr().err
    assert "Connector orders has no history in" in told
    assert "--sample 10m" in told


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
