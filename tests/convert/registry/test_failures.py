"""What a registry's answers mean."""

import pytest

from parquet_sink.convert.registry.client import failure_of, is_not_registered
from parquet_sink.convert.registry.http import BadAnswer, ErrorAnswer
from parquet_sink.net.exchange import FailureKind, RequestFailed
from tests.messages import assert_says


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, 40403, True),
        (404, 40401, True),
        (404, 40402, True),
        (404, 404, False),
        (404, None, False),
        (500, 40403, False),
    ],
)
def test_only_the_registrys_own_words_make_an_id_unknown(status: int, code: int | None, expected: bool) -> None:
    """A 404 of a wrong path is not the registry's word."""
    assert is_not_registered(ErrorAnswer(status, code, "not found")) is expected


def test_other_errors_are_not_the_registrys_word() -> None:
    """Only an answer can say that an id is not registered."""
    assert not is_not_registered(ValueError("40403"))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_busy_or_broken_may_pass(status: int) -> None:
    """These are worth another try."""
    assert failure_of(ErrorAnswer(status, 50001, "trouble")).passing


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        (301, "schema.registry.url"),
        (307, "schema.registry.url"),
        (400, "log"),
        (401, "basic.auth.user.info"),
        (403, "read schemas"),
        (404, "/apis/ccompat/"),
        (405, "schema.registry.url"),
        (422, "log"),
        (501, "log"),
    ],
)
def test_answers_that_stay_have_a_cure(status: int, cure: str) -> None:
    """Asking again would give the same."""
    failure = failure_of(ErrorAnswer(status))
    assert not failure.passing
    assert str(status) in failure.cause
    assert cure in failure.cure


def test_words_of_the_registry_are_shown_printable_and_cut() -> None:
    """What it says in its own form is told, in one line."""
    assert_says(failure_of(ErrorAnswer(403, 40301, "no\nway")).cause, "answered 403", "40301", "no\\nway")
    assert len(failure_of(ErrorAnswer(403, 40301, "x" * 10_000)).cause) < 300


@pytest.mark.parametrize(
    ("error", "cause", "passing"),
    [
        (RequestFailed(FailureKind.CONNECT_TIMEOUT), ("no connection", "in time"), True),
        (RequestFailed(FailureKind.NO_ANSWER), ("no answer", "in time"), True),
        (RequestFailed(FailureKind.CONNECT, "Connection refused"), ("no answer", "Connection refused"), True),
        (RequestFailed(FailureKind.BROKEN), ("no answer", "broke"), True),
        (BadAnswer("an answer of more than 8 MiB"), ("an answer", "more than 8 MiB"), False),
    ],
)
def test_silence_and_garbage(error: Exception, cause: tuple[str, ...], passing: bool) -> None:
    """Silence may pass, garbage stays; neither shows content."""
    failure = failure_of(error)
    assert failure.passing is passing
    assert_says(failure.cause, *cause)


def test_a_certificate_that_is_refused_stays_refused() -> None:
    """TLS is told in OpenSSL's words, with its cure."""
    failure = failure_of(RequestFailed(FailureKind.TLS, "certificate unknown"))
    assert not failure.passing
    assert_says(failure.cause, "TLS", "certificate unknown")
    assert "truststore" in failure.cure
