"""Which table a topic's files go to: the first pattern that is all of its name, else the connector's one."""

import pytest

from parquet_sink.connectors.check import Checked, format_report
from parquet_sink.connectors.loading import Loaded
from parquet_sink.targets.table_map import TableMap, parse
from parquet_sink.worker_config.worker_file import LoadedWorker
from tests.connectors.ems.connector_files import WORKER, E, load_file, settings_of
from tests.messages import assert_says

MAP = f"{E}target.table.map"


@pytest.mark.parametrize(
    ("text", "topic", "table"),
    [
        ("orders-(.*):ORDERS_$1,audit:AUDIT", "orders-eu", "ORDERS_eu"),
        ("orders-(.*):ORDERS_$1,audit:AUDIT", "audit", "AUDIT"),
        ("orders-(.*):ORDERS_$1", "my-orders-eu", None),
        ("orders-(.*):ORDERS_$1", "orders", None),
        (".*:ALL,orders:ORDERS", "orders", "ALL"),
        (" a : A , b : B ", "b", "B"),
        (r"a{1,2}[:,](\w+):T $1", "aa,x", "T x"),
        ("(?:a|b):T", "b", "T"),
        ("(?<x>.)-(?<y>.):${y}_${x}", "a-b", "b_a"),
        (r"a\.b:T", "a.b", "T"),
        (r"a\.b:T", "axb", None),
    ],
)
def test_the_first_pattern_that_is_all_of_the_name_decides(text: str, topic: str, table: str | None) -> None:
    """Commas within brackets belong to the pattern, the last colon stands before the table."""
    assert parse(text).table(topic) == table


def test_without_a_map_there_is_one_table() -> None:
    """For all topics."""
    assert (TableMap().table("orders"), TableMap().why_unusable("orders")) == (None, None)
    assert settings_of({}).table_of("orders") == "ORDERS"


def test_a_connector_has_several_tables() -> None:
    """Topics that no pattern is for go to the one table."""
    settings = settings_of({MAP: "orders-(.*):ORDERS_$1", "topics": "orders-eu,orders-us,other"})
    assert [settings.table_of(topic) for topic in settings.kafka.topics] == ["ORDERS_eu", "ORDERS_us", "ORDERS"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders", ('"orders"', "not a pattern", "write topics-(.*):TABLE_$1")),
        ("orders:", ('"orders:"', "not a pattern", "write topics-(.*):TABLE_$1")),
        (":ORDERS", ('":ORDERS"', "not a pattern", "write topics-(.*):TABLE_$1")),
        (",", ('""', "not a pattern", "write topics-(.*):TABLE_$1")),
        ("orders(:X", ('"orders(:X"', "not a regular expression", "correct it")),
        ("a:A,(b):$2", ('"(b):$2"', "names group 2", "has 1", "correct one")),
    ],
)
def test_a_map_that_is_wrong_is_refused(text: str, words: tuple[str, ...]) -> None:
    """With the part that is, and the cure."""
    (problem,) = load_file({MAP: text}).problems
    assert_says(problem, f"Invalid [{MAP}]", *words)


def test_a_topic_without_a_usable_table_is_refused() -> None:
    """When the file is read, if it names the topic."""
    (problem,) = load_file({MAP: "orders-?(.*):$1", "topics": "orders,orders-eu"}).problems
    assert_says(problem, f"[{MAP}]", "Topic orders", 'table ""', "by orders-?(.*):$1", "not a name", "correct the rule")
    settings = settings_of({MAP: "orders-?(.*):$1", "topics": None, "topics.regex": "orders.*"})
    assert settings.why_unusable("orders-eu") is None
    assert settings.why_unusable("orders") == problem


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"topics": "a-1,b"}, ("a-1 -> table A_1", "b -> table ORDERS")),
        (
            {"topics": None, "topics.regex": ".*"},
            ("topics matching .*", "a-(.*) -> table A_$1", "others -> table ORDERS"),
        ),
    ],
)
def test_check_tells_the_table_of_each_topic(more: dict[str, str | None], words: tuple[str, ...]) -> None:
    """Or the rules, where topics are found later."""
    settings = settings_of({MAP: "a-(.*):A_$1", **more})
    report = format_report(Checked(LoadedWorker(WORKER, ()), (Loaded(settings, (), (), "f"),), ()))
    (line,) = [one for one in report.splitlines() if "connector orders" in one]
    assert_says(line, "OK", *words)


def test_a_rule_that_no_named_topic_goes_by_is_warned_about() -> None:
    """It has a mistake in its pattern, or stands behind one that takes its topics; not so where topics are found."""
    rules = {MAP: "orders-(.*):O_$1,ordes-us:US,orders-eu:EU,audit:AUDIT"}
    loaded = load_file({**rules, "topics": "orders-eu,audit"})
    assert loaded.problems == ()
    mistake, behind = loaded.warnings
    assert_says(mistake, f"[{MAP}]", '"ordes-us:US"', "none of the topics", "no topic's name", "correct or remove it")
    assert_says(behind, f"[{MAP}]", '"orders-eu:EU"', "none of the topics", "takes orders-eu", "further to the front")
    assert load_file({**rules, "topics": None, "topics.regex": "orders.*"}).warnings == ()
