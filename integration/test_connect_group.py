"""The script that judges the REST API, played to three workers of a group: each request to the next one."""

from typing import Final

import pytest

from integration.connect import ours, recording
from integration.connect.clients import KCCTL, kafka_ui
from integration.connect.compare import differences, unknown
from integration.connect.known import KNOWN
from integration.connect.play import play, titles
from integration.connect.plugins import plugins, validation
from integration.connect.script import TOPICS, Part, script
from integration.connect.steps import Ask
from parquet_sink.addons.devkit.broker import Broker
from tests.thorough import THOROUGH

WORKERS: Final = 3
LEFT_OUT: Final[tuple[Part, ...]] = () if THOROUGH else (plugins, validation, kafka_ui)
"""Of the script: what a worker answers by itself, and calls that kcctl has, too. `test_connect_rest.py` plays them."""


@pytest.mark.in_turn(seconds=110)
def test_workers_in_turn_answer_as_kafka_connect_does(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What one was told the next one knows, kcctl works with a follower, and differences are those of one alone."""
    with Broker() as broker:
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        with ours.our_group(broker, tmp_path_factory.mktemp("group"), WORKERS) as (side, turns):
            steps = script(side, LEFT_OUT)
            answers = play(steps, side, broker, late=turns.late, pick=turns)
    asked = {title for step in steps if isinstance(step, Ask) for title in titles(step)}
    recorded = [one for one in recording.read() if one["title"] in asked]
    found = differences(recorded, recording.entries(answers, side))
    assert [str(one) for one in unknown(found, KNOWN)] == []
    of_kcctl = [one for one in answers if one.client == KCCTL]
    assert len(of_kcctl) > 25
    assert [one for one in of_kcctl if one.status in {409, 503}] == []
