"""Uploads signed with access tokens, over real sockets: against scripted servers, and the reference target."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from integration import scripted_target as script
from integration.certificates import make as make_certificates
from integration.certificates import server_context
from integration.scripted_target import Behaviour, ConnectProxy, ScriptedTarget
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.addons.replay.read_outs import ReadOuts
from parquet_sink.config.secret import Secret
from parquet_sink.errors import UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name
from parquet_sink.files.rotation import Reason
from parquet_sink.model.receipts import Receipt
from parquet_sink.net.settings import ClientCredentials, ProxySettings
from parquet_sink.targets.outcome import Health, Outcome, Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.target import PushTarget
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.uploader import Deliverer
from parquet_sink.validate.probe import probe_target
from tests.messages import assert_says

NAME = "topic-orders_partition-0_firstOffset-0_lastOffset-9_bytes-7_rows-10.parquet"
_numbers = itertools.count()


def client(url: str, **more: Any) -> ClientCredentials:
    """Credentials that no other test has: tokens are kept by the process."""
    return ClientCredentials(f"sink {next(_numbers)}", Secret("canary:s3cret/+"), url, **more)


def file_in(folder: Path) -> FinishedFile:
    """A finished file; the target looks whether it is Parquet."""
    path = folder / attempt_name("ab" * 16, next(_numbers))
    pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    size = path.stat().st_size
    return FinishedFile(str(path), NAME, "orders", 0, 0, 9, 10, 10, size, Reason.RECORDS, 0.0, 0.0, None)


@pytest.fixture
def file(tmp_path: Path) -> FinishedFile:
    """A file to send."""
    return file_in(tmp_path)


def gives(token: str, **more: Any) -> Behaviour:
    """A token endpoint's good answer."""
    fields = {"access_token": token, "token_type": "Bearer", "expires_in": 899, **more}
    return script.answer(200, json.dumps(fields).encode(), "Content-Type: application/json")


@pytest.fixture
def target() -> Iterator[ScriptedTarget]:
    """Accepts every file."""
    with ScriptedTarget() as running:
        yield running


def settings_for(endpoint: str, credentials: ClientCredentials, **more: Any) -> PushSettings:
    """Impatient settings."""
    quick = PushSettings(endpoint, credentials, "t", connect_timeout_ms=2_000, response_timeout_ms=500)
    return replace(quick, **more)


def push(settings: PushSettings, *files: FinishedFile, seconds: float = 8.0) -> list[Outcome]:
    """One attempt at each file, with one client; no outcome ever shows what is secret."""
    with closing(PushTarget(settings, environment={})) as opened:
        outcomes = [opened.push(file, seconds) for file in files]
    assert "canary" not in repr(outcomes)
    return outcomes


def signatures(target: ScriptedTarget) -> list[str | None]:
    """What the requests that came were signed with."""
    return [request.headers.get("authorization") for request in target.requests]


def test_one_token_signs_many_uploads(target: ScriptedTarget, tmp_path: Path) -> None:
    """It is asked for once, by a request as RFC 6749 has it, over a connection that is closed."""
    with ScriptedTarget(gives("canary-1")) as server:
        settings = settings_for(target.endpoint, client(server.endpoint, scope="a.b:push", in_body=True))
        files = [file_in(tmp_path) for _ in range(3)]
        assert [one.verdict for one in push(settings, *files)] == [Verdict.ACCEPTED] * 3
        assert [one.verdict for one in push(replace(settings, target_table="u"), *files)] == [Verdict.ACCEPTED] * 3
        (request,) = server.requests
    form = parse_qs(request.body.decode())
    assert form.pop("client_id")[0].startswith("sink ")
    expected = {"grant_type": "client_credentials", "scope": "a.b:push", "client_secret": "canary:s3cret/+"}
    assert form == {name: [text] for name, text in expected.items()}
    assert request.headers["connection"] == "close"
    assert "authorization" not in request.headers
    assert signatures(target) == ["Bearer canary-1"] * 6


def test_eight_uploads_at_once_ask_for_one_token(target: ScriptedTarget, tmp_path: Path) -> None:
    """Threads that begin together share what comes."""
    with ScriptedTarget(script.answer(503), then=gives("canary-1")) as server:
        settings = settings_for(target.endpoint, client(server.endpoint))
        with closing(PushTarget(settings, environment={})) as opened:
            opened.push(file_in(tmp_path), 8.0)
            verdicts: list[Verdict] = []
            threads = [
                threading.Thread(target=lambda one: verdicts.append(opened.push(one, 8.0).verdict), args=(one,))
                for one in [file_in(tmp_path) for _ in range(8)]
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert verdicts == [Verdict.ACCEPTED] * 8
        assert len(server.requests) == 2


def test_a_token_that_was_withdrawn_is_replaced_within_the_attempt(file: FinishedFile) -> None:
    """The whole file goes out again under the new one."""
    with ScriptedTarget(script.answer(401)) as target, ScriptedTarget(gives("canary-1"), gives("canary-2")) as server:
        (outcome,) = push(settings_for(target.endpoint, client(server.endpoint)), file)
        assert outcome.verdict is Verdict.ACCEPTED
        assert signatures(target) == ["Bearer canary-1", "Bearer canary-2"]
        assert len({len(request.body) for request in target.requests}) == 1
        assert b"PAR1" in target.requests[1].body


def test_a_target_that_takes_no_token_is_refused_after_one_renewal(file: FinishedFile) -> None:
    """The cure names the keys of tokens; a target that echoes the token is quoted with stars."""
    echo = script.answer(401, b"no: Bearer canary-2")
    with ScriptedTarget(then=echo) as target, ScriptedTarget(gives("canary-1"), then=gives("canary-2")) as server:
        (outcome,) = push(settings_for(target.endpoint, client(server.endpoint)), file)
        assert (len(target.requests), len(server.requests)) == (2, 2)
    assert (outcome.verdict, outcome.status, outcome.cause) == (
        Verdict.REFUSED,
        401,
        "the target answered 401: no: *****",
    )
    assert "connect.ems.oauth2.token.url" in outcome.cure


@pytest.mark.parametrize(
    ("behaviour", "verdict", "cause", "cure"),
    [
        (
            script.answer(401, b'{"error":"invalid_client","error_description":"canary:s3cret/+ is wrong"}'),
            *(Verdict.REFUSED, "answered 401: invalid_client: ***** is wrong", "connect.ems.oauth2.client.id"),
        ),
        (
            script.answer(400, b'{"error":"invalid_scope"}'),
            *(Verdict.REFUSED, "it answered 400: invalid_scope", "connect.ems.oauth2.scope"),
        ),
        (
            script.answer(302, b"", "Location: http://127.0.0.1:1/"),
            *(Verdict.REFUSED, "it answered 302", "connect.ems.oauth2.token.url"),
        ),
        (script.answer(404), Verdict.REFUSED, "it answered 404", "connect.ems.oauth2.token.url"),
        (script.answer(200, b"<html>"), Verdict.RETRIABLE, "but not with a token", "connect.ems.oauth2.token.url"),
        (script.answer(429, b"", "Retry-After: 7"), Verdict.RETRIABLE, "it answered 429", "its own log"),
        (script.answer(503), Verdict.RETRIABLE, "it answered 503", "its own log"),
        (script.hang, Verdict.RETRIABLE, "no whole answer of it", "its own log"),
        (script.drip(b"HTTP/1.1 200 OK\r\nX: "), Verdict.RETRIABLE, "no whole answer of it", "its own log"),
        (script.endless(200), Verdict.RETRIABLE, "but not with a token", "connect.ems.oauth2.token.url"),
        (script.close_silently, Verdict.RETRIABLE, "the connection broke", "its own log"),
        (script.garbage, Verdict.RETRIABLE, "the connection broke", "its own log"),
        (script.truncated, Verdict.RETRIABLE, "the connection broke", "its own log"),
    ],
)
def test_without_a_token_nothing_of_the_file_is_sent(
    behaviour: Behaviour, verdict: Verdict, cause: str, cure: str, target: ScriptedTarget, file: FinishedFile
) -> None:
    """Whatever the token endpoint does, in its time: never unknown, and the words name it and the key."""
    with ScriptedTarget(then=behaviour) as server:
        settings = settings_for(target.endpoint, client(server.endpoint))
        (outcome,) = push(settings, file)
        with closing(PushTarget(settings, environment={})) as opened:
            assert opened.probe(5.0).health is Health.FAILED
    assert (outcome.verdict, outcome.status, outcome.of_file) == (verdict, None, False)
    assert_says(outcome.cause, "no access token", server.endpoint, cause)
    assert cure in outcome.cure
    assert target.requests == []
    assert outcome.retry_after_seconds == (7 if "429" in cause else None)


def test_a_token_endpoint_that_is_away_is_tried_again(target: ScriptedTarget, file: FinishedFile) -> None:
    """With back-off, like the target itself, until it is there."""
    with ScriptedTarget(script.answer(503), script.close_silently, gives("canary-1")) as server:
        settings = settings_for(target.endpoint, client(server.endpoint))
        receipt = delivered(settings, file)
    assert (receipt.accepted, receipt.attempts) == (True, 3)


def delivered(settings: PushSettings, file: FinishedFile) -> Receipt:
    """What comes of a file with retries."""
    with closing(PushTarget(settings, environment={})) as opened:
        quick = RetrySettings(max_retries=4, retry_interval_ms=1, put_timeout_ms=8_000)
        return Deliverer("sink", opened, quick).deliver(file)


def test_a_client_that_is_refused_ends_the_upload_at_once(target: ScriptedTarget, file: FinishedFile) -> None:
    """With the endpoint's words and the keys to correct, and no status of the target's."""
    denied = script.answer(401, b'{"error":"invalid_client"}')
    with ScriptedTarget(then=denied) as server, pytest.raises(UploadRefused) as caught:
        delivered(settings_for(target.endpoint, client(server.endpoint)), file)
    assert len(server.requests) == 1
    assert caught.value.status is None
    assert_says(caught.value, "was refused", "no access token", "invalid_client")
    assert_says(caught.value, "Correct connect.ems.oauth2.client.id", "connect.ems.oauth2.client.secret")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of it."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_tokens_come_by_the_way_to_the_target(certificates: Path, file: FinishedFile) -> None:
    """TLS by the same authorities, through the same proxy, whose credential goes to it alone."""
    tls = server_context(certificates, "good")
    with ExitStack() as stack:
        server = stack.enter_context(ScriptedTarget(gives("canary-1"), tls=tls))
        target = stack.enter_context(ScriptedTarget(tls=tls))
        proxy = stack.enter_context(ConnectProxy())
        way = ProxySettings("127.0.0.1", proxy.port, "HTTP", "u", Secret("canary-proxy"))
        settings = settings_for(
            target.endpoint, client(server.endpoint), ca_file=str(certificates / "ca.pem"), proxy=way
        )
        assert push(settings, file)[0].verdict is Verdict.ACCEPTED
        assert [head.line.split(" ")[1] for head in proxy.heads] == [
            f"127.0.0.1:{server.port}",
            f"127.0.0.1:{target.port}",
        ]
        assert all("authorization" not in head.headers for head in proxy.heads)
        assert all("proxy-authorization" not in one.requests[0].headers for one in (server, target))


@pytest.mark.parametrize("name", ["expired", "other"])
def test_a_token_endpoint_is_verified(
    name: str, certificates: Path, target: ScriptedTarget, file: FinishedFile
) -> None:
    """Neither secret nor file goes to one that cannot prove who it is."""
    with ScriptedTarget(gives("canary-1"), tls=server_context(certificates, name)) as server:
        settings = settings_for(
            target.endpoint, client(server.endpoint), ca_file=str(certificates / "ca.pem"), response_timeout_ms=3_000
        )
        (outcome,) = push(settings, file)
        assert server.requests == []
    assert outcome.verdict is Verdict.REFUSED
    assert_says(outcome.cause, "certificate or TLS version", "not acceptable")
    assert "connect.ems.tls.ca.file" in outcome.cure


def test_a_token_is_renewed_before_it_ends(target: ScriptedTarget, tmp_path: Path) -> None:
    """The next file after four fifths of its life goes out with another; no upload meets a 401."""
    with ScriptedTarget(gives("canary-1", expires_in=1), gives("canary-2")) as server:
        settings = settings_for(target.endpoint, client(server.endpoint))
        push(settings, file_in(tmp_path))
        time.sleep(0.85)
        push(settings, file_in(tmp_path))
    assert signatures(target) == ["Bearer canary-1", "Bearer canary-2"]


# The reference target


@pytest.fixture(scope="module")
def reference() -> Iterator[TargetProcess]:
    """A target that gives tokens, and takes nothing else."""
    with TargetProcess(oauth_client="sink:canary:s3cret") as running:
        yield running


def own(reference: TargetProcess, **more: Any) -> PushSettings:
    """Settings with which it takes files."""
    credentials = ClientCredentials("sink", Secret("canary:s3cret"), reference.token_url, **more)
    return PushSettings(reference.endpoint(), credentials, "orders")


def tokens_given(reference: TargetProcess) -> int:
    """How many were, since it was started."""
    return int(reference.client.statistics()["tokens_by_status"].get("200", 0))


@pytest.mark.parametrize("in_body", [True, False])
def test_the_reference_target_takes_its_tokens(in_body: bool, reference: TargetProcess, tmp_path: Path) -> None:
    """Asked for in either way; withdrawn ones are replaced, and so are those of a target that was killed."""
    settings = own(reference, in_body=in_body)
    reference.client.withdraw_tokens()  # what an earlier test left in this process is not taken for one of this
    before = tokens_given(reference)
    assert push(settings, file_in(tmp_path), file_in(tmp_path))[1].verdict is Verdict.ACCEPTED
    assert tokens_given(reference) == before + 1
    assert reference.client.withdraw_tokens() >= 1
    assert push(settings, file_in(tmp_path))[0].verdict is Verdict.ACCEPTED
    assert tokens_given(reference) == before + 2
    reference.restart()
    assert push(settings, file_in(tmp_path))[0].verdict is Verdict.ACCEPTED
    assert tokens_given(reference) == 1
    assert "canary" not in reference.log.read_text()


def test_requests_for_tokens_fail_to_order(reference: TargetProcess, file: FinishedFile) -> None:
    """Rules for tokens leave uploads alone; what they say beside the status is waited for."""
    reference.client.withdraw_tokens()
    reference.client.order_faults(
        {"at": "token", "status": 429, "ratelimit_reset": "0", "next": 1},
        {"at": "token", "cut": "after", "next": 1},
        {"at": "upload", "status": 429, "ratelimit_reset": "1", "next": 1},
    )
    receipt = delivered(own(reference, scope="any"), file)
    assert [(one.verdict, one.status) for one in receipt.tried] == [
        ("retriable", None),
        ("retriable", None),
        ("retriable", 429),
        ("accepted", 200),
    ]
    assert receipt.seconds["upload"] > 1.0
    assert [rule["fired"] for rule in reference.client.faults()] == [1, 1, 1]
    reference.client.clear_faults()


def test_keys_and_wrong_tokens_open_nothing(reference: TargetProcess) -> None:
    """The default key is not accepted beside a client."""
    for header in ("AppKey demo", "Bearer demo", "Bearer "):
        answer = requests.post(reference.endpoint(), headers={"Authorization": header}, timeout=10)
        assert answer.status_code == 401
    denied = requests.post(reference.token_url, data={"grant_type": "client_credentials"}, timeout=10)
    assert (denied.status_code, denied.json()["error"]) == (401, "invalid_client")
    assert denied.headers["WWW-Authenticate"] == "Basic"
    assert requests.post(reference.token_url, data="x" * 3_000_000, timeout=10).json()["error"] == "invalid_request"


def test_what_a_target_has_is_asked_with_a_token(reference: TargetProcess, file: FinishedFile) -> None:
    """The read-outs of `replay --verify` sign as uploads do, and renew as they do."""
    assert delivered(own(reference), file).accepted
    read_outs = ReadOuts(own(reference))
    reference.client.withdraw_tokens()
    read_outs.sync()
    assert read_outs.names() == ["orders"]
    read_outs.close()


def test_a_check_asks_for_a_token(reference: TargetProcess) -> None:
    """`check --connect` tells that target and client are right, or which key is wrong; the secret is in no line."""
    right = probe_target(own(reference))
    wrong = probe_target(replace(own(reference), authorization=client(reference.token_url)))
    assert (right.health, wrong.health) == (Health.OK, Health.FAILED)
    assert_says(right.text, "takes the token", "refuses a form")
    assert_says(wrong.text, "answered 401: invalid_client", "Correct connect.ems.oauth2.client.id")
    assert "connect.ems.oauth2.client.secret" in wrong.text
    assert "canary" not in f"{right}{wrong}"
