"""Notices that wait are posted in order, signed, tried again, and given up in the end; the counts add up."""

import base64
import hashlib
import hmac
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify.notice import TYPE, Notice
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.notify.webhook import Webhook, WebhookSender, signature
from tests.notify.receiver import Receiver, receiver

__all__ = ["receiver"]
KEY = "whsec_" + base64.b64encode(b"k" * 24).decode()


@pytest.fixture
def settings(receiver: Receiver, tmp_path: Path) -> NotifySettings:
    """Of a connector with a secret."""
    return NotifySettings(
        "orders", "T", str(tmp_path / ".notices"), HttpSettings(), url=receiver.url, secret=Secret(KEY)
    )


def notice(number: int) -> Notice:
    """One of many."""
    found = {
        "specversion": "1.0",
        "id": f"{number:032x}",
        "source": "/connectors/o%20o",
        "type": TYPE,
        "subject": "ä b",
    }
    return Notice(found, json.dumps({"number": number, "name": "ä"}))


def sent(settings: NotifySettings, count: int, until: int) -> list[tuple[str, str | None]]:
    """What becomes of so many notices, once so many are settled."""
    settled: list[tuple[str, str | None]] = []
    folder = NoticeFolder(settings.waiting)
    for number in range(count):
        folder.put(notice(number))
    sender = WebhookSender(settings, lambda id_, cause: settled.append((id_, cause)))
    sender.start()
    by = time.monotonic() + 30
    while len(settled) < until and time.monotonic() < by:
        time.sleep(0.01)
    sender.close()
    return settled


def test_it_is_posted_as_cloudevents_and_standard_webhooks_say(receiver: Receiver, settings: NotifySettings) -> None:
    """Attributes are headers, percent-encoded; the signature is of id, time and body."""
    assert sent(settings, 1, 1) == [(notice(0).id, None)]
    [(headers, body)] = receiver.got
    assert body == notice(0).data.encode()
    assert {name: value for name, value in headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0",
        "ce-id": notice(0).id,
        "ce-source": "/connectors/o%20o".replace("%", "%25"),
        "ce-type": TYPE,
        "ce-subject": "%C3%A4%20b",
    }
    assert headers["content-type"] == "application/json"
    stamp = headers["webhook-timestamp"]
    assert abs(int(stamp) - time.time()) < 60
    signed = hmac.new(b"k" * 24, f"{notice(0).id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    assert headers["webhook-id"] == notice(0).id
    assert headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of Standard Webhooks' specification and libraries."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_notices_are_posted_in_order(receiver: Receiver, settings: NotifySettings) -> None:
    """The longest waiting first; then none waits."""
    assert [id_ for id_, _ in sent(settings, 20, 20)] == [notice(number).id for number in range(20)]
    assert [json.loads(body)["number"] for _, body in receiver.got] == list(range(20))
    assert NoticeFolder(settings.waiting).notices() == []


@pytest.mark.parametrize("status", [500, 429, 404, 302])
def test_what_is_not_taken_comes_again(status: int, receiver: Receiver, settings: NotifySettings) -> None:
    """Whatever is answered but 2xx; with the same id, and in its place before the others."""
    receiver.answers = [(status, {"location": receiver.url}), (200, {})]
    assert sent(settings, 2, 2) == [(notice(0).id, None), (notice(1).id, None)]
    assert [headers["webhook-id"] for headers, _ in receiver.got] == [notice(n).id for n in (0, 0, 1)]


def test_what_has_waited_too_long_is_given_up(receiver: Receiver, settings: NotifySettings) -> None:
    """After one more attempt, with its cause; the secret is in no message."""
    receiver.answers = [(401, {})]
    settled = sent(replace(settings, timeout_ms=0), 3, 3)
    assert [id_ for id_, _ in settled] == [notice(number).id for number in range(3)]
    assert all(cause and "it answered 401" in cause and "notify.timeout.ms" in cause for _, cause in settled)
    assert not any(KEY in str(cause) for _, cause in settled)


def test_the_oldest_beyond_what_may_wait_are_given_up(receiver: Receiver, settings: NotifySettings) -> None:
    """All are counted: so many taken, so many given up."""
    settled = sent(replace(settings, max_waiting=4), 10, 10)
    assert [(id_, cause is None) for id_, cause in settled] == [(notice(n).id, n >= 6) for n in range(10)]
    assert len(receiver.got) == 4


def test_what_is_damaged_is_given_up(receiver: Receiver, settings: NotifySettings) -> None:
    """It keeps no other one waiting."""
    folder = NoticeFolder(settings.waiting)
    folder.put(notice(7))
    Path(folder.notices()[0].path).write_text('{"attributes": ')
    settled = sent(settings, 1, 2)
    assert [(id_, cause is None) for id_, cause in settled] == [(notice(7).id, False), (notice(0).id, True)]


def test_a_hanging_receiver_is_left_in_time(receiver: Receiver, settings: NotifySettings) -> None:
    """An attempt ends; the notice goes on waiting, and is there at the next start."""
    receiver.wait_s = 3.0
    cause, _ = Webhook(settings).post(notice(0), 0.3)
    assert cause is not None
    assert "in time" in cause


def test_what_waits_at_a_stop_is_posted_at_the_next_start(receiver: Receiver, settings: NotifySettings) -> None:
    """A pause that the receiver asks for does not hold the stop up."""
    receiver.answers = [(503, {"retry-after": "30"})]
    NoticeFolder(settings.waiting).put(notice(0))
    first = WebhookSender(settings, lambda id_, cause: None)
    first.start()
    while not receiver.got:
        time.sleep(0.01)
    begun = time.monotonic()
    while not first.finished(5.0):
        time.sleep(0.01)
    first.close()
    assert time.monotonic() - begun < 5
    receiver.answers = [(200, {})]
    assert sent(settings, 0, 1) == [(notice(0).id, None)]


def test_what_comes_just_before_a_stop_is_posted(receiver: Receiver, settings: NotifySettings) -> None:
    """It waits for no next start, though the sender had looked just before."""
    settled: list[str] = []
    sender = WebhookSender(settings, lambda id_, cause: settled.append(id_))
    sender.start()
    time.sleep(0.1)
    NoticeFolder(settings.waiting).put(notice(0))
    while not sender.finished(10.0):
        time.sleep(0.01)
    sender.close()
    assert settled == [notice(0).id]
