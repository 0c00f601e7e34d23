"""Transforms, predicates and headers, compared with Kafka Connect's own: the same records and configurations to both.

Kafka's run in one Java process for all cases (`integration/transforms/Driver.java`), compiled here.
"""

import os
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Final

import pytest

from integration.transforms import differences, generate, header_values, kafka, ours, outcome
from integration.transforms import jars as connect_jars
from integration.transforms.cases import Case, Record, Step
from integration.transforms.forms import FORMS, Form
from integration.transforms.kafka import Kafka
from integration.transforms.known import KNOWN, REFUSALS, Known, KnownRefusal
from parquet_sink.addons.devkit import jars
from parquet_sink.convert.json import decoder as json_decoder

SEED: Final = int(os.environ.get("TRANSFORM_SEED", "9"))
FEW: Final = 1_200
MANY: Final = 40_000
TOLD: Final = 12


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


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])])
def test_records_become_what_kafka_makes_of_them(connect: Kafka, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, values, types, headers, topics, what is dropped and what fails are Kafka's, but for what is known.

    Each case is compared twice: in columns, and in the form that defines. Blocks are cut at random.
    """
    monkeypatch.setattr(json_decoder, "FEWEST", 2)
    found: list[str] = []
    made = islice(generate.cases(SEED), cases)
    while several := list(islice(made, 500)):
        theirs = [outcome.of_kafka(answer) for answer in connect.answers(several)]
        for number, (case, one) in enumerate(zip(several, theirs, strict=True)):
            for columns in (True, False):
                mine = ours.outcomes(case, Random(number), columns=columns)
                found += map(str, differences.compare(case, one, mine)[1])
    assert not found, f"{len(found)} differences, of which some:\n\n" + "\n\n".join(found[:: len(found) // TOLD + 1])


@pytest.mark.parametrize("known", [*FORMS, *KNOWN, *REFUSALS], ids=lambda known: known.name)
def test_a_known_difference_occurs(connect: Kafka, known: Form | Known | KnownRefusal) -> None:
    """Each difference of the table is there in its example: one that is none any more must leave the table."""
    (theirs,) = connect.answers([known.example])
    for columns in (True, False):
        mine = ours.outcomes(known.example, Random(1), columns=columns)
        seen, found = differences.compare(known.example, outcome.of_kafka(theirs), mine)
        assert not found, str(found[0])
        assert known.name in seen


@pytest.mark.parametrize("cases", [FEW // 4, pytest.param(MANY // 8, marks=pytest.mark.slow)])
def test_headers_are_what_kafka_makes_of_their_text(connect: Kafka, cases: int) -> None:
    """SimpleHeaderConverter finds the same values of the same types, but for what is known, all of which occurs."""
    made = list(islice(generate.header_cases(SEED), cases))
    theirs = [outcome.of_kafka(answer) for answer in connect.answers(made)]
    seen, found = header_values.compare(made, theirs)
    assert not found, f"{len(found)} differences, of which some:\n\n" + "\n\n".join(found[:TOLD])
    assert seen == {known.name for known in header_values.KNOWN}
