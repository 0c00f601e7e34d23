"""Posts notices that wait (`notify.waiting`) to the webhook, in a thread of the connector's program.

  1. where more wait than may, the oldest are given up
  2. the oldest that waits is posted, signed anew at each attempt
  3. an answer of 2xx ends that, and so does its time: then it is given up
  4. what became of it is noted, and it waits no more
  5. after anything else there is a pause, each time twice as long, or as long as the answer asks for

An end in between leaves the notice where it is, and it is posted again at the next start: the receiver knows its id.
"""

import base64
import hashlib
import hmac
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from requests import Request

from parquet_sink import __version__
from parquet_sink.net.exchange import Limits, RequestFailed, asked_wait
from parquet_sink.net.redaction import printable, redact
from parquet_sink.net.session import proxy_secrets, session_for
from parquet_sink.notify.notice import CONTENT_TYPE, Notice, probe_of
from parquet_sink.notify.settings import MOST_WAITING, NOTIFY_URL, TIMEOUT, NotifySettings, signing_key
from parquet_sink.notify.waiting import NoticeFolder, WaitingNotice
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Health, ProbeResult

log = logging.getLogger(__name__)

LOOK_S: Final = 0.25
ATTEMPT_S: Final = 10.0
LONGEST_PAUSE_S: Final = 60.0
LEAVE_S: Final = 2.0
LOG_S: Final = 60.0
"""A line of the log about an address that takes nothing, each so often."""
MOST_ANSWER_BYTES: Final = 16 * 1024
Settled = Callable[[str, str | None], None]
"""Takes a notice's id and why it was given up; None: it was taken."""


class Webhook:
    """One address; for one thread. now: epoch seconds."""

    def __init__(
        self,
        settings: NotifySettings,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        assert settings.url is not None
        self._url, self._settings, self._now = settings.url, settings, now
        self._key = None if settings.secret is None else signing_key(settings.secret.reveal())
        secret = () if settings.secret is None else (settings.secret.reveal(),)
        self._secrets = (*secret, *proxy_secrets(settings.http.proxy))
        self._http = session_for(settings.http, environment)

    def post(self, notice: Notice, seconds: float = ATTEMPT_S) -> tuple[str | None, float | None]:
        """Why it was not taken, None when it was; and how long the answer asks to wait. Raises nothing."""
        body = notice.data.encode()
        request = Request("POST", self._url, headers=self._headers(notice, body), data=body)
        http = self._settings.http
        connect_s = min(http.connect_timeout_ms / 1000, seconds)
        limits = Limits(
            total_seconds=seconds,
            connect_seconds=connect_s,
            answer_seconds=min(http.response_timeout_ms / 1000, seconds),
            answer_bytes=MOST_ANSWER_BYTES,
        )
        try:
            answer = self._http.exchange(request, limits)
        except RequestFailed as error:
            outcome = of_failure(error.kind, error.detail, self._secrets, NOTIFY_URL)
            return outcome.cause.replace("the target", "the address"), None
        if 200 <= answer.status < 300:
            return None, None
        said = printable(redact(answer.body[:200].decode("utf-8", "replace"), self._secrets)).strip()
        wait_s = asked_wait(answer.status, answer.headers, self._now())
        return f"it answered {answer.status}{f' ({said})' if said else ''}", wait_s

    def probe(self) -> ProbeResult:
        """Posts an event of another type, which is of no file."""
        cause, _ = self.post(probe_of(self._settings.connector, uuid.uuid4().hex))
        if cause is None:
            return ProbeResult(Health.OK, "it took a probe")
        return ProbeResult(Health.FAILED, f"{cause}. Correct {NOTIFY_URL}, its secret, or what answers there.")

    def close(self) -> None:
        self._http.close()

    def _headers(self, notice: Notice, body: bytes) -> dict[str, str]:
        """CloudEvents' in binary mode, percent-encoded as its HTTP binding has it; and Standard Webhooks'."""
        found = {
            "Content-Type": CONTENT_TYPE,
            "User-Agent": f"parquet-sink/{__version__}",
            **{
                f"ce-{name}": quote(value, safe="/:;,.+-_~@=?&*()!'$[]{}|^`<>#\\")
                for name, value in notice.attributes.items()
            },
        }
        stamp = str(int(self._now()))
        found |= {"webhook-id": notice.id, "webhook-timestamp": stamp}
        if self._key is not None:
            found["webhook-signature"] = signature(self._key, notice.id, stamp, body)
        return found


def signature(key: bytes, id_: str, stamp: str, body: bytes) -> str:
    """As Standard Webhooks 1.0 has it, of a shared secret."""
    made = hmac.new(key, f"{id_}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


class WebhookSender:
    """Of one connector, from `start` to `close`. settled: told of each notice, in this thread; raises nothing."""

    def __init__(
        self,
        settings: NotifySettings,
        settled: Settled,
        opened: Callable[[NotifySettings], Webhook] = Webhook,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._settled, self._opened, self._now = settings, settled, opened, now
        self._folder = NoticeFolder(settings.waiting)
        self._ending, self._ended = threading.Event(), threading.Event()
        self._leave_by_s: float | None = None
        self._failures, self._logged_s = 0, -LOG_S
        self._thread = threading.Thread(target=self._run, name=f"notices-{settings.connector}", daemon=True)

    def start(self) -> None:
        """Begins with what an earlier run left."""
        self._thread.start()

    def finished(self, within_s: float) -> bool:
        """Whether nothing more is done, so that it may be closed; it is so after `within_s` from when first asked.

        From then on what waits is posted as long as the address takes it.
        """
        if self._leave_by_s is None:
            self._leave_by_s = time.monotonic() + within_s
            self._ending.set()
        return not self._thread.is_alive() or time.monotonic() >= self._leave_by_s

    def close(self) -> None:
        """Ends it; what still waits is told of, and is posted at the next start."""
        self._ending.set()
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(LEAVE_S)
        if left := len(self._folder.notices()):
            log.warning(
                "connector %s: %d notices wait for %s=%s; they are posted at the next start",
                *(self._settings.connector, left, NOTIFY_URL, self._settings.url),
            )

    def _run(self) -> None:
        webhook: Webhook | None = None
        while not self._ended.is_set():
            last = self._ending.is_set()  # what came while it waited for more is posted, too
            try:
                webhook = webhook or self._opened(self._settings)
                pause_s = self._step(webhook)
            except Exception as error:  # noqa: BLE001 - whatever it is, notices wait, and the next look tries again
                log.warning("connector %s: notices wait: %s", self._settings.connector, error)
                pause_s = self._pause(None)
            if pause_s is None:
                continue
            if last:
                break
            self._ending.wait(pause_s)
        if webhook is not None:
            webhook.close()

    def _step(self, webhook: Webhook) -> float | None:
        """Posts the oldest; the pause that follows, None for none."""
        waiting = self._folder.notices()
        beyond = max(len(waiting) - self._settings.max_waiting, 0)
        for one in waiting[:beyond]:
            self._give_up(one, f"more than {MOST_WAITING}={self._settings.max_waiting} wait")
        for one in waiting[beyond:]:
            if self._ended.is_set():
                return 0.0
            cause, wait_s = self._posted(webhook, one)
            if cause is not None:
                return self._not_taken(one, cause, wait_s)
            self._failures = 0
        return LOOK_S if not self._folder.notices() or beyond == len(waiting) else None

    def _posted(self, webhook: Webhook, one: WaitingNotice) -> tuple[str | None, float | None]:
        try:
            notice = one.read()
        except FileNotFoundError:
            return None, None
        if notice is None:
            self._give_up(one, f"{one.path} is damaged")
            return None, None
        cause, wait_s = webhook.post(notice)
        if cause is None:
            one.remove()
            self._settled(one.id, None)
        return cause, wait_s

    def _not_taken(self, one: WaitingNotice, cause: str, wait_s: float | None) -> float:
        if self._now() - one.since_s >= self._settings.timeout_ms / 1000:
            self._give_up(one, f"{cause}; it waited longer than {TIMEOUT}={self._settings.timeout_ms}")
            return 0.0
        pause_s = self._pause(wait_s)
        if time.monotonic() - self._logged_s >= LOG_S:
            self._logged_s = time.monotonic()
            log.warning(
                "connector %s: a notice is not posted yet: %s=%s: %s; next attempt in %.1f s",
                *(self._settings.connector, NOTIFY_URL, self._settings.url, cause, pause_s),
            )
        return pause_s

    def _pause(self, asked_s: float | None) -> float:
        self._failures += 1
        own_s = min(float(1 << min(self._failures, 10)) / 4, LONGEST_PAUSE_S)
        return own_s if asked_s is None else min(max(asked_s, own_s), LONGEST_PAUSE_S)

    def _give_up(self, one: WaitingNotice, cause: str) -> None:
        one.remove()
        log.warning(
            "connector %s: notice %s is given up: %s=%s: %s",
            *(self._settings.connector, one.id, NOTIFY_URL, self._settings.url, cause),
        )
        self._settled(one.id, cause)
