"""Access tokens as a process keeps them."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.net.access_token import AccessToken, Blame, TokenFailed
from parquet_sink.net.tokens import PAUSE_S, RENEW_WITHIN_S, TokenSource


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
    assert failures == [(True, "another request for one is still under way")]


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
