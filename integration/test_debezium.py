"""ExtractNewRecordState, compared with Debezium's own class: the same change events and settings to both."""

import os
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any, Final

import pytest

from integration.transforms import debezium, differences, jars, kafka, ours, outcome
from integration.transforms.cases import Case
from integration.transforms.kafka import Kafka
from integration.transforms.outcome import Dropped, Failed, Outcome, Outcomes, Refused, Row
from parquet_sink.convert.json import decoder as json_decoder

SEED: Final = int(os.environ.get("TRANSFORM_SEED", "9"))
FEW: Final = 120
MANY: Final = 20_000
VERSIONS: Final = list(jars.DEBEZIUM)
MODE: Final = "delete.tombstone.handling.mode"
COMPATIBLE: Final = "drop.fields.keep.schema.compatible"
OLD: Final = "3.1.3.Final"


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Debezium's, that is compared with."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def theirs(version: str) -> Iterator[Kafka]:
    """Debezium's transforms, running."""
    javac = kafka.compiler()
    if javac is None:
        pytest.skip("no Java compiler (javac) here: install a JDK to compare with Debezium's own class")
    with kafka.started(javac, jars.debezium_lock(version)) as running:
        yield running


@pytest.mark.in_turn
@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])])
def test_events_become_what_debezium_makes_of_them(
    theirs: Kafka, version: str, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, types, deletions, headers, topics, what is dropped and what fails; without a schema the same rows."""
    monkeypatch.setattr(json_decoder, "FEWEST", 2)
    found: list[str] = []
    made = list(islice(debezium.pairs(SEED, old=version == OLD), cases))
    answers = map(outcome.of_kafka, theirs.answers([typed for typed, _ in made]))
    rows = 0
    for number, ((typed, plain), expected) in enumerate(zip(made, answers, strict=True)):
        mine = ours.outcomes(typed, Random(number), columns=True)
        unexplained = differences.compare(typed, expected, mine)[1]
        found += (str(one) for one in unexplained if not known(typed, one.theirs, one.ours))
        for columns in (True, False):
            found += unlike(plain, expected, ours.outcomes(plain, Random(number), columns=columns))
        rows += sum(isinstance(one, Row) for one in expected) if isinstance(expected, list) else 0
    assert rows > cases, "hardly anything was compared"
    assert not found, f"{len(found)} differences, of which some:\n\n" + "\n\n".join(found[:12])


def known(case: Case, theirs: object, mine: object) -> bool:
    """Whether Debezium fails where nothing has to.

    It makes headers of what it then drops, and looks for fields in the schema that `delete-to-tombstone` took away.
    """
    if not isinstance(theirs, Failed) or "NullPointerException" not in theirs.why:
        return False
    keys = case.steps[0].keys
    if isinstance(mine, Dropped):
        return "add.headers" in keys
    return keys.get(MODE) == "delete-to-tombstone" and isinstance(mine, Row) and mine.value is None


def unlike(case: Case, theirs: Outcomes, mine: Outcomes) -> Iterator[str]:
    """What differs of records without a schema from what Debezium makes of those with one, beside types and nulls."""
    if isinstance(theirs, Refused) or isinstance(mine, Refused):
        if theirs != mine:
            yield f"{case.steps}\n  debezium: {theirs}\n  ours: {mine}"
        return
    for record, one, other in zip(case.records, theirs, mine, strict=True):
        if isinstance(one, Failed) or same(one, other):
            continue
        if case.steps[0].keys.get(COMPATIBLE) == "true" and any(b'"id"' in (text or b"") for _, text in record.headers):
            continue  # without a schema no field is required, so it is left out
        yield f"{case.steps[0]}\n  debezium: {one}\n  ours: {other}\n  record: {record}"


def same(theirs: Outcome, mine: Outcome) -> bool:
    """Whether they are equal but for types, and nulls that are absent."""
    if not isinstance(theirs, Row) or not isinstance(mine, Row):
        return theirs == mine
    pairs = [(theirs.value, mine.value)] + [(theirs.key, mine.key)] * (mine.key != outcome.UNREAD)
    return theirs.topic == mine.topic and all(bare(one) == bare(other) for one, other in pairs)


def bare(value: Any) -> Any:
    """A value without types and nulls."""
    if not isinstance(value, tuple):
        return value
    if value[0] in ("Struct", "Map"):
        pairs = ((name if isinstance(name, str) else name[1], bare(one)) for name, one in value[1])
        return {name: one for name, one in pairs if one is not None}
    return [bare(one) for one in value[1]] if value[0] == "List" else value[1]
