"""Signatures of requests among workers: of all that matters in them, by the key of the moment, and once."""

from dataclasses import replace
from typing import Any

import pytest

from parquet_sink.distributed.records import SessionKey
from parquet_sink.distributed.signing import HEADER, WINDOW_MS, NotBelieved, Verifier, is_due, new_key, sign
from parquet_sink.worker.rest.peers import Forwarded
from parquet_sink.worker_config.distributed import DistributedSettings
from tests.messages import saying

NOW_MS = 1_700_000_000_000
KEY = SessionKey(b"k" * 32, "HmacSHA256", NOW_MS)
TO = "member-1"
REQUEST = Forwarded("PUT", "/connectors/orders/config?forward=false", {}, b'{"a": "b"}')
SETTINGS = DistributedSettings(
    group_id="g", config_topic="c", status_topic="s", state_topic="t", offset_topic="o", key_ttl_ms=60_000
)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    """Of the worker that is asked."""
    return Clock()


@pytest.fixture
def verifier(clock: Clock) -> Verifier:
    """One that has read KEY."""
    made = Verifier(("HmacSHA256", "HmacSHA512"), clock)
    made.renew(KEY)
    return made


def _signed(key: SessionKey = KEY, algorithm: str = "HmacSHA256", at: int = NOW_MS) -> str:
    return sign(TO, REQUEST, key, algorithm, now_ms=at)


def _verify(verifier: Verifier, header: str | None, to: str = TO, **change: Any) -> None:
    """The request with this signature. change: of what was signed."""
    headers = {} if header is None else {HEADER.lower(): header}
    verifier.verify(to, replace(REQUEST, headers=headers, **change))


@pytest.mark.parametrize("algorithm", ["HmacSHA256", "HmacSHA512"])
def test_a_signed_request_is_believed(verifier: Verifier, algorithm: str) -> None:
    """By each algorithm that the worker file has."""
    _verify(verifier, _signed(algorithm=algorithm))


@pytest.mark.parametrize(
    "change",
    [
        {"to": "member-2"},
        {"method": "DELETE"},
        {"target": "/connectors/orders/config?forward=true"},
        {"target": "/connectors/other/config?forward=false"},
        {"body": b'{"a": "c"}'},
        {"body": b""},
    ],
)
def test_whatever_of_it_is_changed_it_is_not_believed(verifier: Verifier, change: dict[str, Any]) -> None:
    """Receiver, method, path, query and body are signed; so are time, nonce and algorithm."""
    with pytest.raises(NotBelieved, match="changed on its way"):
        _verify(verifier, _signed(), **change)


@pytest.mark.parametrize("part", range(4))
def test_whatever_of_the_header_is_changed_it_is_not_believed(verifier: Verifier, part: int) -> None:
    """Each of its four parts."""
    parts = _signed().split(" ")
    parts[part] = ("HmacSHA512", str(NOW_MS + 1), "other", "é" * 44)[part]
    with pytest.raises(NotBelieved, match="changed on its way"):
        _verify(verifier, " ".join(parts))


def test_a_request_is_believed_once(verifier: Verifier, clock: Clock) -> None:
    """Sent again at once, or at the end of the window, it is refused; another one with the same content is not."""
    first, second = _signed(), _signed()
    _verify(verifier, first)
    _verify(verifier, second)
    for later_ms in (0, WINDOW_MS):
        clock.now_ms = NOW_MS + later_ms
        _verify(verifier, _signed(at=clock.now_ms))
        with pytest.raises(NotBelieved, match="was sent before"):
            _verify(verifier, first)


def test_nonces_are_forgotten_once_their_time_alone_refuses_them(verifier: Verifier, clock: Clock) -> None:
    """So what is remembered is bounded by what is sent in two windows."""
    first = _signed()
    _verify(verifier, first)
    clock.now_ms += WINDOW_MS + 1
    _verify(verifier, _signed(at=clock.now_ms))
    assert len(verifier._seen) == 1
    with pytest.raises(NotBelieved, match=saying("+60 s ago", "set the clocks")):
        _verify(verifier, first)


@pytest.mark.parametrize("off_ms", [-WINDOW_MS - 1, WINDOW_MS + 1])
def test_a_request_of_another_time_is_not_believed(verifier: Verifier, off_ms: int) -> None:
    """Neither from the past nor from the future."""
    with pytest.raises(NotBelieved, match="set the clocks"):
        _verify(verifier, _signed(at=NOW_MS + off_ms))
    _verify(verifier, _signed(at=NOW_MS + off_ms - (1 if off_ms > 0 else -1)))


def test_the_key_before_is_believed_for_a_moment(verifier: Verifier, clock: Clock) -> None:
    """Who has not read the new one yet is not refused; later, and of two keys ago, nobody is believed."""
    newer, newest = SessionKey(b"n" * 32, "HmacSHA256", NOW_MS), SessionKey(b"m" * 32, "HmacSHA256", NOW_MS)
    verifier.renew(newer)
    verifier.renew(newer)
    _verify(verifier, _signed(key=KEY))
    _verify(verifier, _signed(key=newer))
    clock.now_ms += WINDOW_MS
    with pytest.raises(NotBelieved):
        _verify(verifier, _signed(key=KEY, at=clock.now_ms))
    verifier.renew(newest)
    with pytest.raises(NotBelieved):
        _verify(verifier, _signed(key=KEY, at=clock.now_ms))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, f"The request has no {HEADER}"),
        ("", f"The request has no {HEADER}"),
        ("x", "update all workers"),
        ("HmacSHA256 ² n s", "update all workers"),
        ("HmacSHA384 1 n s", "inter.worker.verification.algorithms"),
        ("HmacSHA256 1 n s", "changed on its way"),
        ("HmacSHA256 1 n " + "s" * 10_000, "changed on its way"),
    ],
)
def test_what_is_no_signature_is_refused_with_its_reason(verifier: Verifier, header: str | None, reason: str) -> None:
    """Whatever a stranger sends; none of it is remembered."""
    with pytest.raises(NotBelieved, match=reason):
        _verify(verifier, header)
    assert verifier._seen == {}


def test_without_a_session_key_nothing_is_believed() -> None:
    """A worker that has not read one yet, or of a cluster that never had one."""
    with pytest.raises(NotBelieved):
        _verify(Verifier(("HmacSHA256",), lambda: NOW_MS), _signed(key=replace(KEY, key=b"")))


@pytest.mark.parametrize(
    ("algorithm", "bits", "size"),
    [("HmacSHA256", None, 32), ("HmacSHA384", None, 48), ("HmacSHA512", None, 64), ("HmacSHA256", 512, 64)],
)
def test_a_session_key_is_as_long_as_the_worker_file_says(algorithm: str, bits: int | None, size: int) -> None:
    """As Java makes them, without a word of it."""
    key = new_key(replace(SETTINGS, key_algorithm=algorithm, key_bits=bits), NOW_MS)  # type: ignore[arg-type]
    assert (len(key.key), key.algorithm, key.created_ms) == (size, algorithm, NOW_MS)
    assert new_key(SETTINGS, NOW_MS).key != new_key(SETTINGS, NOW_MS).key


def test_the_leader_renews_the_key_in_time() -> None:
    """When there is none, when it is old, from a clock that was wrong, or for another algorithm."""
    assert is_due(None, SETTINGS, NOW_MS)
    assert not is_due(KEY, SETTINGS, NOW_MS + 59_999)
    assert is_due(KEY, SETTINGS, NOW_MS + 60_000)
    assert is_due(KEY, SETTINGS, NOW_MS - 1)
    assert is_due(KEY, replace(SETTINGS, key_algorithm="HmacSHA512"), NOW_MS)
