"""A topic's columns as they change: few files, nothing lost, and what is known survives as long as its folder."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from integration.conftest import TopicFactory
from integration.formats.files import METADATA, Uploaded, uploaded
from integration.formats.records import FORMATS, record
from integration.harness import Sink
from integration.registry import RegistryServer
from integration.wire import encode_avro
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.worker.loop.log_lines import describe_file
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

COUNT: Final = 40
Row = Mapping[str, Any]


def messages(rows: Sequence[Row]) -> list[tuple[None, bytes]]:
    """Records of JSON without a schema."""
    return [(None, json.dumps(row).encode()) for row in rows]


def of_topic(files: Sequence[Uploaded], topic: str) -> list[Uploaded]:
    """The files of one topic, in order."""
    return [file for file in files if file.name.startswith(f"topic-{topic}_")]


def payload(file: Uploaded) -> list[dict[str, Any]]:
    """Its rows without what is added of Kafka."""
    return [{name: value for name, value in row.items() if name not in METADATA} for row in file.rows]


def every_other(full: Row, less: Row) -> list[Row]:
    """Forty records, odd ones with less in them."""
    return [{"id": n, **(less if n % 2 else full)} for n in range(COUNT)]


ALTERNATING: Final = {
    "null": every_other({"note": "x"}, {"note": None}),
    "absent": every_other({"note": "x"}, {}),
    "amount": every_other({"amount": 1}, {"amount": 1.5}),
    "nested": every_other({"who": {"name": "Ada", "age": 1}}, {"who": {"name": "Ada"}}),
    "object": every_other({"who": {"name": "Ada"}}, {"who": None}),
    "late": every_other({}, {"note": "x"}),
}
COLUMNS: Final = {
    **{case: {"note": "string"} for case in ("null", "absent", "late")},
    "amount": {"amount": "double"},
    "nested": {"who_name": "string", "who_age": "int64"},
    "object": {"who_name": "string"},
}


def test_forty_records_make_one_file(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """JSON whose fields come and go, or are now whole and now not: one file each, where the reference makes forty."""
    topics = {case: topic(prefix=case) for case in ALTERNATING}
    for case, rows in ALTERNATING.items():
        broker.produce(topics[case], messages(rows))
    assert sink.drain(",".join(topics.values())).status is Status.DONE
    files = uploaded(sink)
    assert len(files) == len(topics)
    for case, name in topics.items():
        [file] = of_topic(files, name)
        assert file.columns == {"id": "int64", **COLUMNS[case], **METADATA}
        assert file.name.endswith("_rows-40.parquet")
        assert [row["id"] for row in file.rows] == list(range(COUNT))
        assert sink.offsets(name) == [COUNT]
    amounts = payload(of_topic(files, topics["amount"])[0])
    assert [row["amount"] for row in amounts] == [1.0, 1.5] * (COUNT // 2)
    notes = payload(of_topic(files, topics["null"])[0])
    assert [row["note"] for row in notes] == ["x", None] * (COUNT // 2)


PLAIN: Final = record("Event", id="long", who=record("Who", name="string"))
RICH: Final = record("Event", amount=["null", "double"], who=record("Who", age="int", name="string"), id="long")


@pytest.mark.parametrize("flatten", [True, False])
def test_two_avro_schemas_that_alternate_make_one_file(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, flatten: bool
) -> None:
    """Fields that only one of them has are null in the other's rows, also inside a struct; order does not matter."""
    name = topic()
    plain = [{"id": n, "who": {"name": "Ada"}} for n in range(0, COUNT, 2)]
    rich = [{"id": n, "who": {"name": "Bob", "age": n}, "amount": 0.5} for n in range(1, COUNT, 2)]
    pairs = zip(
        encode_avro(registry, name, json.dumps(PLAIN), plain),
        encode_avro(registry, name, json.dumps(RICH), rich),
        strict=True,
    )
    broker.produce(name, [(None, value) for pair in pairs for value in pair])
    run = sink.drain(name, FORMATS["avro"].properties(registry), flattener_enable=flatten)
    assert run.status is Status.DONE
    [file] = uploaded(sink)
    flat = {"who_name": "string", "amount": "double", "who_age": "int32"}
    nested = {"who": "struct<name: string not null, age: int32> required", "amount": "double"}
    id_ = "int64" if flatten else "int64 required"
    assert file.columns == {"id": id_, **(flat if flatten else nested), **METADATA}
    first, second = payload(file)[:2]
    if flatten:
        assert first == {"id": 0, "who_name": "Ada", "amount": None, "who_age": None}
        assert second == {"id": 1, "who_name": "Bob", "amount": 0.5, "who_age": 1}
    else:
        assert first == {"id": 0, "who": {"name": "Ada", "age": None}, "amount": None}
        assert second == {"id": 1, "who": {"name": "Bob", "age": 1}, "amount": 0.5}
    assert [row["id"] for row in file.rows] == list(range(COUNT))
    assert sink.offsets(name) == [COUNT]


def test_nested_fields_that_come_and_go_make_one_file(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """JSON without flattening: a field inside an object is absent from every other record."""
    name = topic()
    broker.produce(name, messages(ALTERNATING["nested"]))
    assert sink.drain(name, flattener_enable=False).status is Status.DONE
    [file] = uploaded(sink)
    assert file.columns == {"id": "int64", "who": "struct<name: string, age: int64>", **METADATA}
    assert [row["who"]["age"] for row in file.rows] == [1, None] * (COUNT // 2)


def test_types_that_cannot_share_a_column_begin_a_file(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer
) -> None:
    """The file before says why it was closed, in its receipt and its log line; columns begin anew."""
    name = topic()
    number, text = (record("Event", code=of, **more) for of, more in (("int", {"note": "string"}), ("string", {})))
    older = encode_avro(registry, name, json.dumps(number), [{"code": n, "note": "x"} for n in range(3)])
    newer = encode_avro(registry, name, json.dumps(text), [{"code": "A"}, {"code": "B"}])
    broker.produce(name, [(None, value) for value in (*older, *newer, *older)])
    run = sink.drain(name, FORMATS["avro"].properties(registry))
    found = [(receipt.first_offset, receipt.records, receipt.reason) for receipt in run.accepted]
    assert found == [(0, 3, "schema"), (3, 2, "schema"), (5, 3, "end_of_input")]
    assert "(3 rows, " in describe_file(run.accepted[0])
    assert ", rotated by schema, " in describe_file(run.accepted[0])
    assert [list(payload(file)[0]) for file in uploaded(sink, unfit=1)] == [
        ["code", "note"],
        ["code"],
        ["code", "note"],
    ]
    assert sink.offsets(name) == [8]


@pytest.mark.parametrize("format_", ["json", "avro"])
def test_columns_are_known_until_their_folder_is_lost(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, format_: str
) -> None:
    """They survive micro-batches and a restart, those of all topic-partitions; without tmp.dir they begin anew."""
    name = topic(2)
    properties = {**FORMATS[format_].properties(registry), "tasks.max": "2"}

    def produce(partition: int, row: Row) -> None:
        types = {"id": "long", "left": ["null", "string"], "right": ["null", "double"], "more": "int"}
        text = json.dumps(record("Event", **{key: types[key] for key in row}))
        values = encode_avro(registry, name, text, [row]) if format_ == "avro" else [json.dumps(row).encode()]
        broker.produce(name, [(None, values[0])], partition)

    def columns() -> list[set[str]]:
        return [set(payload(file)[0]) for file in sorted(uploaded(sink), key=lambda file: file.rows[0]["id"])]

    produce(0, {"id": 0, "left": "x"})
    produce(1, {"id": 1, "right": 0.5})
    run = sink.make({**sink.properties(name, commit_records=1), **properties}).start().until_records(2)
    run.until(lambda: sink.offsets(name, 2) == [1, 1])
    produce(0, {"id": 2})
    run.until_records(3).stop()
    produce(1, {"id": 3, "more": 1})
    sink.drain(name, properties)
    known = {"id", "left", "right"}
    assert columns() == [{"id", "left"}, {"id", "right"}, known, known | {"more"}]
    sink.remove_files()
    produce(0, {"id": 4})
    sink.drain(name, properties)
    assert columns()[-1] == {"id"}
    assert sink.offsets(name, 2) == [3, 2]


def test_exploded_records_are_counted_as_records(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """commit.records and a file's name count Kafka records, receipts both; rows of one record are never parted."""
    name = topic()
    lists = [[{"n": 10 * number + n, "k": "x"} for n in range(3)] for number in range(5)]
    rows = [*lists[:2], [], *lists[2:]]
    broker.produce(name, messages([{"lines": each} for each in rows]))
    run = sink.drain(name, commit_records=2, explode_mode="List")
    assert run.status is Status.DONE
    counted = [(r.first_offset, r.last_offset, r.records, r.rows) for r in run.accepted]
    assert counted == [(0, 1, 2, 6), (3, 4, 2, 6), (5, 5, 1, 3)]
    files = uploaded(sink)
    assert [file.name.rpartition("_")[2] for file in files] == ["rows-2.parquet", "rows-2.parquet", "rows-1.parquet"]
    assert [row["n"] for file in files for row in file.rows] == [line["n"] for each in lists for line in each]
    assert sink.offsets(name) == [6]


def test_types_that_keep_changing_are_told_once(
    sink: Sink, broker: Broker, topic: TopicFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """Each record forces a new file, all are delivered, and one line names connector, topic, column and types."""
    name = topic()
    rows = [{"who": {"code": "x" if number % 2 else number}} for number in range(15)]
    broker.produce(name, messages(rows))
    run = sink.drain(name)
    assert run.status is Status.DONE
    assert [receipt.reason for receipt in run.accepted] == ["schema"] * 14 + ["end_of_input"]
    assert run.records == len(rows)
    (said,) = [record.getMessage() for record in caplog.records if "ended the last 10 files" in record.getMessage()]
    assert_says(said, f"connector {run.settings.name}", f"topic {name}", "records' types", "1.0 rows per file")
    assert_says(said, "Column who_code", "a string", "a whole number")
