"""What the answer to a form without a file says about a target."""

import pytest

from parquet_sink.net.exchange import Answer, FailureKind
from parquet_sink.targets.outcome import Health
from parquet_sink.targets.push.answers import of_answer
from parquet_sink.targets.push.probe import judge
from parquet_sink.targets.reaching import of_failure


@pytest.mark.parametrize("status", [400, 411, 415, 422])
def test_refusing_a_form_without_a_file_is_as_it_should_be(status: int) -> None:
    """These answers show that address, key and path are right."""
    found = judge(of_answer(Answer(status, b'{"message": "no part file"}')))
    assert found.health is Health.OK
    assert "no part file" in found.text


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (401, "connect.ems.authorization.key"),
        (403, "connect.ems.authorization.key"),
        (404, "connect.ems.endpoint"),
        (405, "connect.ems.endpoint"),
        (307, "redirects are never followed"),
        (407, "connect.ems.proxy.auth.username"),
    ],
)
def test_answers_that_will_not_change_fail_with_their_cure(status: int, cure: str) -> None:
    """`run` would be refused likewise."""
    found = judge(of_answer(Answer(status, b"")))
    assert found.health is Health.FAILED
    assert cure in found.text


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 409])
def test_answers_that_may_pass_are_warnings(status: int) -> None:
    """The target was reached, and may take a file later, or a real one."""
    assert judge(of_answer(Answer(status, b""))).health is Health.WARNING


def test_a_web_page_fails_and_an_acceptance_is_odd() -> None:
    """200 with HTML is no push target; an acceptance of nothing is a warning."""
    assert judge(of_answer(Answer(200, b"<html>", {"content-type": "text/html"}))).health is Health.FAILED
    assert judge(of_answer(Answer(200, b'{"fileName": "x", "flushStatus": "NEW"}'))).health is Health.WARNING


@pytest.mark.parametrize("failure", FailureKind)
def test_no_answer_fails_with_cause_and_cure(failure: FailureKind) -> None:
    """Name, connection, proxy or TLS: the network's words are in the text."""
    found = judge(of_failure(failure, "name or service not known"))
    assert found.health is Health.FAILED
    assert "name or service not known" in found.text
    assert "Check" in found.text or "Correct" in found.text
