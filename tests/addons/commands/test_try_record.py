"""`parquet-sink try` at the command line, with records of files."""

import json
from pathlib import Path

import pytest

from parquet_sink.cli.main import main
from parquet_sink.errors import TopicGone
from parquet_sink.kafka import one_record
from tests.messages import assert_line_says, assert_says

FILE = """\
name=orders
topics=TOPICS
value.converter=json
value.converter.schemas.enable=false
connect.ems.endpoint=https://h/x
connect.ems.authorization.key=AppKey canary
connect.ems.target.table=ORDERS
connect.ems.commit.size.bytes=100000
connect.ems.commit.records=10
connect.ems.commit.interval.ms=1000
transforms=c
transforms.c.type=Cast
transforms.c.spec=qty:string
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A connector file, and records."""
    (tmp_path / "c.properties").write_text(FILE.replace("TOPICS", "orders"), encoding="utf-8")
    (tmp_path / "two.properties").write_text(FILE.replace("TOPICS", "a,b"), encoding="utf-8")
    (tmp_path / "good.json").write_text('{"qty": 2}', encoding="utf-8")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "empty").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def warnings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was said on standard error."""
    return capsys.readouterr().err.splitlines()


def test_a_record_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its steps and its row, with the time that was given."""
    assert main(["try", "c.properties", "--value", "good.json", "--timestamp", "1700000000000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("timestamp 1700000000000 (2023-11-14T22:13:20.000+00:00)")
    assert "transforms.c (Cast)" in lines
    assert '  value    {"qty": "2"}' in lines
    assert "1 row of table ORDERS" in lines


def test_warnings_of_the_file_are_on_standard_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `run` tells them, and nothing of them between the steps."""
    (folder / "f.properties").write_text(FILE.replace("TOPICS", "orders").replace("=Cast", "=Filter"), encoding="utf-8")
    assert main(["try", "f.properties", "--value", "good.json"]) == 0
    found = capsys.readouterr()
    assert "bootstrap.servers" not in found.err  # no broker is asked for a file
    assert "It drops every record" in found.err
    assert "Warning" not in found.out


def test_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object on standard output, with key and headers as they were given."""
    arguments = ["--key", "good.json", "--header", "a=b=c", "--partition", "4", "--json"]
    assert main(["try", "c.properties", "--value", "good.json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"][0]["qty"], found["rows"][0]["kafkaPartition"]) == ("2", 4)
    assert [(one["name"], one["value"]) for one in found["steps"][0]["headers"]] == [("a", "b=c")]
    assert found["steps"][0]["key"]["value"] == '{"qty": 2}'


def test_a_tombstone_that_becomes_a_row_of_its_topics_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its key is shown decoded, and the table is that of the topic."""
    more = {
        "key.converter": "json",
        "key.converter.schemas.enable": "false",
        "connect.ems.data.primary.key": "qty",
        "connect.ems.tombstones": "row",
        "connect.ems.target.table.map": "a:TABLE_A",
    }
    text = (folder / "two.properties").read_text() + "".join(f"{key}={value}\n" for key, value in more.items())
    (folder / "rows.properties").write_text(text, encoding="utf-8")
    (folder / "null.json").write_text("null", encoding="utf-8")
    assert main(["try", "rows.properties", "--topic", "a", "--value", "null.json", "--key", "good.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert '  key      {"qty": 2}' in lines
    assert "1 row of table TABLE_A" in lines
    assert '"qty": 2, ' in lines[-2]
    assert '"__deleted": true' in lines[-2]


def test_a_rejected_record_has_a_status_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So a script can tell."""
    assert main(["try", "c.properties", "--value", "bad.json"]) == 1
    assert "no row: rejected (VALUE_CONVERTER): " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], ("[--offset]", "either --offset")),
        (["--value", "good.json", "--offset", "3"], ("[--offset]", "either --offset")),
        (["--offset", "3", "--key", "good.json"], ("[--key]", "with --value alone")),
        (["--offset", "3", "--header", "a=b"], ("[--header]", "with --value alone")),
        (["--offset", "3", "--timestamp", "0"], ("[--timestamp]", "with --value alone")),
        (["--offset", "-1"], ("[--offset]", "-1 is less than 0")),
        (["--value", "good.json", "--header", "a"], ("[--header]", '"a" has no =', "NAME=TEXT")),
        (["--value", "absent"], ("[--value]", "absent", "No such file or directory", "correct the path")),
        (["--value", "empty"], ("[--value]", "is empty", "the record's bytes")),
        (["--value", "good.json", "--key", "empty"], ("[--key]", "is empty")),
    ],
)
def test_a_wrong_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: tuple[str, ...]
) -> None:
    """Names the option and the cure."""
    assert main(["try", "c.properties", *arguments]) == 2
    assert_line_says(capsys.readouterr().err, "Invalid", *said)


def test_a_time_of_microseconds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A timestamp beyond the years of Python is shown, like any that Kafka can hold."""
    assert main(["try", "c.properties", "--value", "good.json", "--timestamp", "1700000000000000"]) == 0
    assert "timestamp 1700000000000000 (55840-11-08T22:13:20.000Z)\n" in capsys.readouterr().out
    for option, most in (("--timestamp", 2**63 - 1), ("--partition", 2**31 - 1)):
        assert main(["try", "c.properties", "--value", "good.json", option, str(most)]) == 0
        assert main(["try", "c.properties", "--value", "good.json", option, str(most + 1)]) == 2
        assert_line_says(capsys.readouterr().err, f"Invalid [{option}]", f"{most + 1} is more than {most}")


def test_the_topic_must_be_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A connector that reads several does not tell."""
    assert main(["try", "two.properties", "--value", "good.json"]) == 2
    assert_line_says(capsys.readouterr().err, "Invalid [--topic]", "more than one", "name the record's")
    assert main(["try", "two.properties", "--value", "good.json", "--topic", "b"]) == 0
    assert warnings(capsys) == []


def test_a_topic_that_the_connector_does_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dead-letter topic, say, or a slip: the record is shown, and it is said."""
    assert main(["try", "two.properties", "--value", "good.json", "--topic", "letters"]) == 0
    (said,) = warnings(capsys)
    assert_says(said, "[--topic]", "not read letters", "a, b", "if it did")


@pytest.mark.parametrize(
    ("more", "said"), [(["--topic", "ordres"], ("ordres", "does not exist", "correct --topic")), ([], ("[topics]",))]
)
def test_a_topic_that_is_not_there(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    said: tuple[str, ...],
) -> None:
    """The option is at fault where the topic comes from it, else the connector file."""

    def gone(*_: object) -> None:
        raise TopicGone("Topic x does not exist on b:9. Create the topic, or correct [topics].")

    monkeypatch.setattr(one_record, "read_one", gone)
    assert main(["try", "c.properties", "--bootstrap-servers", "b:9", "--offset", "1", *more]) in (1, 2)
    assert_line_says(capsys.readouterr().err, *said)


def test_folders_are_not_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is kept, so neither a folder that may be emptied nor one that cannot be used is spoken of."""
    for tmp in ("/tmp", "/dev/null"):
        more = f"connect.ems.tmp.dir={tmp}\nerrors.tolerance=all\n"
        (folder / "f.properties").write_text(FILE.replace("TOPICS", "orders") + more, encoding="utf-8")
        assert main(["try", "f.properties", "--value", "good.json"]) == 0
        assert warnings(capsys) == []


def test_a_wrong_file_is_told_as_by_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what is wrong in it, and nothing secret."""
    (folder / "c.properties").write_text(FILE.replace("qty:string", "qty:text"), encoding="utf-8")
    assert main(["try", "c.properties", "--value", "good.json"]) == 2
    error = capsys.readouterr().err
    assert "Invalid [transforms.c.spec]" in error
    assert "canary" not in error


def test_a_topic_whose_files_cannot_go_anywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused like by `run`, and not shown with another table."""
    rules = "connect.ems.target.table.map=orders-?(.*):$1\n"
    text = FILE.replace("topics=TOPICS", "topics.regex=orders.*") + rules
    (folder / "map.properties").write_text(text, encoding="utf-8")
    assert main(["try", "map.properties", "--topic", "orders-eu", "--value", "good.json"]) == 0
    assert "1 row of table eu" in capsys.readouterr().out
    assert main(["try", "map.properties", "--topic", "orders", "--value", "good.json"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert_line_says(told.err, "Topic orders", 'table ""', "orders-?(.*):$1")
