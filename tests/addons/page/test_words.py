"""Numbers, states and messages in words, and configurations as files."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.page import words
from tests.addons.page import scene


def test_states_are_told_apart(tmp_path: Path) -> None:
    """Each connector of the scene is in the state that it stands for; one whose task alone failed has failed."""
    found = {one.status.name: one for one in scene.every_state(tmp_path).progress()}
    states = {name: words.state_of(one) for name, one in found.items()}
    wanted = {"invoices-refused": "failed", "shipments": "retrying", "clicks": "late", "returns": "starting"}
    assert states == {
        **dict.fromkeys(states, "running"),
        **wanted,
        "payroll": "paused",
        "archive-2019": "stopped",
    }
    orders = found["orders"]
    (task,) = orders.status.tasks
    broken = replace(orders.status, tasks=(replace(task, state=scene.State.FAILED),))
    assert words.state_of(replace(orders, status=broken)) == "failed"
    assert words.state_of(replace(orders, status=replace(orders.status, waits_for="x"))) == "retrying"


@pytest.mark.parametrize(
    ("message", "cause", "cure"),
    [
        ("The target is away. Wait. Or not.", "The target is away.", "Wait. Or not."),
        ("Invalid [topics]. It is missing; name one.", "Invalid [topics]. It is missing.", "Name one."),
        ("Invalid [topics]. It is missing.", "Invalid [topics]. It is missing.", ""),
        ("First line\nsecond line", "First line", "second line"),
        ("", "", ""),
    ],
)
def test_a_message_is_parted_into_cause_and_cure(message: str, cause: str, cure: str) -> None:
    """The first sentence is the cause; of a wrong key the cure stands behind the semicolon."""
    assert words.cause_and_cure(message) == (cause, cure)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.04, "0.0 s"), (99.4, "99 s"), (125, "2 min 5 s"), (3_600, "60 min"), (7_260, "2 h 1 min")],  # noqa: RUF001
)
def test_durations_have_two_units_at_most(seconds: float | None, text: str) -> None:
    """Seconds while they are few, then minutes, hours and days."""
    assert words.age(seconds) == text


@given(st.floats(min_value=0, max_value=1e18))
def test_any_number_has_a_short_form(value: float) -> None:
    """Counts, sizes and durations of any size fit a column."""
    assert len(words.short(value)) <= 14
    assert words.size(value)
    assert words.age(value)
