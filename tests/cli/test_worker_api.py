"""What is said of a worker that gives no answer, and which refusals are for a moment only."""

import json
from collections.abc import Iterator

import pytest
from requests import Request

from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.cli.worker_api.settings import ApiSettings
from parquet_sink.errors import SetupError, WorkerRefused
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from tests.messages import saying

HTTPS = ApiSettings("https://sink.example:8443")


class FakeSender:
    """Gives one answer, or fails, after the other."""

    def __init__(self, *answers: Answer | RequestFailed) -> None:
        self._answers: Iterator[Answer | RequestFailed] = iter(answers)

    def exchange(self, request: Request, limits: Limits) -> Answer:
        answer = next(self._answers)
        if isinstance(answer, RequestFailed):
            raise answer
        return answer

    def close(self) -> None:
        """Nothing is open."""


def api(*answers: Answer | RequestFailed, settings: ApiSettings = HTTPS) -> WorkerApi:
    """A client that does not wait between its tries."""
    return WorkerApi(settings, FakeSender(*answers), lambda seconds: None)


def test_a_certificate_that_is_not_trusted_has_a_cure_of_its_own() -> None:
    """Whether the worker runs is not the question then."""
    with pytest.raises(SetupError, match=saying("TLS failed", "self-signed", "authority", "tls.ca.file")) as told:
        api(RequestFailed(FailureKind.TLS, "self-signed")).get("connectors")
    assert "Check that it runs" not in str(told.value)


def test_a_certificate_that_may_be_missing_is_asked_for() -> None:
    """A server that wants one ends the connection without a word; a question changes nothing, whatever came of it."""
    broken = RequestFailed(FailureKind.BROKEN, "closed")
    with pytest.raises(WorkerRefused, match=saying("broke", "closed", "If it wants", "tls.certificate.file")):
        api(broken).get("connectors")
    with pytest.raises(WorkerRefused, match=saying("closed", "may have done", "tls.certificate.file")):
        api(broken).ask("PUT", ["connectors", "x", "pause"])
    for settings in (ApiSettings("http://localhost:8083"), ApiSettings(HTTPS.url, certificate_file="c.pem")):
        with pytest.raises(WorkerRefused, match=r"\(closed\)\.$"):
            api(broken, settings=settings).get("connectors")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "Request cannot be completed because a rebalance is expected"),
        (409, "Cannot complete request momentarily due to stale configuration (typically caused by …)"),
        (409, "The offsets of connector x are being changed by another request; wait for it."),
    ],
)
def test_what_is_refused_for_a_moment_is_asked_again(status: int, message: str) -> None:
    """By the words of Kafka Connect's workers and ours; another 409 is an answer."""
    again = Answer(status, json.dumps({"error_code": status, "message": message}, ensure_ascii=False).encode())
    assert api(again, again, Answer(202)).ask("PUT", ["connectors", "x", "pause"]) is None
    exists = Answer(409, b'{"error_code": 409, "message": "Connector x already exists"}')
    with pytest.raises(WorkerRefused, match="already exists"):
        api(exists, Answer(201)).ask("POST", ["connectors"], content={})


def test_the_next_worker_is_asked_where_one_is_not_reached() -> None:
    """Each of a group once, and the one that answered again; but not after one that may have seen the request."""
    group = ApiSettings("http://a:1", others=("http://b:1", "http://c:1"))
    away, broken = RequestFailed(FailureKind.CONNECT, "refused"), RequestFailed(FailureKind.BROKEN, "closed")
    asked = api(away, away, Answer(200, b"[1]"), Answer(200, b"[2]"), settings=group)
    assert (asked.get("connectors"), asked.get("connectors"), asked.url) == ([1], [2], "http://c:1")
    with pytest.raises(SetupError, match=saying("http://c:1", "cannot be reached", "Check that it runs")):
        api(away, away, away, settings=group).get("connectors")
    with pytest.raises(WorkerRefused, match=saying("http://a:1", "connection broke")):
        api(broken, settings=group).ask("PUT", ["connectors", "x", "pause"])
