"""Access tokens as a process keeps them."""

import base64
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests import Request

from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import AccessToken, Answer, Blame, FailureKind, Limits, RequestFailed, TokenFailed
from parquet_sink.net.settings import ClientCredentials
from parquet_sink.net.tokens import PAUSE_S, RENEW_WITHIN_S, TokenEndpoint, TokenSource
from tests.messages import assert_says


class Server:
    """Gives t1, t2, ...; fails as often as it is told; remembers how long it was given."""

    def __init__(self, lives_s: float | None = 100.0) -> None:
        self.now, self.lives_s, self.given, self.fail = 0.0, lives_s, 0, 0
        self.seconds: list[float] = []
        self.during: Callable[[], None] = lambda: None

    def ask(self, seconds: float) -> AccessToken:
        self.seconds.append(seconds)
        self.during()
        if self.fail:
            self.fail -= 1
            raise TokenFailed("away", Blame.NETWORK, passing=True, wait_s=4)
        self.given += 1
        return AccessToken(Secret(f"t{self.given}"), self.lives_s)

    def source(self) -> TokenSource:
        return TokenSource(self.ask, lambda: self.now)


def got(source: TokenSource, seconds: float = 60.0) -> str:
    """The token that is given out now."""
    return source.get(seconds).value.reveal()


def test_a_token_is_asked_for_once_and_renewed_before_it_ends() -> None:
    """The same one for four fifths of its life, then another."""
    server = Server()
    source = server.source()
    seen = []
    for server.now in (0, 50, 79.9, 80, 159.9, 160):
        seen.append(got(source))
    assert seen == ["t1", "t1", "t1", "t2", "t2", "t3"]


def test_life_is_counted_from_before_the_request() -> None:
    """A slow answer does not make a token live longer than its server thinks."""
    server = Server()

    def slow() -> None:
        server.now += 90

    server.during = slow
    source = server.source()
    assert got(source) == "t1"
    server.during = lambda: None
    assert got(source) == "t2"


def test_a_token_without_an_end_is_good_until_it_is_refused() -> None:
    """Nothing is asked again for years, and then at once."""
    server = Server(lives_s=None)
    source = server.source()
    assert got(source) == "t1"
    server.now = 1e9
    assert got(source) == "t1"
    source.reject(Secret("t1"))
    assert got(source) == "t2"


def test_a_token_that_ends_at_once_is_used_once() -> None:
    """A server that gives no life at all is asked each time."""
    server = Server(lives_s=0.0)
    source = server.source()
    assert [got(source), got(source)] == ["t1", "t2"]


def test_an_older_token_that_is_refused_late_does_not_cost_the_newer_one() -> None:
    """Two uploads with one token are refused; the second refusal comes after the renewal."""
    server = Server()
    source = server.source()
    old = got(source)
    source.reject(Secret(old))
    assert got(source) == "t2"
    source.reject(Secret(old))
    assert got(source) == "t2"


def test_a_token_that_cannot_be_renewed_is_used_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """Its server is asked again after a pause, not with each upload, and each time only for a moment."""
    server = Server(lives_s=1000.0)
    source = server.source()
    got(source)
    server.fail = 2
    for server.now in (800, 801, 800 + PAUSE_S - 0.1):
        assert got(source) == "t1"
    assert len(server.seconds) == 2
    server.now = 800 + PAUSE_S
    assert got(source) == "t1"
    server.now = 800 + 2 * PAUSE_S
    assert got(source) == "t2"
    assert server.seconds == [60.0, *[RENEW_WITHIN_S] * 3]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "t1" not in caplog.text


def test_a_token_refused_while_it_could_not_be_renewed_is_not_given_again() -> None:
    """The failed renewal does not bring it back."""
    server = Server()
    source = server.source()
    got(source)
    server.now, server.fail = 90, 1
    server.during = lambda: source.reject(Secret("t1"))
    assert got(source) == "t1"
    server.during = lambda: None
    assert got(source) == "t2"


def test_without_a_good_token_a_failure_is_told_with_what_it_asks() -> None:
    """After its end an old token is not used, whatever happens."""
    server = Server()
    source = server.source()
    got(source)
    server.now, server.fail = 100, 1
    with pytest.raises(TokenFailed) as caught:
        source.get(5)
    assert (caught.value.cause, caught.value.passing, caught.value.wait_s) == ("away", True, 4)
    assert got(source) == "t2"


def together(server: Server, count: int) -> list[str]:
    """What so many threads get that ask for a token while one request is under way."""
    entered, release, arrived = threading.Event(), threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        entered.set()
        assert release.wait(10)

    def clock() -> float:
        arrived.release()
        return server.now

    server.during = hold
    source = TokenSource(server.ask, clock)

    def told() -> str:
        try:
            return got(source)
        except TokenFailed as failed:
            return failed.cause

    with ThreadPoolExecutor(count) as pool:
        asked = [pool.submit(told) for _ in range(count)]
        assert entered.wait(10)
        for _ in range(count):
            assert arrived.acquire(timeout=10)
        release.set()
        return [one.result(10) for one in asked]


def test_threads_that_ask_together_get_one_token() -> None:
    """Eight uploads begin, and one request is made."""
    server = Server()
    assert together(server, 8) == ["t1"] * 8
    assert server.given == 1


def test_threads_that_ask_together_share_a_failure() -> None:
    """A server that is away is not waited for once by each of them."""
    server = Server()
    server.fail = 1
    assert together(server, 8) == ["away"] * 8
    assert len(server.seconds) == 1


def test_who_waits_too_long_for_anothers_request_gives_up_in_time() -> None:
    """The time of an attempt holds while another thread asks."""
    server = Server()
    source = server.source()
    failures = []

    def impatient() -> None:
        try:
            source.get(0.01)
        except TokenFailed as failed:
            failures.append((failed.passing, failed.cause))

    def meanwhile() -> None:
        thread = threading.Thread(target=impatient)
        thread.start()
        thread.join(10)

    server.during = meanwhile
    assert got(source) == "t1"
    ((passing, cause),) = failures
    assert passing
    assert_says(cause, "another request", "still under way")


def test_while_one_thread_renews_the_others_go_on_with_what_is_good() -> None:
    """Nobody waits for a newer token."""
    server = Server()
    source = server.source()
    got(source)
    server.now = 90
    seen: list[str] = []
    server.during = lambda: seen.append(got(source))
    assert got(source) == "t2"
    assert seen == ["t1"]


CANARY = "canary: 7+/ü=%&"
CLIENT = ClientCredentials("my id:1", Secret(CANARY), "https://auth/oauth2/token", "a.b:push c")
TOKEN = "canary-token-1"


class Wire:
    """Takes a request and gives the answer, or the failure, that it was made with."""

    def __init__(self, answer: Answer | RequestFailed) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.limits: list[Limits] = []
        self.closed = 0

    def exchange(self, request: Request, limits: Limits) -> Answer:
        self.requests.append(request)
        self.limits.append(limits)
        if isinstance(self.answer, RequestFailed):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed += 1


def endpoint(wire: Wire, client: ClientCredentials = CLIENT) -> TokenEndpoint:
    """An endpoint at the other end of such a wire, at noon."""
    return TokenEndpoint(client, wire, 2.0, 3.0, lambda: 1_800_000_000.0)  # type: ignore[arg-type]


def good(**fields: object) -> Answer:
    """An answer with a token."""
    return Answer(
        200, json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 899, **fields}).encode()
    )


def asked(answer: Answer | RequestFailed) -> AccessToken:
    """The token of such an answer."""
    return endpoint(Wire(answer)).ask(9.0)


def failed(answer: Answer | RequestFailed) -> TokenFailed:
    """Why there is none; the words never hold what is secret."""
    with pytest.raises(TokenFailed) as caught:
        asked(answer)
    assert "canary" not in f"{caught.value!r} {caught.value}"
    assert_says(caught.value.cause, "no access token", "from https://auth/oauth2/token: ")
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


def sent(client: ClientCredentials) -> tuple[Mapping[str, str], dict[str, list[str]]]:
    """Headers and form of the request."""
    wire = Wire(good())
    endpoint(wire, client).ask(9.0)
    (request,) = wire.requests
    assert (request.method, request.url, wire.closed) == ("POST", CLIENT.token_url, 1)
    assert wire.limits == [Limits(9.0, 2.0, 3.0, 64 * 1024)]
    sent = request.prepare()
    assert isinstance(sent.body, str)
    assert sent.headers["Content-Length"] == str(len(sent.body))
    return sent.headers, parse_qs(sent.body, keep_blank_values=True)


def test_a_client_proves_itself_by_a_header() -> None:
    """Id and secret are each encoded as in a form, as RFC 6749 has it, so that a colon in the id divides nothing."""
    headers, form = sent(CLIENT)
    assert form == {"grant_type": ["client_credentials"], "scope": ["a.b:push c"]}
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    pair = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
    assert pair == "my+id%3A1:canary%3A+7%2B%2F%C3%BC%3D%25%26"


def test_or_by_the_form() -> None:
    """Then there is no header, and no scope where none is set."""
    headers, form = sent(ClientCredentials("my id:1", Secret(CANARY), CLIENT.token_url, in_body=True))
    assert form == {"grant_type": ["client_credentials"], "client_id": ["my id:1"], "client_secret": [CANARY]}
    assert "Authorization" not in headers


def test_a_token_is_told_with_its_life() -> None:
    """It shows in no representation."""
    token = asked(good())
    assert token == AccessToken(Secret(TOKEN), 899.0)
    assert "canary" not in repr(token)


@pytest.mark.parametrize(
    ("life", "seconds"),
    [
        *[("899", 899), (0, 0), (-5, 0), (1.5, 1.5), (None, None), ("soon", None), (True, None), ([], None)],
        *[(10**400, None), (1e300, 315_360_000), ("nan", None), ("inf", 315_360_000)],
    ],
)
def test_lives_of_any_kind(life: object, seconds: float | None) -> None:
    """A number, also as text, bounded; of anything else the token is good until it is refused."""
    assert asked(good(expires_in=life)).lives_s == seconds


def test_a_token_type_may_be_missing_or_written_otherwise() -> None:
    """`bearer` is Bearer; a server that does not say means that."""
    assert asked(good(token_type="BEARER")).value == Secret(TOKEN)
    assert asked(Answer(200, b'{"access_token": "canary-token-1"}')).lives_s is None


@pytest.mark.parametrize(
    ("answer", "blame", "passing"),
    [
        (Answer(200, b"<html>canary</html>", {"content-type": "text/html"}), Blame.ADDRESS, True),
        (Answer(200, b""), Blame.ADDRESS, True),
        (Answer(204), Blame.ADDRESS, True),
        (Answer(200, b"[" * 50_000), Blame.ADDRESS, True),
        (Answer(200, b'{"access_token": 7}'), Blame.ADDRESS, True),
        (Answer(200, good().body, too_long=True), Blame.ADDRESS, True),
        (Answer(200, good().body[:-3], broken=FailureKind.BROKEN), Blame.SERVER, True),
        (good(token_type="mac"), Blame.ADDRESS, False),
        (good(access_token=""), Blame.ADDRESS, False),
        (good(access_token="canary\r\nX: y"), Blame.ADDRESS, False),
        (good(access_token="canary ü"), Blame.ADDRESS, False),
        (good(access_token="canary" * 9_999), Blame.ADDRESS, False),
        (Answer(302, b"", {"location": "https://elsewhere"}), Blame.ADDRESS, False),
        (Answer(400, b'{"error":"invalid_scope"}'), Blame.SCOPE, False),
        (Answer(400, b'{"error":"invalid_client"}'), Blame.CLIENT, False),
        (Answer(400, b'{"error":"unauthorized_client"}'), Blame.CLIENT, False),
        (Answer(400, b'{"error":"unsupported_grant_type"}'), Blame.CLIENT, False),
        (Answer(400, b"what?"), Blame.ADDRESS, False),
        (Answer(401, b""), Blame.CLIENT, False),
        (Answer(403, b"[]"), Blame.CLIENT, False),
        (Answer(404, b""), Blame.ADDRESS, False),
        (Answer(407, b""), Blame.PROXY, False),
        (Answer(408, b""), Blame.SERVER, True),
        (Answer(429, b"", {"x-ratelimit-reset": "7"}), Blame.SERVER, True),
        (Answer(500, b'{"error": 7}'), Blame.SERVER, True),
        (Answer(501, b""), Blame.ADDRESS, False),
        (Answer(503, b""), Blame.SERVER, True),
        (RequestFailed(FailureKind.CONNECT, "refused"), Blame.NETWORK, True),
        (RequestFailed(FailureKind.NO_ANSWER), Blame.SERVER, True),
        (RequestFailed(FailureKind.TLS, "certificate has expired"), Blame.TLS, False),
        (RequestFailed(FailureKind.PROXY_REFUSED, f"no {CANARY}"), Blame.PROXY, False),
    ],
)
def test_why_there_is_no_token(answer: Answer | RequestFailed, blame: Blame, passing: bool) -> None:
    """Each failure has somebody to blame, and may pass or not."""
    error = failed(answer)
    assert (error.blame, error.passing) == (blame, passing)
    assert error.wait_s == (7 if isinstance(answer, Answer) and answer.status == 429 else None)


def test_the_words_of_an_error_are_told_without_what_was_sent() -> None:
    """A server that echoes the secret, in whatever form, is quoted with stars."""
    pair = base64.b64encode(b"my+id%3A1:canary%3A+7%2B%2F%C3%BC%3D%25%26").decode()
    said = f"no client my id:1 with {CANARY} or canary%3A+7%2B%2F%C3%BC%3D%25%26 or {pair}\n\x1b[31m"
    error = failed(Answer(401, json.dumps({"error": "invalid_client", "error_description": said}).encode()))
    assert_says(error.cause, "answered 401", "invalid_client: no client my id:1", "***** or ***** or *****\\n\\x1b[31m")
    assert pair not in error.cause


def test_the_query_of_its_address_is_not_shown() -> None:
    """Some servers have a tenant's key there."""
    client = ClientCredentials("id", Secret("s"), "https://auth/t?key=canary")
    with pytest.raises(TokenFailed) as caught:
        endpoint(Wire(Answer(503)), client).ask(9.0)
    assert_says(caught.value.cause, "no access token", "from https://auth/t: ", "answered 503")
    assert "canary" not in str(caught.value)


def test_of_what_should_be_a_token_nothing_is_quoted() -> None:
    """Whatever is wrong with it, it may be good somewhere."""
    assert_says(failed(good(token_type="canary-mac")).cause, "another type than Bearer", "cannot be sent")


@given(st.binary(max_size=300), st.integers(100, 999))
def test_no_answer_breaks_it(body: bytes, status: int) -> None:
    """Any status with any body is a token or a failure."""
    with suppress(TokenFailed):
        assert asked(Answer(status, body)).value.reveal()
