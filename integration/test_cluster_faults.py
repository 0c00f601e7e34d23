"""`make cluster-faults`: what it judges finds broken histories, and its link and its short form work."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import requests

from integration.cluster_faults.__main__ import cluster_faults
from integration.cluster_faults.clients import told_by
from integration.cluster_faults.history import (
    NEVER,
    Gap,
    Loss,
    Owner,
    Sent,
    gaps,
    longest_rests,
    percentile,
    two_owners,
)
from integration.cluster_faults.link import Link
from integration.cluster_faults.nemesis import Kind, rounds
from integration.cluster_faults.report import Plan, Report
from integration.cluster_faults.rest_history import Act, Told
from integration.cluster_faults.workers import linked_broker
from integration.oracle.oracle import Findings
from integration.scripted_target import Server
from parquet_sink.addons.devkit.target.process import TargetProcess
from tests.messages import assert_line_says

OWNERS = {"orders": [Owner("a", 0), Owner("b", 1_000), Owner("a", 2_000)]}


def sent(worker: str, at_ms: int, partition: int = 0) -> Sent:
    """A file of `orders`, accepted 10 ms after it came."""
    return Sent("orders", partition, worker, at_ms, at_ms + 10)


def test_owners_that_take_turns_are_sound() -> None:
    """Each sends while the leader gave it the connector, and for each topic-partition one file that was under way."""
    turns = [sent("a", 10), sent("a", 900), sent("a", 1_100), sent("b", 1_200), sent("b", 1_900), sent("a", 2_100)]
    under_way = [sent("a", 1_250), sent("a", 1_300, partition=1), sent("b", 2_200)]
    assert two_owners([*turns, *under_way], OWNERS) == []


@pytest.mark.parametrize(
    "broken",
    [
        [sent("a", 10), sent("b", 1_200), sent("a", 1_250), sent("a", 1_300)],
        [sent("b", 10), sent("b", 20)],
        [sent("a", 10), sent("c", 20)],
        [sent("a", 2_100), sent("b", 2_200), sent("a", 2_300), sent("b", 2_400)],
    ],
    ids=["goes on after it was replaced", "begins before it was given it", "was never given it", "goes on beside it"],
)
def test_two_owners_at_once_are_found(broken: list[Sent]) -> None:
    """A file more than the one that may be under way, or of a worker that has nothing to send, is told."""
    assert two_owners(broken, OWNERS)
    assert "topic-partition 0: worker" in two_owners(broken, OWNERS)[-1]


def test_a_gap_ends_with_the_next_owner_s_first_file() -> None:
    """What the lost worker had under way does not end it, nor what it sends while it is about to be stopped."""
    loss = Loss(Kind.STOPPED, "a", ("orders", "other"), 500, 1_500)
    files = [sent("a", 510), sent("a", 1_400), sent("b", 1_700), sent("a", 2_500)]
    assert gaps(loss, files, OWNERS) == [Gap(1.21, 0.5, 0.3), Gap(NEVER, None, NEVER)]
    thawed = Loss(Kind.FROZEN_SHORT, "a", ("orders",), 100, 300)
    assert gaps(thawed, [sent("a", 110), sent("a", 320)], OWNERS) == [Gap(0.23, None, 0.21)]


def test_others_rest_as_long_as_they_send_nothing() -> None:
    """From the fault until it was recovered from, at its ends too; what moved meanwhile does not count."""
    files = [sent("a", 100), sent("a", 400), sent("a", 450)]
    assert longest_rests(["orders", "other"], files, OWNERS, 0, 900) == [0.44, 0.9]
    assert longest_rests(["orders"], files, OWNERS, 0, 1_500) == []


def test_percentiles() -> None:
    """The value itself that so many do not exceed."""
    assert [percentile([3.0, 1.0, 2.0, 4.0], share) for share in (0.5, 0.75, 0.99)] == [2.0, 3.0, 4.0]
    assert percentile([], 0.5) == 0.0


@pytest.mark.parametrize(
    ("act", "status", "told"),
    [
        (Act.PUT, 201, Told.MADE),
        (Act.PUT, 200, Told.DONE),
        (Act.CREATE, 201, Told.DONE),
        (Act.CREATE, 409, Told.THERE),
        (Act.DELETE, 204, Told.DONE),
        (Act.DELETE, 404, Told.ABSENT),
        (Act.TARGET, 409, None),
        (Act.TARGET, 503, None),
        (Act.PATCH, 500, Told.UNKNOWN),
    ],
)
def test_what_an_answer_says(act: Act, status: int, told: Told | None) -> None:
    """A refusal did nothing; an error of the server may have."""
    answer = requests.Response()
    answer.status_code = status
    assert told_by(act, answer) is told


def test_without_a_leader_nothing_was_done() -> None:
    """It is told from a connector that exists by Retry-After."""
    answer = requests.Response()
    answer.status_code, answer.headers["Retry-After"] = 409, "1"
    assert told_by(Act.CREATE, answer) is None


def test_each_round_has_all_kinds_and_a_seed_repeats_them() -> None:
    """Whatever the seed is."""
    one, again = rounds(Random(3)), rounds(Random(3))
    first = [next(one) for _ in Kind]
    assert {kind for kind, _ in first} == set(Kind)
    assert first == [next(again) for _ in Kind]


def test_wrong_histories_fail_a_run() -> None:
    """One record that is missing, one offset that went back, or a trouble is enough."""
    sound = Report([Findings()])
    assert sound.passed
    assert not Report([Findings(), Findings(missing=1)]).passed
    assert not Report([Findings(early_commits=1)]).passed
    assert not replace(sound, troubles=["two owners"]).passed


def test_losses_at_rest_are_told_apart() -> None:
    """One percentile each, of the kinds alone of which the group takes the worker for lost."""
    report = Report([Findings()])
    for kind, at_rest, seconds in (
        (Kind.KILLED, True, 9.0),
        (Kind.CUT_LONG, False, 16.0),
        (Kind.CUT_SHORT, True, 30.0),
    ):
        loss = Loss(kind, "w0", ("orders",), 0, 0, at_rest)
        report.losses.append((loss, [Gap(seconds, None, seconds)]))
    told = json.loads(report.summary())
    figures = {name: told[f"lost_worker_{name}"]["p99"] for name in ("s", "at_rest_s", "amid_moves_s")}
    assert figures == {"s": 16.0, "at_rest_s": 9.0, "amid_moves_s": 16.0}
    assert_line_says("\n".join(report.lines()), "at rest", "connectors 1", "p99 9.0")


class Echo(Server):
    """Sends back what it is sent."""

    def handle(self, accepted: socket.socket) -> None:
        while data := accepted.recv(100):
            accepted.sendall(data)


@pytest.fixture
def link() -> Iterator[Link]:
    """To an echo."""
    with Echo() as echo, Link() as made:
        made.to = echo.port
        yield made


def test_a_cut_link_holds_back_and_then_passes_everything(link: Link) -> None:
    """Connections live through it, and those that begin meanwhile are served after it."""
    with socket.create_connection(("127.0.0.1", link.port)) as one:
        one.sendall(b"before")
        assert one.recv(100) == b"before"
        link.cut()
        one.sendall(b"meanwhile")
        one.settimeout(0.3)
        with pytest.raises(TimeoutError):
            one.recv(100)
        with socket.create_connection(("127.0.0.1", link.port)) as other:
            other.sendall(b"new")
            link.mend()
            for connection, expected in ((one, b"meanwhile"), (other, b"new")):
                connection.settimeout(10)
                assert connection.recv(100) == expected


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_workers_that_are_lost_lose_nothing(tmp_path: Path) -> None:
    """A minute of faults: all is delivered once more, by one owner at a time, and offsets never go back."""
    plan = Plan(minutes=1, seed=11, connectors=4, partitions=3, per_second=5, session_ms=6_000)
    with (
        linked_broker() as (broker, links),
        TargetProcess(tmp_path / "target", deleted_column="__deleted") as target,
    ):
        report = cluster_faults(plan, broker, links, target, tmp_path)
    assert report.passed, "\n".join([report.summary(), *report.lines()])
    assert report.losses
