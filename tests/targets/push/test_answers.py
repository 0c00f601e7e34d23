"""What answers of the push API, and their absence, mean; those to a probe, too."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.net.exchange import Answer, FailureKind
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Health, Outcome, Verdict
from parquet_sink.targets.push.answers import of_answer, of_probe
from tests.messages import assert_says

GOOD = {"id": "7", "fileName": "f", "bucketId": "b", "flushStatus": "NEW", "clientId": None}


def answered(status: int, body: object = b"", **more: object) -> Outcome:
    """The outcome of an answer; what is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return of_answer(Answer(status, content, **more), ("AppKey top-secret",))  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_push_answer_is_accepted(status: int) -> None:
    """Any 2xx with an answer of the push API is accepted, and its id is kept."""
    outcome = answered(status, GOOD)
    assert (outcome.verdict, outcome.status, outcome.answer_id) == (Verdict.ACCEPTED, status, "7")


@pytest.mark.parametrize("absent", [{"id": None, "bucketId": None}, {"id": None}])
def test_null_ids_are_accepted(absent: dict[str, object]) -> None:
    """A null id or bucketId is no failure: the file was taken."""
    assert answered(200, GOOD | absent).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Welcome</html>",
        b"OK",
        b"[]",
        b"null",
        b'{"status":"up"}',
        b'{"fileName":"f"',
        b"\xff",
        b"[" * 50_000,
    ],
)
def test_other_2xx_bodies_are_unknown(body: bytes) -> None:
    """A 2xx without an answer of the push API is never taken for acceptance, and says what to correct."""
    outcome = answered(200, body, headers={"content-type": "text/html"})
    assert outcome.verdict is Verdict.UNKNOWN
    assert "text/html" in outcome.cause
    assert "not a push target" in outcome.cure


def test_a_cut_2xx_body_is_unknown() -> None:
    """A body that did not come whole is not accepted even if what came would do."""
    assert answered(200, GOOD, broken=FailureKind.BROKEN).verdict is Verdict.UNKNOWN


REFUSED = [301, 302, 307, 308, 400, 401, 403, 404, 405, 407, 409, 410, 411, 413, 415, 422, 431, 451, 501, 505]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(s, Verdict.REFUSED) for s in REFUSED]
    + [(s, Verdict.RETRIABLE) for s in (408, 421, 425, 429)]
    + [(s, Verdict.UNKNOWN) for s in (500, 502, 503, 504, 507, 520, 599, 600, 999)],
)
def test_statuses(status: int, verdict: Verdict) -> None:
    """Each status has its class, is named in the cause, and has a cure."""
    outcome = answered(status, b"the reason", headers={"retry-after": "7"})
    assert (outcome.verdict, outcome.retry_after_seconds) == (verdict, 7.0)
    assert_says(outcome.cause, f"answered {status}", "the reason")
    assert outcome.cure


@pytest.mark.parametrize(
    ("status", "key"),
    [(401, "connect.ems.authorization.key"), (404, "connect.ems.endpoint"), (413, "connect.ems.commit.size.bytes")],
)
def test_cures_name_the_key(status: int, key: str) -> None:
    """What the operator must change is named."""
    assert key in answered(status).cure


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"reference": "r1", "message": "pool is full"}, "pool is full"),
        ({"errors": [{"attribute": "targetName", "error": "is bad", "errorCode": "e1"}]}, "targetName is bad e1"),
        ({"errors": ["odd"]}, "odd"),
        ({"other": 1}, '{"other": 1}'),
        (b"plain", "plain"),
        (b"", "without a text"),
    ],
)
def test_failure_bodies(body: object, said: str) -> None:
    """The push API's failure bodies are read; anything else is quoted."""
    assert said in answered(400, body).cause


def test_an_echoed_key_is_hidden() -> None:
    """A target that echoes the key, whole or without its prefix, does not bring it into a message."""
    for body in (b"bad key AppKey top-secret!", {"message": "top-secret"}, {"errors": [{"error": "top-secret"}]}):
        for status in (200, 400, 500):
            assert "top-secret" not in str(answered(status, body))
    assert "top-secret" not in str(answered(200, GOOD | {"id": "top-secret"}))
    assert "top-secret" not in str(of_failure(FailureKind.BROKEN, "got top-secret", ["AppKey top-secret"]))


@pytest.mark.parametrize("failure", list(FailureKind))
def test_failures_have_cause_and_cure(failure: FailureKind) -> None:
    """Every failure without an answer says what happened, what the system said, and what to do."""
    outcome = of_failure(failure, "system's words")
    assert outcome.status is None
    assert "system's words" in outcome.cause
    assert outcome.cure


@given(st.binary(max_size=300), st.integers(100, 999))
def test_no_answer_breaks_the_classifier(body: bytes, status: int) -> None:
    """Any status with any body has an outcome, and only 2xx is ever accepted."""
    outcome = answered(status, body)
    assert outcome.verdict is not Verdict.ACCEPTED
    assert outcome.cure


@pytest.mark.parametrize(
    "status", [300, 307, 400, 401, 403, 404, 405, 407, 409, 410, 411, 413, 415, 422, 431, 501, 505]
)
def test_only_some_refusals_are_of_the_file(status: int) -> None:
    """Another file may be accepted after 400, 409, 413 and 422; a key, a right or an address is every file's."""
    outcome = answered(status)
    assert outcome.verdict is Verdict.REFUSED
    assert outcome.of_file == (status in (400, 409, 413, 422))
    assert outcome.of_name == (status == 409)


@pytest.mark.parametrize("failure", FailureKind)
def test_no_failure_without_an_answer_is_of_the_file(failure: FailureKind) -> None:
    """A target that cannot be reached, or trusted, said nothing of it."""
    assert not of_failure(failure).of_file


def test_a_limit_that_is_told_beside_the_status_is_waited_for() -> None:
    """A 429 with `x-ratelimit-reset` is tried again when that says, another status when the retries say."""
    assert answered(429, headers={"x-ratelimit-reset": "17"}).retry_after_seconds == 17
    assert answered(503, headers={"x-ratelimit-reset": "17"}).retry_after_seconds is None


@pytest.mark.parametrize("status", [400, 411, 415, 422])
def test_refusing_a_form_without_a_file_is_as_it_should_be(status: int) -> None:
    """These answers show that address, key and path are right."""
    found = of_probe(of_answer(Answer(status, b'{"message": "no part file"}')))
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
    found = of_probe(of_answer(Answer(status, b"")))
    assert found.health is Health.FAILED
    assert cure in found.text


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 409])
def test_answers_that_may_pass_are_warnings(status: int) -> None:
    """The target was reached, and may take a file later, or a real one."""
    assert of_probe(of_answer(Answer(status, b""))).health is Health.WARNING


def test_a_web_page_fails_and_an_acceptance_is_odd() -> None:
    """200 with HTML is not a push target; an acceptance of nothing is a warning."""
    assert of_probe(of_answer(Answer(200, b"<html>", {"content-type": "text/html"}))).health is Health.FAILED
    assert of_probe(of_answer(Answer(200, b'{"fileName": "x", "flushStatus": "NEW"}'))).health is Health.WARNING


@pytest.mark.parametrize("failure", FailureKind)
def test_no_answer_fails_with_cause_and_cure(failure: FailureKind) -> None:
    """Name, connection, proxy or TLS: the network's words are in the text."""
    found = of_probe(of_failure(failure, "name or service not known"))
    assert found.health is Health.FAILED
    assert "name or service not known" in found.text
    assert "Check" in found.text or "Correct" in found.text
