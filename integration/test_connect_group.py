"""The script that judges the REST API, played to three workers of a group: each request to the next one."""

from collections.abc import Collection, Iterator
from typing import Final

import pytest

from integration.connect import ours, recording
from integration.connect.clients import KCCTL, kafka_ui
from integration.connect.compare import differences, unknown
from integration.connect.known import KNOWN
from integration.connect.play import Answer, play, titles
from integration.connect.plugins import plugins, validation
from integration.connect.script import TOPICS, Part, script
from integration.connect.steps import Ask, Script, Side
from parquet_sink.addons.devkit.broker import Broker

WORKERS: Final = 3
ANSWERED_ALIKE: Final = (plugins, validation, kafka_ui)
"""Parts that `integration/test_connect_rest.py` plays: what a worker answers alone, and calls that kcctl has, too."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(ANSWERED_ALIKE, id="most"), pytest.param((), id="all", marks=pytest.mark.slow)],
)
def left_out(request: pytest.FixtureRequest) -> Collection[Part]:
    """Parts of the script that are not played."""
    found: Collection[Part] = request.param
    return found


@pytest.fixture(scope="module")
def group(
    left_out: Collection[Part], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, ours.Turns, Broker]]:
    """Three workers and their broker, for one script."""
    with Broker() as broker:
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        with ours.our_group(broker, tmp_path_factory.mktemp("group"), WORKERS) as (side, turns):
            yield side, turns, broker


@pytest.fixture(scope="module")
def answers(group: tuple[Side, ours.Turns, Broker], left_out: Collection[Part]) -> list[Answer]:
    """What the workers answered to the script, each request at the next; kcctl's at one that does not lead."""
    side, turns, broker = group
    return play(script(side, left_out), side, broker, late=turns.late, pick=turns)


def test_workers_in_turn_answer_as_kafka_connect_does(
    group: tuple[Side, ours.Turns, Broker], answers: list[Answer], left_out: Collection[Part]
) -> None:
    """What one worker was told the next one knows; differences are those of a worker alone."""
    steps = script(group[0], left_out)
    asked = {title for step in steps if isinstance(step, Ask) for title in titles(step)}
    recorded = [one for one in recording.read() if one["title"] in asked]
    found = differences(recorded, recording.entries(answers, group[0]))
    assert [str(one) for one in unknown(found, KNOWN)] == []


def test_kcctl_works_with_a_follower(answers: list[Answer]) -> None:
    """Its recorded calls, all at one worker that does not lead, were answered, and none of them by a conflict."""
    asked = [one for one in answers if one.client == KCCTL]
    assert len(asked) > 25
    assert [one for one in asked if one.status in {409, 503}] == []


def test_two_requests_at_once_at_two_workers_are_one_after_the_other(
    group: tuple[Side, ours.Turns, Broker], answers: list[Answer]
) -> None:
    """One makes the connector, and one ends it; the others are told so. Kafka Connect says 201 twice at times."""
    side, turns, broker = group
    made = Script()
    for number in range(5):
        pair = {"name": f"pair-{number}", "config": side.config(), "initial_state": "STOPPED"}
        made.ask(f"create {number}", "POST /connectors", pair, times=WORKERS)
        made.ask(f"delete {number}", f"DELETE /connectors/pair-{number}", times=WORKERS)
    statuses = [one.status for one in play(made, side, broker, pick=turns)]
    assert statuses == [201, 409, 409, 204, 404, 404] * 5
