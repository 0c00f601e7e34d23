"""One connector, many tables, on a real broker: each topic's files go to its own table, with the same promise."""

import json
from pathlib import Path

from integration.conftest import TopicFactory
from integration.harness import Sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.worker.loop.log_lines import describe_file
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says


def numbered(count: int, first: int) -> list[tuple[None, bytes]]:
    """Records {"n": first} and so on."""
    return [(None, json.dumps({"n": n}).encode()) for n in range(first, first + count)]


def test_each_topic_has_its_table(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """By the first pattern, else the connector's; in order through a fault, and what comes again harms nothing."""
    eu, us, other = topic(prefix="orders-eu"), topic(prefix="orders-us"), topic(prefix="other")
    for number, name in enumerate((eu, us, other)):
        broker.produce(name, numbered(30, 100 * number))
    sink.target.client.order_faults({"status": 503, "next": 2, "match": f"{sink.table}_us"})
    tables = f"orders-(..)-.*:{sink.table}_$1,orders-.*:WRONG"
    keys = sink.properties(f"{eu},{us},{other}", commit_records=10, data_primary_key="n", target_table_map=tables)
    run = sink.make(keys, until_caught_up=True).start().until_ended()
    assert run.status is Status.DONE
    wanted = {f"{sink.table}_eu": eu, f"{sink.table}_us": us, sink.table: other}
    for number, (table, name) in enumerate(wanted.items()):
        assert [row["n"] for row in sink.rows(table)] == list(range(100 * number, 100 * number + 30))
        mine = [receipt for receipt in run.accepted if receipt.topic == name]
        assert {receipt.table for receipt in mine} == {None if table == sink.table else table}
        assert [receipt.first_offset for receipt in mine] == [0, 10, 20]
        assert sink.offsets(name) == [30]
    line = next(describe_file(receipt) for receipt in run.accepted if receipt.topic == eu)
    assert f" into table {sink.table}_eu (10 rows" in line
    sink.remove_files()
    again = sink.make({**keys, "consumer.override.group.id": f"again-{sink.name}"}, until_caught_up=True)
    repeated = again.start().until_ended()
    assert {receipt.file_name for receipt in repeated.accepted} == {receipt.file_name for receipt in run.accepted}
    assert {table: len(sink.rows(table)) for table in wanted} == dict.fromkeys(wanted, 30)


def test_new_topics_get_theirs_and_one_without_a_name_stops_it(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Topics that a pattern finds while it runs have their own folders; one that has none is named, and not read."""
    out = tmp_path / "out"
    out.mkdir()
    first = topic(prefix=f"{sink.name}-a")
    broker.produce(first, numbered(3, 0))
    keys = sink.properties("unused", endpoint=f"directory:{out}", target_table_map=f"{sink.name}-?(.?).*:$1")
    keys |= {"topics.regex": f"{sink.name}.*", "consumer.override.metadata.max.age.ms": "500"}
    wanted = {key: text for key, text in keys.items() if key not in ("topics", "connect.ems.authorization.key")}
    run = sink.make(wanted).start().until_records(3)
    second = topic(prefix=f"{sink.name}-b")
    broker.produce(second, numbered(2, 0))
    run.until_records(5)
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]
    assert [receipt.table for receipt in run.accepted] == ["a", "b"]
    broker.create_topic(sink.name, 1)
    broker.produce(sink.name, numbered(1, 0))
    run.until_ended()
    assert run.status is Status.FAILED
    assert_says(run.failure.message, f"Topic {sink.name}", 'table ""')
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]
    assert (sink.offsets(first), sink.offsets(second), sink.offsets(sink.name)) == ([3], [2], [None])
