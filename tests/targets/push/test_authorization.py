"""How requests to a push target are signed, and what becomes of an upload without a token."""

from dataclasses import replace

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import AccessToken, Answer, Blame, TokenFailed
from parquet_sink.net.settings import ClientCredentials
from parquet_sink.net.tokens import TokenSource
from parquet_sink.targets.outcome import Health, Verdict
from parquet_sink.targets.push.answers import of_answer, of_probe, of_token_failure, with_token_cure
from parquet_sink.targets.push.authorization import AccessTokens, FixedKey, authorization_of, signed
from parquet_sink.targets.push.settings import PushSettings

CLIENT = ClientCredentials("id", Secret("canary"), "http://localhost/oauth2/token")
SETTINGS = PushSettings("http://localhost/items", CLIENT, "t")


class Target:
    """Answers 401 to the headers that it does not take; each answer takes a second."""

    def __init__(self, *refused: str) -> None:
        self.refused, self.now = refused, 0.0
        self.seen: list[tuple[str, float]] = []

    def send(self, header: str, seconds: float) -> Answer:
        self.seen.append((header, seconds))
        self.now += 1
        return Answer(401 if header in self.refused else 200)

    def clock(self) -> float:
        return self.now


def tokens(*given: str) -> AccessTokens:
    """Signs with these tokens, one after the other."""
    waiting = list(given)
    return AccessTokens(TokenSource(lambda seconds: AccessToken(Secret(waiting.pop(0)))), ("secret",))


def test_a_key_that_is_refused_is_sent_once() -> None:
    """There is no other one to try."""
    target = Target("AppKey k")
    assert signed(FixedKey(Secret("AppKey k")), 9.0, target.send, target.clock)[0].status == 401
    assert target.seen == [("AppKey k", 9.0)]


def test_a_token_that_is_refused_is_replaced_once() -> None:
    """The same request goes out again, in what is left of its time, and the new token stays."""
    target, authorization = Target("Bearer a"), tokens("a", "b")
    answer, header = signed(authorization, 9.0, target.send, target.clock)
    assert (answer.status, header) == (200, "Bearer b")
    assert target.seen == [("Bearer a", 9.0), ("Bearer b", 8.0)]
    assert authorization.header(1.0) == "Bearer b"


def test_a_second_refusal_is_the_answer() -> None:
    """A target that takes no token at all does not make requests without end."""
    target = Target("Bearer a", "Bearer b")
    answer, _ = signed(tokens("a", "b", "c"), 9.0, target.send, target.clock)
    assert answer.status == 401
    assert len(target.seen) == 2


def test_tokens_are_shared_by_all_connectors_of_a_process_with_the_same_credentials() -> None:
    """Another table is no reason to ask again; other credentials, or another way there, are."""
    one = authorization_of(SETTINGS, {})
    assert authorization_of(replace(SETTINGS, target_table="u"), {}) is one
    assert authorization_of(replace(SETTINGS, authorization=replace(CLIENT, scope="s")), {}) is not one
    assert authorization_of(replace(SETTINGS, connect_timeout_ms=1), {}) is not one


@pytest.mark.parametrize("blame", Blame)
@pytest.mark.parametrize("passing", [True, False])
def test_without_a_token_nothing_was_sent(blame: Blame, passing: bool) -> None:
    """So a file was not taken for certain; it says what to correct, and a probe of the target has failed."""
    outcome = of_token_failure(TokenFailed("there is no access token", blame, passing=passing, wait_s=4))
    assert outcome.verdict is (Verdict.RETRIABLE if passing else Verdict.REFUSED)
    assert (outcome.status, outcome.of_file, outcome.retry_after_seconds) == (None, False, 4)
    assert "connect.ems." in outcome.cure or "see its own log" in outcome.cure
    assert of_probe(outcome).health is Health.FAILED


@pytest.mark.parametrize("status", [401, 403])
def test_who_signs_with_tokens_is_not_told_to_correct_a_key(status: int) -> None:
    """The cure names the keys of tokens; all else that an answer means stays."""
    outcome = of_answer(Answer(status, b"no"))
    cured = with_token_cure(outcome)
    assert "authorization.key" in outcome.cure
    assert "authorization.key" not in cured.cure
    assert "connect.ems.oauth2." in cured.cure
    assert replace(cured, cure="") == replace(outcome, cure="")


def test_other_answers_say_the_same_for_both() -> None:
    """A file too large is too large."""
    outcome = of_answer(Answer(413, b"no"))
    assert with_token_cure(outcome) == outcome
