"""What a worker of a group does with what it reads, beside connectors."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from parquet_sink.distributed.assignment import Assignment, MemberInfo, Placement
from parquet_sink.distributed.cluster import others_run, set_levels, takeover_lasts
from parquet_sink.distributed.records import ASSIGNMENT, CONNECTOR, LOGGER, STATUS, TARGET, ConnectorReport
from parquet_sink.distributed.state import ConfigState, StatusState
from parquet_sink.worker.herder.values import State, TargetState
from tests.distributed.group_doubles import folded

NAME = "parquet_sink.test_levels"


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    """As it was, afterwards."""
    yield
    for name in (NAME, f"{NAME}.a"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def _levels(*named: str) -> list[str]:
    return [logging.getLevelName(logging.getLogger(name).getEffectiveLevel()) for name in named]


def _config(assignment: Assignment, *names: str) -> ConfigState:
    """With these connectors."""
    connectors = [CONNECTOR.record(name, {}) for name in names]
    return folded(ConfigState(), *connectors, ASSIGNMENT.record("", assignment))


def _status(**said: tuple[str, str]) -> StatusState:
    """State and worker of each connector."""
    reports = {name: ConnectorReport(State(state), "", worker, 1) for name, (state, worker) in said.items()}
    return folded(StatusState(), *[STATUS.record(name, one) for name, one in reports.items()])


def test_levels_are_set_in_the_order_in_which_they_were_written() -> None:
    """Also those that a worker finds at its start; each once, so that what one worker alone was told since stays."""
    state = folded(ConfigState(), LOGGER.record(f"{NAME}.a", "DEBUG"), offset=3)
    state = folded(state, LOGGER.record(NAME, "ERROR"), offset=7)
    after = set_levels(state, 0)
    assert (_levels(NAME, f"{NAME}.a"), after) == (["ERROR", "ERROR"], 8)
    later = folded(state, LOGGER.record(f"{NAME}.a", "DEBUG"), offset=9)
    logging.getLogger(NAME).setLevel(logging.INFO)
    assert set_levels(later, after) == 10
    assert _levels(NAME, f"{NAME}.a") == ["INFO", "DEBUG"]


def test_levels_of_others_and_unknown_ones_change_nothing() -> None:
    """Kafka Connect writes those of Java's loggers; a library of ours says at DEBUG what may not be said."""
    before = logging.getLogger("py4j").level
    others = {"py4j": "DEBUG", "org.apache.kafka": "DEBUG", NAME: "LOUD"}
    state = folded(ConfigState(), *[LOGGER.record(name, level) for name, level in others.items()])
    assert set_levels(state, 0) == 3
    assert logging.getLogger("py4j").level == before
    assert NAME not in logging.Logger.manager.loggerDict or logging.getLogger(NAME).level == logging.NOTSET
    assert "org.apache.kafka" not in logging.Logger.manager.loggerDict


def test_a_worker_knows_whether_others_run_connectors() -> None:
    """Those that are members still under the id that the leader knows; what was said in an earlier life is over."""
    a, b = (MemberInfo(name, f"{name}-1", f"http://{name}", 0) for name in "ab")
    config = folded(ConfigState(), ASSIGNMENT.record("", Assignment(1, "a", 0, {"a": a, "b": b}, {})))
    status = _status(one=("PAUSED", "a"), two=("RUNNING", "b"))
    assert others_run([a, b], config, status)
    assert not others_run([a], config, status)
    assert not others_run([a, replace(b, member_id="b-2")], config, status)
    assert not others_run([a, b], ConfigState(), status)


def test_a_takeover_lasts_until_others_have_begun() -> None:
    """With what this worker had in an earlier stay, or with what was another's; not with what is not to run."""
    a, b, c = (MemberInfo(name, f"{name}-1", f"http://{name}", 0) for name in "abc")
    own, others = Placement("a", "", "", 1, 0), Placement("b", "", "", 1, 0)
    assignment = Assignment(1, "b", 0, {"a": a, "b": b, "c": c}, {"one": own, "two": others})
    config = _config(assignment, "one", "two")
    status = _status(one=("RUNNING", "a"), two=("RUNNING", "b"))
    assert takeover_lasts("a", "", config, status)
    assert takeover_lasts("a", "a-2", config, status)
    assert not takeover_lasts("a", "a-1", config, status)
    assert not takeover_lasts("c", "", config, status)
    for said in (_status(two=("RUNNING", "a")), _status(two=("UNASSIGNED", "b")), StatusState()):
        assert takeover_lasts("c", "", config, said), said.connectors
    paused = [TARGET.record(name, TargetState.PAUSED) for name in ("one", "two")]
    assert not takeover_lasts("c", "", folded(config, *paused, offset=9), status)
    assert not takeover_lasts("c", "", _config(assignment), StatusState())
    assert not takeover_lasts("c", "", ConfigState(), status)


def test_nobody_takes_over_from_a_worker_that_was_alone() -> None:
    """So its Spark need not wait."""
    alone = Assignment(1, "a", 0, {"a": MemberInfo("a", "a-1", "", 0)}, {"one": Placement("a", "", "", 1, 0)})
    assert not takeover_lasts("a", "", _config(alone, "one"), StatusState())
