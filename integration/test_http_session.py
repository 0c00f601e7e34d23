"""What the session promises and requests by itself does not: each promise beside requests as it comes."""

import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from integration import scripted_target as script
from integration.certificates import make as make_certificates
from integration.certificates import server_context
from integration.scripted_target import ConnectProxy, ScriptedTarget
from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.session import HttpSession
from parquet_sink.net.settings import ProxySettings

QUICK = Limits(5.0, 2.0, 0.2, 1024)
PATIENT = Limits(10.0, 2.0, 10.0, 1024)
DRIP = script.drip(b"HTTP/1.1 ")


@contextmanager
def session(context: ssl.SSLContext | None = None, proxy: ProxySettings | None = None) -> Iterator[HttpSession]:
    """A session, closed at the end."""
    with HttpSession(context or ssl.create_default_context(), proxy, max_idle=9) as opened:
        yield opened


def asked(target: ScriptedTarget, limits: Limits, **more: Any) -> Answer:
    """The answer to a question, by a session of its own."""
    with session() as opened:
        return opened.exchange(requests.Request("GET", target.endpoint, **more), limits)


def goes_on(question: Callable[[], object], seconds: float) -> bool:
    """Whether requests is still at it after so many seconds; it ends when its target does."""
    thread = threading.Thread(target=lambda: _passed_over(question))
    thread.start()
    thread.join(seconds)
    return thread.is_alive()


def _passed_over(question: Callable[[], object]) -> None:
    with pytest.raises(requests.RequestException):
        question()


def test_an_answer_that_drips_has_an_end() -> None:
    """The time to answer is that of the whole answer; to requests it is that of each byte."""
    with ScriptedTarget(*[DRIP] * 2) as target:
        with pytest.raises(RequestFailed) as caught:
            asked(target, QUICK)
        assert caught.value.kind is FailureKind.NO_ANSWER
        assert goes_on(lambda: requests.get(target.endpoint, timeout=0.2), 1.0)


def test_what_came_of_an_answer_that_drips_is_kept() -> None:
    """Also when it is less than one piece, which requests waits for."""
    with ScriptedTarget(script.drip(b"HTTP/1.1 403 No\r\nContent-Length: 5000\r\n\r\nwhy")) as target:
        answer = asked(target, QUICK)
    assert (answer.status, answer.broken) == (403, FailureKind.NO_ANSWER)
    assert answer.body.startswith(b"why")


def test_a_redirect_is_an_answer_of_bounded_size() -> None:
    """Requests looks where it points to, and for that reads its body to the end, though it is not to follow."""

    def endless_redirect(connection: script.Connection) -> None:
        connection.socket.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
        while not connection.server.closing.is_set():
            connection.socket.sendall(b"y" * 65536)

    def plain() -> None:
        requests.get(target.endpoint, allow_redirects=False, stream=True, timeout=5)

    with ScriptedTarget(*[endless_redirect] * 2) as target:
        answer = asked(target, PATIENT)
        assert (answer.status, answer.too_long, len(answer.body)) == (302, True, 1024)
        assert goes_on(plain, 1.0)


class _WithContext(HTTPAdapter):
    """An own TLS context, as requests documents it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._context)


def test_no_authority_is_trusted_beside_the_contexts(tmp_path: Path) -> None:
    """Requests would load certifi's into the context that it is given."""
    certificates = make_certificates(tmp_path)
    ours, plain = (ssl.create_default_context(cafile=str(certificates / "ca.pem")) for _ in range(2))
    with ScriptedTarget(tls=server_context(certificates, "good")) as target:
        with session(ours) as opened:
            assert opened.exchange(requests.Request("GET", target.endpoint), PATIENT).status == 200
        with requests.Session() as other:
            other.mount("https://", _WithContext(plain))
            assert other.get(target.endpoint, timeout=5).status_code == 200
    assert ours.cert_store_stats()["x509_ca"] == 1
    assert plain.cert_store_stats()["x509_ca"] > 1


def test_a_request_carries_what_it_was_given() -> None:
    """Requests adds headers of its own, and takes credentials from the environment's files."""
    with ScriptedTarget() as target:
        asked(target, PATIENT, headers={"Accept-Encoding": "identity", "User-Agent": "us", "X-Case": "1"})
        requests.get(target.endpoint, timeout=5)
    ours, plain = (set(one.headers) for one in target.requests)
    assert ours == {"host", "accept-encoding", "user-agent", "x-case"}
    assert plain == {"host", "accept-encoding", "user-agent", "accept", "connection"}


def test_the_environment_says_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests goes through whatever it names."""
    with ConnectProxy() as named, ScriptedTarget() as target:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{named.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert asked(target, PATIENT).status == 200
        assert named.heads == []
        requests.get(target.endpoint, timeout=5)
        assert len(named.heads) == 1


def test_a_proxys_credential_may_have_any_letters() -> None:
    """In UTF-8; requests has Latin-1, and refuses what that has not."""
    with ConnectProxy() as proxy, ScriptedTarget() as target:
        settings = ProxySettings("127.0.0.1", proxy.port, username="użytkownik", password=Secret("hasło"))
        with session(proxy=settings) as opened:
            assert opened.exchange(requests.Request("GET", target.endpoint), PATIENT).status == 200
        address = f"http://u%C5%BCytkownik:has%C5%82o@127.0.0.1:{proxy.port}"
        with pytest.raises(UnicodeEncodeError):
            requests.get(target.endpoint, proxies={"http": address}, timeout=5)
    assert len(proxy.heads) == 1


def test_one_thread_keeps_the_time_of_all_exchanges() -> None:
    """An exchange starts none of its own, so a small file costs no more than its bytes."""
    with ScriptedTarget(*[DRIP] * 8) as target, ThreadPoolExecutor(8) as many:
        limits = Limits(5.0, 2.0, 1.0, 1024)
        under_way = [many.submit(asked, target, limits) for _ in range(8)]
        while len(target.requests) < 8:
            time.sleep(0.01)
        assert [one.name for one in threading.enumerate()].count("http-deadline") == 1
        for one in under_way:
            with pytest.raises(RequestFailed):
                one.result()


def test_the_time_of_an_exchange_ends_with_it() -> None:
    """The connection is the next one's, which has its own."""
    with ScriptedTarget() as target, session() as opened:
        for _ in range(2):
            assert opened.exchange(requests.Request("GET", target.endpoint), QUICK).complete
            time.sleep(2 * QUICK.answer_seconds)
        assert target.state.connections == 1


FORK = """
import os, ssl, sys, warnings
from requests import Request
from parquet_sink.net import deadline
from parquet_sink.net.exchange import Limits, RequestFailed
from parquet_sink.net.session import HttpSession

warnings.simplefilter("ignore")

def ends():
    try:
        HttpSession(ssl.create_default_context()).exchange(Request("GET", sys.argv[1]), Limits(5.0, 2.0, 0.2, 10))
    except RequestFailed as failed:
        return failed.kind == "no answer"

assert ends()
deadline._timekeeper._changed.acquire()  # as another thread may hold it at any time
child = os.fork()
if child == 0:
    os._exit(0 if ends() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_time_is_kept_in_a_fork_too() -> None:
    """A thread does not live on there, and a lock that it held is never released."""
    with ScriptedTarget(*[DRIP] * 2) as target:
        done = subprocess.run([sys.executable, "-c", FORK, target.endpoint], timeout=30, check=False)
    assert done.returncode == 0
