"""A target of whose accepted files notices are given: into the topic at once, to the webhook by its waiting folder."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from parquet_sink.archive.target import AcceptedFiles
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.receipts import Notifying
from parquet_sink.notify.notice import Notice, notice_of
from parquet_sink.notify.settings import NotifySettings
from parquet_sink.notify.topic import TopicNotices
from parquet_sink.notify.waiting import NoticeFolder
from parquet_sink.notify.webhook import Webhook
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.outcome import Outcome, ProbeResult, Verdict
from parquet_sink.targets.settings import Target

log = logging.getLogger(__name__)

ONCE_S: Final = 3.0
"""How long the webhook may hold a file up where nobody else would post its notice."""


class NotifiedTarget:
    """Implements `targets.settings.Target`: a file counts as accepted once its notice is in the topic, if there is one.

    accepted: a file that the target took is not sent to it again because its notice could not be written. The webhook's
    notice is put where the connector's program finds it; where that is not on this machine it is tried once, here.
    """

    def __init__(
        self,
        target: Target,
        settings: NotifySettings,
        accepted: AcceptedFiles,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._target, self._settings, self._accepted, self._now = target, settings, accepted, now
        self._topic = None if settings.topic is None else TopicNotices(settings)
        self._folder = None if settings.url is None else NoticeFolder(settings.waiting)

    @property
    def name(self) -> str:
        return self._target.name

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """The target's outcome; or, of an accepted file, why its notice is not in the topic."""
        by = time.monotonic() + seconds_left
        outcome = self._accepted.get(self._target, file) or self._target.push(file, seconds_left)
        if outcome.verdict is not Verdict.ACCEPTED:
            return outcome
        about = self._settings
        notice = notice_of(
            file, connector=about.connector, table=about.table, target=self._target.name, at_s=self._now()
        )
        if self._topic is not None:
            self._accepted.add(self._target, file, outcome)
            key = f"{file.topic}-{file.partition}"
            failed = self._topic.send(notice, key, max(by - time.monotonic(), 1.0))
            if failed is not None:
                return replace(failed, fate="was accepted, but its notice was not")
            self._accepted.remove(self._target, file)
        if self._folder is not None:
            outcome = replace(outcome, notice=self._hand_over(self._folder, notice))
        return outcome

    def _hand_over(self, folder: NoticeFolder, notice: Notice) -> Notifying | None:
        """What became of it; None where the program posts it."""
        try:
            if folder.tended:
                folder.put(notice)
                return None
            webhook = Webhook(self._settings)
            cause, _ = webhook.post(notice, ONCE_S)
            webhook.close()
        except Exception as error:  # noqa: BLE001 - the file is accepted, and a webhook holds nothing up
            cause = f"{type(error).__name__}: {error}"
        if cause is not None:
            log.warning("connector %s: notice %s is given up: %s", self._settings.connector, notice.id, cause)
        return Notifying(notice.id, cause)

    def probe(self, seconds_left: float) -> ProbeResult:
        return self._target.probe(seconds_left)

    def close(self) -> None:
        self._target.close()


_accepted: Final = PerProcess[str, AcceptedFiles](lambda connector: AcceptedFiles())


def notified(target: Target, settings: NotifySettings) -> Target:
    """The target, of whose accepted files notices are given; the process remembers files whose notices failed."""
    return NotifiedTarget(target, settings, _accepted.get(settings.connector))
