"""worker/loop/giving_way.py: when what runs gives way to what is taken over."""

import os

import pytest

from parquet_sink.worker.loop.giving_way import LONGEST_S, REST_S, GivingWay, cores_are_busy


def test_it_lasts_as_long_as_the_takeover() -> None:
    """And not without one."""
    one = GivingWay(lambda: True)
    assert [one.step(at_s, awaited=awaited) for at_s, awaited in ((0, False), (1, True), (3, True), (4, False))] == [
        *(False, True, True, False)
    ]


def test_it_does_not_last_longer_than_that_and_then_what_runs_has_its_time() -> None:
    """However many takeovers follow each other."""
    one = GivingWay(lambda: True)
    given = [one.step(tenth / 10, awaited=True) for tenth in range(int(10 * (2 * LONGEST_S + REST_S)))]
    assert given == [True] * int(10 * LONGEST_S) + [False] * int(10 * REST_S) + [True] * int(10 * LONGEST_S)


def test_it_is_for_busy_cores_alone() -> None:
    """Where a core is free what runs harms nobody; once begun it lasts, though the cores have less to do by then."""
    busy = False
    one = GivingWay(lambda: busy)
    assert not one.step(0.0, awaited=True)
    busy = True
    assert one.step(0.1, awaited=True)
    busy = False
    assert one.step(0.2, awaited=True)


def test_cores_are_busy_when_more_wants_to_run_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """On average over the last minute."""
    monkeypatch.setattr("parquet_sink.worker.loop.giving_way.usable_cores", lambda: 2)
    for load, busy in ((1.9, False), (2.1, True)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        assert cores_are_busy() is busy
