"""The push client against real sockets: every fault, TLS, proxies, deadlines, connections."""

import base64
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from integration import scripted_target as script
from integration.certificates import make as make_certificates
from integration.certificates import server_context
from integration.scripted_target import Behaviour, ClearServer, ConnectProxy, ScriptedTarget, SocksProxy
from parquet_sink.config.secret import Secret
from parquet_sink.errors import StorageFailed, UploadError, UploadExhausted, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name
from parquet_sink.files.rotation import Reason
from parquet_sink.model.receipts import Receipt
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.outcome import Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.target import PushTarget
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.uploader import Deliverer
from tests.messages import assert_says, saying

KEY = "AppKey canary-0123456789"
NAME = "topic-orders_partition-0_firstOffset-0_lastOffset-9_bytes-7_rows-10.parquet"
CONTENT = os.urandom(300_000)


@pytest.fixture
def file(tmp_path: Path) -> FinishedFile:
    """A file of 300 kB, larger than a piece and than socket buffers."""
    return make_file(tmp_path, CONTENT)


def make_file(folder: Path, content: bytes) -> FinishedFile:
    """A finished file with this content."""
    path = folder / attempt_name("ab" * 16, 0)
    path.write_bytes(content)
    return FinishedFile(str(path), NAME, "orders", 0, 0, 9, 10, 10, len(content), Reason.RECORDS, 0.0, 0.0, None)


PATIENCE = {field.name for field in fields(RetrySettings)}


def retry_for(**more: object) -> RetrySettings:
    """Three attempts in eight seconds; what is no matter of patience is passed over."""
    quick = RetrySettings(max_retries=3, retry_interval_ms=1, put_timeout_ms=8_000)
    return replace(quick, **{name: value for name, value in more.items() if name in PATIENCE})


def settings_for(endpoint: str, **more: object) -> PushSettings:
    """Little patience, yet more than a stalled machine takes; what is a matter of retries is passed over."""
    quick = PushSettings(
        endpoint,
        Secret(KEY),
        "a+b",
        connect_timeout_ms=2_000,
        response_timeout_ms=1_500,
    )
    return replace(quick, **{name: value for name, value in more.items() if name not in PATIENCE})


def deliver(endpoint: str, file: FinishedFile, **more: object) -> Receipt:
    """Sends a file with retries, through a client of its own."""
    settings = settings_for(endpoint, **more)
    client = PushTarget(settings, "1.2.3", environment={})
    try:
        return Deliverer("sink", client, retry_for(**more)).deliver(file)
    finally:
        client.close()


def failure(endpoint: str, file: FinishedFile, **more: object) -> UploadError:
    """The error that ends an upload; it never holds the key."""
    with pytest.raises(UploadError) as caught:
        deliver(endpoint, file, **more)
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(caught.value)
    assert NAME in str(caught.value)
    assert Path(file.path).exists()
    return caught.value


def test_the_request_is_the_documented_one(file: FinishedFile) -> None:
    """Method, address, headers and body are the contract's, to the byte."""
    with ScriptedTarget() as target:
        receipt = deliver(target.endpoint, file, connection_id="con", primary_keys=("a", "b"), order_column="o")
        (request,) = target.requests
    assert request.line == (
        "POST /api/v1/pool/items?targetName=a%2Bb&connectionId=con&clientId=Kafka2Ems+1.2.3"
        "&primaryKeys=a%2Cb&duplicateRemovalOrderColumn=o HTTP/1.1"
    )
    headers = request.headers
    assert headers["authorization"] == KEY
    assert headers["accept"] == "application/json"
    assert int(headers["content-length"]) == len(request.body)
    assert not {"transfer-encoding", "proxy-authorization", "connection", "cookie"} & set(headers)
    kind, _, boundary = headers["content-type"].partition("; boundary=")
    assert kind == "multipart/form-data"
    assert (
        request.body
        == (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{NAME}"\r\n'
            f"Content-Transfer-Encoding: binary\r\n\r\n"
        ).encode()
        + CONTENT
        + f"\r\n--{boundary}--\r\n".encode()
    )
    assert (receipt.accepted, receipt.attempts, receipt.status, receipt.answer_id) == (True, 1, 200, "1")
    assert not Path(file.path).exists()


HTML = b"<html><body>Sign in</body></html>"
REFUSED = {
    "redirect 302": script.answer(302, b"", "Location: /elsewhere"),
    "redirect 307": script.answer(307, b"", "Location: /elsewhere"),
    "413 before the body": script.answer(413, b"too large", read=False),
    **{str(s): script.answer(s, b"because") for s in (400, 401, 403, 404, 405, 410, 411, 413, 415, 422, 431, 501, 505)},
    "endless 403": script.endless(403),
    "dripping 403": script.drip(b"HTTP/1.1 403 No\r\nContent-Length: 5000\r\n\r\n"),
}
RETRIABLE = {
    **{str(s): script.answer(s) for s in (408, 421, 425, 429)},
    "Retry-After 0": script.answer(429, b"", "Retry-After: 0"),
    "Retry-After junk": script.answer(429, b"", "Retry-After: soon"),
    "Retry-After past date": script.answer(429, b"", "Retry-After: Thu, 01 Jan 2015 00:00:00 GMT"),
}
UNKNOWN = {
    **{str(s): script.answer(s, b"trouble") for s in (500, 502, 503, 504)},
    "2xx HTML": script.answer(200, HTML, "Content-Type: text/html"),
    "2xx empty": script.answer(200),
    "204": script.answer(204),
    "2xx other JSON": script.answer(200, b'{"status":"up"}'),
    "2xx cut JSON": script.answer(200, script.ACCEPTED[:-5]),
    "2xx truncated": script.truncated,
    "2xx endless": script.endless(200),
    "reset before the body": script.cut(0),
    "reset during the body": script.cut(100_000),
    "reset after the body": script.cut(None),
    "closed without an answer": script.close_silently,
    "no answer": script.hang,
    "dripping headers": script.drip(b"HTTP/1.1 200 OK\r\nX: "),
    "dripping body": script.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"),
    "dripping body to the close": script.drip(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
    "not HTTP": script.garbage,
    "answer without length or end": script.open_ended,
}
TRIED_AGAIN = RETRIABLE | UNKNOWN
STALLS = ("no answer", "dripping", "answer without length")
"""How names of faults begin that end by the time to answer."""


def patience(name: str) -> dict[str, int]:
    """More time than a busy machine takes, where a fault does not take all of it."""
    return {} if name.startswith(STALLS) else {"response_timeout_ms": 60_000, "put_timeout_ms": 120_000}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_ends_at_once(name: str, file: FinishedFile) -> None:
    """A refusal on the first attempt is not tried again, and its status is in the error."""
    with ScriptedTarget(REFUSED[name]) as target:
        error = failure(target.endpoint, file, **patience(name))
        assert len(target.requests) == 1
    assert isinstance(error, UploadRefused)
    assert error.status is not None
    assert f"answered {error.status}" in str(error)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_on_the_third_attempt(name: str, file: FinishedFile) -> None:
    """A refusal after two passing faults ends the upload there."""
    with ScriptedTarget(script.answer(503), script.answer(429), REFUSED[name]) as target:
        error = failure(target.endpoint, file, max_retries=9, **patience(name))
        assert len(target.requests) == 3
    assert isinstance(error, UploadRefused)
    assert "after 3 attempts" in str(error)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_is_tried_again_with_retry(name: str, file: FinishedFile) -> None:
    """With error.policy=RETRY a refusal is tried again within the budget."""
    with ScriptedTarget(REFUSED[name]) as target:
        receipt = deliver(target.endpoint, file, error_policy="RETRY", **patience(name))
    assert receipt.attempts == 2


@pytest.mark.parametrize("name", TRIED_AGAIN)
def test_a_passing_fault_on_the_first_attempt(name: str, file: FinishedFile) -> None:
    """After one fault the same name and bytes are sent again, and accepted."""
    with ScriptedTarget(TRIED_AGAIN[name]) as target:
        receipt = deliver(target.endpoint, file, **patience(name))
        assert receipt.attempts == 2
        assert CONTENT in target.requests[-1].body
        assert f'filename="{NAME}"'.encode() in target.requests[-1].body


@pytest.mark.parametrize("name", TRIED_AGAIN)
def test_a_fault_that_stays(name: str, file: FinishedFile) -> None:
    """A fault on all three attempts ends with the budget; the file is kept, and what is unknown is called so."""
    with ScriptedTarget(script.answer(503), script.answer(503), TRIED_AGAIN[name]) as target:
        error = failure(target.endpoint, file, **patience(name))
        assert len(target.requests) == 3
    assert isinstance(error, UploadExhausted)
    fate = "was not taken" if name in RETRIABLE else "may or may not"
    assert fate in str(error)


def test_html_names_the_cause(file: FinishedFile) -> None:
    """A web page in place of an answer ends by saying that this is not a push target."""
    page = script.answer(200, HTML, "Content-Type: text/html")
    with ScriptedTarget(page, page, page) as target:
        assert_says(failure(target.endpoint, file), "connect.ems.endpoint", "not a push target")


def test_401_names_the_key_not_its_value(file: FinishedFile) -> None:
    """A wrong key names the configuration key; a target that echoes the value does not bring it into the message."""
    with ScriptedTarget(script.answer(401, f"unknown key {KEY}".encode())) as target:
        message = str(failure(target.endpoint, file))
    assert "connect.ems.authorization.key" in message
    assert "unknown key *****" in message


def test_a_redirect_carries_nothing_away(file: FinishedFile) -> None:
    """Neither file nor credential goes where a redirect points."""
    with ScriptedTarget() as elsewhere:
        redirect = script.answer(307, b"", f"Location: {elsewhere.endpoint}")
        with ScriptedTarget(redirect) as target:
            failure(target.endpoint, file)
        assert elsewhere.state.connections == 0


def test_a_message_is_bounded_and_printable(file: FinishedFile) -> None:
    """A long body with control characters is cut at 1 KiB and escaped."""
    with ScriptedTarget(script.answer(400, b"\x1b[2J\n" + b"z" * 5000)) as target:
        message = str(failure(target.endpoint, file))
    assert message.isprintable()
    assert "\\x1b[2J\\n" in message
    assert message.count("z" * 1000) == 1
    assert "z" * 1025 not in message


@pytest.mark.parametrize("status", [200, 403])
def test_an_answer_without_end_is_read_to_64_kib(status: int, file: FinishedFile) -> None:
    """A body without end is left after 64 KiB, long before the time to answer is over, and its connection closed."""
    started = time.monotonic()
    with ScriptedTarget(script.endless(status)) as target:
        client = PushTarget(settings_for(target.endpoint, response_timeout_ms=120_000), environment={})
        outcome = client.push(file, 120)
        assert (outcome.verdict is Verdict.REFUSED) is (status == 403)
        assert client.push(file, 120).verdict is Verdict.ACCEPTED
        assert target.state.connections == 2
        client.close()
    assert time.monotonic() - started < 60


def test_a_broken_refusal_keeps_its_text(file: FinishedFile) -> None:
    """What came of a refusal's text before it dripped on without end is in the message."""
    with ScriptedTarget(REFUSED["dripping 403"]) as target:
        assert "the target answered 403: xxx" in str(failure(target.endpoint, file))


def test_nobody_listens(file: FinishedFile) -> None:
    """A refused connection is retriable and names the address's key."""
    with script.closed_port() as port:
        error = failure(f"http://127.0.0.1:{port}/", file)
    assert isinstance(error, UploadExhausted)
    assert_says(error, "was not taken", "no connection", "Connection refused", "connect.ems.endpoint")
    assert error.status is None


def test_no_such_name(file: FinishedFile) -> None:
    """A name that does not resolve is retriable."""
    error = failure("http://no-such-host.invalid/", file)
    assert isinstance(error, UploadExhausted)
    assert_says(error, "was not taken", "no connection to", "connect.ems.endpoint")


def test_connecting_takes_too_long(file: FinishedFile) -> None:
    """A connection that is not taken in time is retriable, and the key of that time is named."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        error = failure(f"http://127.0.0.1:{full.getsockname()[1]}/", file, connect_timeout_ms=50)
        for filler in fillers:
            filler.close()
    assert "connect.ems.http.connect.timeout.ms" in str(error)


def test_deadlines_hold(file: FinishedFile) -> None:
    """A body that drips for ever is given up after the time to answer, not after the time of each byte."""
    started = time.monotonic()
    with ScriptedTarget(*[script.drip(b"HTTP/1.1 200 OK\r\n")] * 3) as target:
        error = failure(target.endpoint, file, response_timeout_ms=200)
    assert time.monotonic() - started < 30
    assert_says(error, "no whole answer", "in time", "connect.ems.http.response.timeout.ms")


@pytest.mark.parametrize("limit", ["response_timeout_ms", "put_timeout_ms"])
def test_a_target_that_reads_nothing(tmp_path: Path, limit: str) -> None:
    """A body that is not taken is given up after the time to answer, or when the upload's whole time is over."""
    large = make_file(tmp_path, bytes(16 << 20))
    started = time.monotonic()
    times = {"response_timeout_ms": 60_000, "put_timeout_ms": 60_000} | {limit: 300}
    with ScriptedTarget(script.never_read) as target:
        error = failure(target.endpoint, large, max_retries=1, **times)
    assert isinstance(error, UploadExhausted)
    assert_says(error, "no whole answer", "in time")
    assert time.monotonic() - started < 30


def test_retry_after_is_honoured(file: FinishedFile) -> None:
    """The target's wait is waited when it is longer than ours."""
    started = time.monotonic()
    with ScriptedTarget(script.answer(503, b"", "Retry-After: 1")) as target:
        assert deliver(target.endpoint, file).attempts == 2
    assert time.monotonic() - started >= 1


def test_a_vanished_file_is_storage_trouble(file: FinishedFile) -> None:
    """A file that is gone is told as such, and not blamed on the target."""
    os.unlink(file.path)
    with ScriptedTarget() as target, pytest.raises(StorageFailed, match=saying("not read", "finished file")):
        deliver(target.endpoint, file)


def push_twice(settings: PushSettings, file: FinishedFile, pause: float = 0.0) -> list[Verdict]:
    """Sends a file twice with one client."""
    client = PushTarget(settings, environment={})
    verdicts = [client.push(file, 5).verdict]
    time.sleep(pause)
    verdicts.append(client.push(file, 5).verdict)
    client.close()
    return verdicts


@pytest.mark.parametrize(
    ("more", "pause", "connections"),
    [({}, 0.0, 1), ({"pool_explicit_close": True}, 0.0, 2), ({"pool_keepalive_ms": 20}, 0.1, 2)],
)
def test_connections_are_reused(more: dict[str, object], pause: float, connections: int, file: FinishedFile) -> None:
    """A connection serves the next file, unless it is to be closed or was idle too long."""
    with ScriptedTarget() as target:
        assert push_twice(settings_for(target.endpoint, **more), file, pause) == [Verdict.ACCEPTED] * 2
        assert target.state.connections == connections
        closed = {r.headers.get("connection", "").lower() for r in target.requests}
    assert closed == ({"close"} if "pool_explicit_close" in more else {""})


def test_an_idle_connection_that_was_closed(file: FinishedFile) -> None:
    """A connection that the target closed while it was idle is replaced without a failed attempt."""

    def accept_and_close(connection: script.Connection) -> None:
        script.accept(connection)
        connection.socket.shutdown(socket.SHUT_WR)

    with ScriptedTarget(accept_and_close) as target:
        assert push_twice(settings_for(target.endpoint), file, 0.1) == [Verdict.ACCEPTED] * 2


@pytest.mark.parametrize("name", ["503", "not HTTP", "no answer"])
def test_close_closes_idle_connections(name: str, file: FinishedFile) -> None:
    """After a failed and a good attempt, closing the client ends its connection at once, as the target sees."""
    ended = threading.Event()

    def accept_and_see_the_end(connection: script.Connection) -> None:
        script.accept(connection)
        if connection.socket.recv(1) == b"":
            ended.set()

    with ScriptedTarget(UNKNOWN[name], accept_and_see_the_end) as target:
        client = PushTarget(settings_for(target.endpoint), environment={})
        assert [client.push(file, 5).verdict for _ in range(2)] == [Verdict.UNKNOWN, Verdict.ACCEPTED]
        assert not ended.is_set()
        client.close()
        assert ended.wait(5)


def test_no_cookie_is_kept(file: FinishedFile) -> None:
    """A cookie that a target sets is not sent back."""
    with ScriptedTarget(script.answer(200, script.ACCEPTED, "Set-Cookie: a=b; Path=/")) as target:
        push_twice(settings_for(target.endpoint), file)
        assert "cookie" not in target.requests[1].headers


def peak_memory_kib() -> int:
    """Largest resident size of this process since the peak was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def test_a_large_file_takes_constant_memory(tmp_path: Path) -> None:
    """A file of 400 MB is streamed: memory grows by far less than its size."""
    path = tmp_path / attempt_name("cd" * 16, 0)
    with open(path, "wb") as sparse:
        sparse.truncate(400 << 20)
    large = FinishedFile(str(path), NAME, "orders", 0, 0, 9, 10, 10, 400 << 20, Reason.SIZE, 0.0, 0.0, None)

    def accept_counted(connection: script.Connection) -> None:
        left = int(connection.request.headers["content-length"]) - len(connection.rest)
        while left > 0:
            left -= len(connection.socket.recv(1 << 20))
        connection.send(f"HTTP/1.1 200 OK\r\nContent-Length: {len(script.ACCEPTED)}\r\n\r\n".encode() + script.ACCEPTED)

    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here, whatever ran before
    before = peak_memory_kib()
    with ScriptedTarget(accept_counted) as target:
        assert deliver(target.endpoint, large, put_timeout_ms=60_000, response_timeout_ms=30_000).accepted
    assert peak_memory_kib() - before < 64 * 1024


# TLS


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of it: good, expired, for another host; each with its key in one file."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_target(certificates: Path) -> Callable[..., ScriptedTarget]:
    """Makes targets with one of the certificates."""

    def make(certificate: str = "good", *behaviours: Behaviour) -> ScriptedTarget:
        return ScriptedTarget(*behaviours, tls=server_context(certificates, certificate))

    return make


def test_an_own_ca_is_trusted(
    tls_target: Callable[..., ScriptedTarget], certificates: Path, file: FinishedFile
) -> None:
    """A certificate of the configured CA is accepted."""
    with tls_target() as target:
        assert deliver(target.endpoint, file, ca_file=str(certificates / "ca.pem")).accepted


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_ca_of_the_environment_is_trusted(
    tls_target: Callable[..., ScriptedTarget], certificates: Path, file: FinishedFile, variable: str
) -> None:
    """The usual variables for a CA bundle are honoured."""
    with tls_target() as target:
        client = PushTarget(settings_for(target.endpoint), environment={variable: str(certificates / "ca.pem")})
        assert client.push(file, 5).verdict is Verdict.ACCEPTED
        client.close()


@pytest.mark.parametrize(
    ("certificate", "trusted", "said"),
    [
        ("expired", True, "expired"),
        ("other", True, "IP address mismatch"),
        ("good", False, "unable to get local issuer"),
    ],
)
def test_bad_certificates_are_refused(
    tls_target: Callable[..., ScriptedTarget],
    certificates: Path,
    file: FinishedFile,
    certificate: str,
    trusted: bool,
    said: str,
) -> None:
    """Expired, wrong host, unknown CA: refused at once, nothing is sent, and the cause and key are named."""
    ca_file = str(certificates / "ca.pem") if trusted else None
    with tls_target(certificate) as target:
        error = failure(target.endpoint, file, ca_file=ca_file)
        assert target.requests == []
        assert target.state.connections == 1
    assert isinstance(error, UploadRefused)
    assert said in str(error)
    assert "connect.ems.tls.ca.file" in str(error)


def test_plain_http_behind_https_is_refused(file: FinishedFile) -> None:
    """A target that answers the TLS handshake in clear is refused, never spoken to in clear."""
    with ClearServer() as target:
        error = failure(f"https://127.0.0.1:{target.port}/", file)
        assert b"POST" not in target.seen
    assert isinstance(error, UploadRefused)


@pytest.mark.parametrize("name", ["no answer", "dripping body", "reset during the body", "dripping headers"])
def test_faults_under_tls(
    tls_target: Callable[..., ScriptedTarget], certificates: Path, file: FinishedFile, name: str
) -> None:
    """Deadlines and resets hold under TLS as they do without."""
    with tls_target("good", UNKNOWN[name]) as target:
        assert deliver(target.endpoint, file, ca_file=str(certificates / "ca.pem")).attempts == 2


def test_a_handshake_that_hangs(file: FinishedFile) -> None:
    """A target that takes the connection and says nothing is given up in time, as not connected."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        error = failure(f"https://127.0.0.1:{silent.getsockname()[1]}/", file, connect_timeout_ms=100, max_retries=1)
    assert isinstance(error, UploadExhausted)
    assert_says(error, "was not taken", "no connection to", "in time")
    assert time.monotonic() - started < 30


# Proxies

USER, PASSWORD = "userü", "pässword-canary"


@pytest.fixture
def connect_proxy() -> Iterator[ConnectProxy]:
    """A proxy that works."""
    with ConnectProxy() as proxy:
        yield proxy


def through(port: int, kind: str = "HTTP", *, signed_in: bool = True, password: str = PASSWORD) -> ProxySettings:
    """Proxy settings."""
    return ProxySettings(
        "127.0.0.1",
        port,
        kind,
        USER if signed_in else None,
        Secret(password) if signed_in else None,
    )


def credential() -> str:
    """What BASIC makes of user and password."""
    return "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def test_http_proxy_forwards(connect_proxy: ConnectProxy, file: FinishedFile) -> None:
    """A plain request goes through the proxy, whose credential goes no further."""
    with ScriptedTarget() as target:
        assert deliver(target.endpoint, file, proxy=through(connect_proxy.port)).accepted
        assert "proxy-authorization" not in target.requests[0].headers
        assert target.requests[0].headers["authorization"] == KEY
    assert connect_proxy.heads[0].headers["proxy-authorization"] == credential()
    assert connect_proxy.heads[0].line.startswith("POST http://127.0.0.1:")


def test_an_answer_that_is_lost_behind_an_http_proxy_is_unknown(
    connect_proxy: ConnectProxy, file: FinishedFile
) -> None:
    """The target had the whole file, so it may have taken it."""
    with ScriptedTarget(script.close_silently) as target:
        settings = settings_for(target.endpoint, proxy=through(connect_proxy.port))
        client = PushTarget(settings, environment={})
        assert client.push(file, 5).verdict is Verdict.UNKNOWN
        client.close()


def test_http_proxy_tunnels(
    connect_proxy: ConnectProxy, tls_target: Callable[..., ScriptedTarget], certificates: Path, file: FinishedFile
) -> None:
    """An https request is tunnelled: the proxy sees its own credential and not the target's, and vice versa."""
    with tls_target() as target:
        ca_file = str(certificates / "ca.pem")
        assert deliver(target.endpoint, file, proxy=through(connect_proxy.port), ca_file=ca_file).accepted
        assert "proxy-authorization" not in target.requests[0].headers
        assert target.requests[0].headers["authorization"] == KEY
    (head,) = connect_proxy.heads
    assert head.line.startswith("CONNECT 127.0.0.1:")
    assert head.headers["proxy-authorization"] == credential()
    assert "authorization" not in head.headers


def test_a_proxy_without_credentials(connect_proxy: ConnectProxy, file: FinishedFile) -> None:
    """Nothing is sent to a proxy that needs no sign-in."""
    with ScriptedTarget() as target:
        assert deliver(target.endpoint, file, proxy=through(connect_proxy.port, signed_in=False)).accepted
    assert "proxy-authorization" not in connect_proxy.heads[0].headers


def test_tls_is_verified_through_a_proxy(
    connect_proxy: ConnectProxy, tls_target: Callable[..., ScriptedTarget], file: FinishedFile
) -> None:
    """An unknown CA behind a proxy is refused as it is without."""
    with tls_target() as target:
        error = failure(target.endpoint, file, proxy=through(connect_proxy.port))
        assert target.requests == []
    assert isinstance(error, UploadRefused)
    assert "connect.ems.tls.ca.file" in str(error)


@pytest.mark.parametrize(("status", "kind"), [(407, UploadRefused), (403, UploadRefused), (502, UploadExhausted)])
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_proxy_that_says_no(file: FinishedFile, status: int, kind: type[UploadError], scheme: str) -> None:
    """Wrong credentials are refused naming the keys; a proxy that cannot reach the target is tried again."""
    with ConnectProxy(status) as proxy:
        error = failure(f"{scheme}://127.0.0.1:1/", file, proxy=through(proxy.port))
        assert len(proxy.heads) == (1 if kind is UploadRefused else 3)
    assert isinstance(error, kind)
    assert "pässword" not in str(error)
    if status == 407:
        assert "connect.ems.proxy.auth.password" in str(error)


def test_a_proxy_that_is_not_there(file: FinishedFile) -> None:
    """A proxy that cannot be reached is retriable, and its keys are named; nothing goes directly."""
    with ScriptedTarget() as target, script.closed_port() as port:
        error = failure(target.endpoint, file, proxy=through(port))
        assert target.state.connections == 0
    assert isinstance(error, UploadExhausted)
    assert "connect.ems.proxy.host" in str(error)


@pytest.mark.parametrize("kind", ["SOCKS4", "SOCKS5"])
@pytest.mark.parametrize("tls", [False, True])
def test_socks(
    kind: str, tls: bool, tls_target: Callable[..., ScriptedTarget], certificates: Path, file: FinishedFile
) -> None:
    """SOCKS proxies are used, for http and https, and their user goes no further."""
    password = PASSWORD.encode() if kind == "SOCKS5" else None
    with SocksProxy(password=password) as proxy, tls_target() if tls else ScriptedTarget() as target:
        ca_file = str(certificates / "ca.pem")
        assert deliver(target.endpoint, file, proxy=through(proxy.port, kind), ca_file=ca_file).accepted
        (request,) = target.requests
    assert proxy.users == [USER.encode()]
    assert "proxy-authorization" not in request.headers
    assert PASSWORD.encode() not in proxy.seen
    assert (KEY.encode() in proxy.seen) is not tls


def test_socks_with_a_wrong_password(file: FinishedFile) -> None:
    """A SOCKS proxy that does not take the password is a refusal that names the keys."""
    with SocksProxy(password=b"other") as proxy, ScriptedTarget() as target:
        error = failure(target.endpoint, file, proxy=through(proxy.port, "SOCKS5"))
        assert target.state.connections == 0
    assert isinstance(error, UploadRefused)
    assert "connect.ems.proxy.auth.password" in str(error)


def test_the_environment_is_not_used(file: FinishedFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a proxy of the environment nor a .netrc changes where a request goes and with which credential."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with script.closed_port() as port, ScriptedTarget() as target:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert deliver(target.endpoint, file).attempts == 1
        assert target.requests[0].headers["authorization"] == KEY
