"""Transforms, predicates and headers, compared with Kafka Connect's own: the same records and configurations to both.

Kafka's run in one Java process for all cases (`integration/transforms/Driver.java`), compiled here.
"""

from collections.abc import Iterator

import pytest

from integration.transforms import jars as connect_jars
from integration.transforms import kafka, outcome
from integration.transforms.cases import Case, Record, Step
from integration.transforms.kafka import Kafka
from parquet_sink.devkit import jars


@pytest.fixture(scope="module")
def connect() -> Iterator[Kafka]:
    """Kafka Connect's transforms, running."""
    javac = kafka.compiler()
    if javac is None:
        pytest.skip("no Java compiler (javac) here: install a JDK to compare transforms with Kafka Connect's own")
    with kafka.started(javac) as running:
        yield running


def test_connects_jars_are_of_the_brokers_kafka() -> None:
    """Both lock files name one version, so that what both need is there once."""
    assert jars.read_lock(connect_jars.LOCK_FILE).kafka_version == jars.read_lock().kafka_version


def test_the_driver_tells_what_kafka_does(connect: Kafka) -> None:
    """Classes of values, headers, failures and what is dropped come out of the Java process as Kafka has them."""
    package = "org.apache.kafka.connect.transforms."
    steps = (
        Step(f"{package}Cast$Value", {"spec": "a:int8"}),
        Step(f"{package}Filter", {}, (f"{package}predicates.RecordIsTombstone", {})),
    )
    values = (b'{"a": 300}', b'{"a": "x"}', None)
    records = tuple(Record(None, value, (("h", b"2020-01-01"),)) for value in values)
    refused = Case((Step(f"{package}Cast$Value", {}),), ())
    found = connect.answers([Case(steps, records), refused])
    row, failed, dropped = outcome.of_kafka(found[0])
    assert row == outcome.Row(
        "orders",
        ("Map", ((("String", "a"), ("Byte", 44)),)),
        None,
        None,
        None,
        (("h", ("Date", 1_577_836_800_000)),),
    )
    assert failed == outcome.Failed("TRANSFORMATION", "")
    assert dropped == outcome.Dropped()
    assert outcome.of_kafka(found[1]) == outcome.Refused("")
