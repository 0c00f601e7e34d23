"""What a process makes once for its settings."""

import os
from threading import Thread

import pytest

from parquet_sink.process.per_process import PerProcess


def test_each_key_has_one_value_however_many_threads_ask() -> None:
    """It is made once, and kept."""
    made: list[str] = []

    def make(key: str) -> list[str]:
        made.append(key)
        return [key]

    kept = PerProcess(make)
    found: list[list[str]] = []
    threads = [Thread(target=lambda: found.append(kept.get("a"))) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert made == ["a"]
    assert len(found) == 8
    assert all(one is found[0] for one in found)
    assert kept.get("b") == ["b"]


def test_a_forked_process_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections and locks of a parent are not used by a child."""
    kept = PerProcess(lambda key: [key])
    before = kept.get("a")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert kept.get("a") is not before


def test_what_could_not_be_made_is_tried_again() -> None:
    """An error keeps nothing, and reaches whoever asks."""
    answers = iter([ValueError("no"), None])

    def make(key: str) -> str:
        if (error := next(answers)) is not None:
            raise error
        return key

    kept = PerProcess(make)
    with pytest.raises(ValueError, match="no"):
        kept.get("a")
    assert kept.get("a") == "a"


def test_the_one_used_longest_ago_is_forgotten() -> None:
    """The number is bounded."""
    made: list[int] = []
    kept = PerProcess(lambda key: made.append(key) or key, most=2)
    for key in (1, 2, 1, 3, 1, 2):
        kept.get(key)
    assert made == [1, 2, 3, 2]
