"""`parquet-sink test`: what it compares, how it says what differs, and which cases it refuses."""

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import fastavro
import pytest

from parquet_sink.addons.cases.records import Case, cases_of, records_of
from parquet_sink.cli.main import main
from parquet_sink.errors import InvalidConfiguration
from tests.messages import assert_says

CONNECTOR = {
    "name": "orders",
    "topics": "orders",
    "connect.ems.endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items",
    "connect.ems.authorization.key": "AppKey k",
    "connect.ems.target.table": "ORDERS",
    "connect.ems.commit.size.bytes": "10000000",
    "connect.ems.commit.records": "1000",
    "connect.ems.commit.interval.ms": "30000",
    "connect.ems.embed.kafka.metadata": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of cases, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    return tmp_path / "cases"


def status_of(*options: str, **changes: str) -> int:
    """The exit status; changes: of the connector file, `__` for a full stop."""
    keys = {**CONNECTOR, **{name.replace("__", "."): text for name, text in changes.items()}}
    Path("orders.properties").write_text("".join(f"{name}={text}\n" for name, text in keys.items()), encoding="utf-8")
    return main(["test", *options, "orders.properties", "cases"])


def expected(folder: Path, name: str) -> Any:
    """What a case expects."""
    return json.loads((folder / f"{name}.expected.json").read_text(encoding="utf-8"))


def test_what_came_is_kept_and_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an expectation a case differs; --update writes it; then it is equal, until a record changes."""
    records = folder / "a.jsonl"
    records.write_text('{"value": {"id": 1, "x": 0.5}}\n\n{"value_text": "no JSON"}\n', encoding="utf-8")
    assert status_of() == 1
    assert status_of("--update") == 0
    assert status_of() == 0
    found = expected(folder, "a")
    assert found["files"][0]["rows"] == [{"id": 1, "x": 0.5}]
    assert found["files"][0]["columns"] == ["id int64", "x double"]
    assert [(one["offset"], one["stage"]) for one in found["rejected"]] == [(1, "VALUE_CONVERTER")]
    records.write_text('{"value": {"id": 1, "x": 0.75}}\n{"value_text": "no JSON"}\n', encoding="utf-8")
    capsys.readouterr()
    assert status_of("--junit", "out.xml") == 1
    shown = capsys.readouterr().out
    assert '-        {"id": 1, "x": 0.5}' in shown
    assert '+        {"id": 1, "x": 0.75}' in shown
    suite = ET.parse("out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "0.75" in (suite.findtext("testcase/failure") or "")


def test_fields_of_a_row_may_stand_in_any_order(folder: Path) -> None:
    """What a person writes by hand is compared by what it says; a whole number is no fraction."""
    (folder / "a.json").write_text('[{"value": {"id": 1, "x": 2.0}}]', encoding="utf-8")
    assert status_of("--update") == 0
    file = folder / "a.expected.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('{"id": 1, "x": 2.0}', '{"x": 2.0, "id": 1}'), encoding="utf-8")
    assert status_of() == 0
    file.write_text(text.replace('"x": 2.0', '"x": 2'), encoding="utf-8")
    assert status_of() == 1


def test_schemas_come_from_the_folder(folder: Path) -> None:
    """Avro records find theirs there; one whose id is not there is rejected, with where to put it."""
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, fastavro.parse_schema(SCHEMA), {"id": 7})
    values = [(b"\0" + number.to_bytes(4, "big") + payload.getvalue()).hex() for number in (3, 4)]
    lines = [json.dumps({"value_hex": value}) for value in values]
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "schemas").mkdir()
    (folder / "schemas" / "3.avsc").write_text(json.dumps(SCHEMA), encoding="utf-8")
    avro = {
        "value__converter": "io.confluent.connect.avro.AvroConverter",
        "value__converter__schema__registry__url": "https://nobody.invalid",
        "value__converter__schemas__enable": "false",
    }
    assert status_of("--update", **avro) == 0
    found = expected(folder, "a")
    assert found["files"][0]["columns"] == ["id int64"]
    assert found["files"][0]["rows"] == [{"id": 7}]
    assert "4.avsc" in found["rejected"][0]["reason"]


def test_several_topics_tables_and_files(folder: Path) -> None:
    """Each topic-partition has its files, with their tables and names; a full file is followed by the next."""
    lines = [{"topic": topic, "offset": at, "value": {"id": at}} for topic in ("orders", "other") for at in (5, 9)]
    (folder / "a.json").write_text(json.dumps(lines), encoding="utf-8")
    changes = {"connect__ems__commit__records": "1", "connect__ems__target__table__map": "other:OTHER"}
    assert status_of("--update", topics="orders,other", **changes) == 0
    found = [(one["table"], one["name"].partition("_bytes")[0]) for one in expected(folder, "a")["files"]]
    assert found == [
        (table, f"topic-{topic}_partition-0_firstOffset-{at}_lastOffset-{at}")
        for table, topic in (("ORDERS", "orders"), ("OTHER", "other"))
        for at in (5, 9)
    ]


def test_random_salts_are_fixed(folder: Path) -> None:
    """What comes is the same each time."""
    (folder / "a.jsonl").write_text('{"value": {"mail": "x"}}', encoding="utf-8")
    hidden = {
        "connect__ems__obfuscation__fields": "mail",
        "connect__ems__obfuscation__method": "sha512",
        "connect__ems__obfuscation__sha512__randomsalt": "true",
    }
    assert status_of("--update", **hidden) == 0
    assert status_of(**hidden) == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"valu": 1}', '"valu" is unknown'),
        ("{}", "value is missing"),
        ("[1]", "not an object"),
        ('{"value": 1, "value_hex": "00"}', "keep one"),
        ('{"value_hex": "0g"}', "value_hex is not hex"),
        ('{"value_base64": "?"}', "value_base64 is not base64"),
        ('{"value_text": 1}', "value_text is not text"),
        ('{"value": 1, "partition": -1}', "partition is not a whole number"),
        ('{"value": 1, "offset": true}', "offset is not a whole number"),
        ('{"value": 1, "timestamp": 1.5}', "timestamp is not a whole number"),
        ('{"value": 1, "topic": 5}', "topic is missing"),
        ('{"value": 1, "headers": {"a": 1}}', 'header "a" is not text'),
        ('{"value": 1, "headers": 5}', "headers is not an object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_wrong_record(folder: Path, line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the file, the line, what is wrong and what to write; the status is 2."""
    (folder / "a.jsonl").write_text(f'{{"value": {{"id": 1}}}}\n{line}\n', encoding="utf-8")
    assert status_of() == 2
    error = capsys.readouterr().err
    assert_says(error, "a.jsonl, line 2", said)


def test_an_offset_must_be_behind_the_last(folder: Path) -> None:
    """The message says from where on."""
    (folder / "a.jsonl").write_text('{"value": 1, "offset": 5}\n{"value": 1, "offset": 5}\n', encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="at least 6"):
        records_of(Case(folder / "a.jsonl"), ["orders"])


def test_wrong_folders(folder: Path) -> None:
    """Nothing there, no records, an expectation that nothing belongs to, and two cases of one name are errors."""
    for paths, said in ((["none"], "There is no case"), (["cases"], "has no file of records")):
        with pytest.raises(InvalidConfiguration, match=said):
            cases_of(paths)
    (folder / "a.expected.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="has no case"):
        cases_of(["cases"])
    for ending in ("json", "jsonl"):
        (folder / f"a.{ending}").write_text("[]", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="would share"):
        cases_of(["cases"])


def test_a_wrong_expectation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and that --update writes it."""
    (folder / "a.jsonl").write_text('{"value": {"id": 1}}', encoding="utf-8")
    (folder / "a.expected.json").write_text("[" * 100_000, encoding="utf-8")
    assert status_of() == 2
    assert "--update" in capsys.readouterr().err
