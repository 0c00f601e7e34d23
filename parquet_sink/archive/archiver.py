"""Archives what waits (`archive.waiting`), in threads of the connector's program.

  1. files are taken in the order in which they began to wait, some side by side
  2. each is compared with what it was when it began to wait                  (`archive.waiting`)
  3. it is tried by the connector's retry policy, as an upload is             (`targets.retry`)
  4. one that is archived, or given up, is noted in the history
  5. then it waits no more: it is removed

A file that is given up is warned of. An end in between leaves the file where it is, and it is tried again at the next
start: the archive knows the same file again. At a stop each file that waits has one more attempt, as long as these go
well and there is time. Nothing that is raised ends the thread before that.
"""

import logging
import posixpath
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from parquet_sink.archive.archive import Archive, kept
from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.archive.waiting import Waiting, WaitingFolder, altered
from parquet_sink.model.ranges import NO_TRIES, Tries
from parquet_sink.model.receipts import Archiving
from parquet_sink.process.threads import in_thread
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.retry import RetryPolicy, Sent, Surroundings, send_with_retries, should_retry
from parquet_sink.targets.settings import RetrySettings

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5
MOST_PARALLEL: Final = 4
LEAVE_S: Final = 2.0


class Archiver:
    """Of one connector, from `start` to `close`.

    note: takes a file's name and what became of it, one after the other, in any thread; raises nothing.
    archive: made in the thread that first needs it.
    """

    def __init__(
        self,
        settings: ArchiveSettings,
        retry: RetrySettings,
        archive: Callable[[ArchiveSettings], Archive],
        note: Callable[[str, Archiving], None],
    ) -> None:
        self._settings, self._policy, self._note = settings, RetryPolicy.of(retry), note
        self._waiting = WaitingFolder(settings.waiting, settings.max_waiting_bytes)
        self._open = archive
        self._ending, self._ended = threading.Event(), threading.Event()
        self._leave_by_s: float | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"archive-{settings.connector}", daemon=True)

    def start(self) -> None:
        """Begins with what an earlier run left."""
        self._thread.start()

    def finished(self, within_s: float) -> bool:
        """Whether nothing more is done, so that it may be closed; asked again and again, it is so after `within_s`.

        From the first time on each file has one attempt.
        """
        if self._leave_by_s is None:
            self._leave_by_s = time.monotonic() + within_s
            self._ending.set()
        return not self._thread.is_alive() or time.monotonic() >= self._leave_by_s

    def close(self) -> None:
        """Ends it; what still waits is told of, and is archived at the next start."""
        self._ending.set()
        self._ended.set()
        self._thread.join(LEAVE_S)
        if left := len(self._waiting.files()):
            log.warning(
                "connector %s: %d files wait for the archive %s in %s; they are archived at the next start",
                self._settings.connector,
                left,
                self._settings.address,
                self._settings.waiting,
            )

    def _run(self) -> None:
        archive: Archive | None = None
        while not self._ended.is_set():
            last = self._ending.is_set()  # what came while it waited for more is archived, too
            archive = archive or self._opened()
            if archive is not None and self._settled_some(archive):
                continue
            if last:
                break
            self._ending.wait(LOOK_S if archive is not None else self._pause_s)
        if archive is not None:
            archive.close()

    def _opened(self) -> Archive | None:
        """None when that is not possible now; what waits goes on waiting."""
        try:
            return self._open(self._settings)
        except Exception as error:  # noqa: BLE001 - whatever it is, it may be mended while the connector runs
            log.warning(
                "connector %s: the archive %s cannot be opened: %s; next attempt in %.1f s",
                self._settings.connector,
                self._settings.address,
                error,
                self._pause_s,
            )
            return None

    @property
    def _pause_s(self) -> float:
        return max(LOOK_S, self._policy.interval_seconds)

    def _settled_some(self, archive: Archive) -> bool:
        """Whether there was something, and all of it waits no more."""
        some = self._waiting.files()[:MOST_PARALLEL]
        side_by_side = [in_thread(partial(self._settled, archive, one)) for one in some]
        settled = [one.result() for one in side_by_side]
        return bool(some) and all(settled)

    def _settled(self, archive: Archive, one: Waiting) -> bool:
        """Archives a file, or gives it up; False when it goes on waiting. Raises nothing."""
        try:
            outcome = self._outcome(archive, one)
            if outcome is not None:
                self._noted(one, outcome)
                self._waiting.remove(one)
        except FileNotFoundError:
            return True  # somebody else removed it
        except Exception as error:  # noqa: BLE001 - the other files are to be archived, whatever it is
            log.warning(
                "connector %s: %s goes on waiting for the archive: %s: %s; next attempt in %.1f s",
                self._settings.connector,
                one.file.path,
                type(error).__name__,
                error,
                self._pause_s,
            )
            self._ending.wait(self._pause_s)
            return False
        return outcome is not None

    def _outcome(self, archive: Archive, one: Waiting) -> Outcome | None:
        """What it came to in the end; None when it is to be tried at the next start.

        A stop cuts waits short: then there is one more attempt.
        """
        if (how := altered(one.file)) is not None:
            return Outcome(Verdict.REFUSED, how, "Look whether the machine lost power, and after the disk")
        tries = NO_TRIES
        while True:
            last = self._ending.is_set()
            sent = self._attempts(archive, one, tries)
            wait_s = sent.wait_s or 0.0
            if sent.wait_s is None:
                if not (self._ending.is_set() and should_retry(sent.outcome, self._policy)):
                    return sent.outcome
                if last:
                    return None
            self._ending.wait(wait_s)
            tries = replace(sent.tries, elapsed_s=sent.tries.elapsed_s + wait_s)

    def _attempts(self, archive: Archive, one: Waiting, tries: Tries) -> Sent:
        began_s = time.monotonic()
        around = Surroundings(
            elapsed=lambda: time.monotonic() - began_s,
            now=time.time,
            jitter=random.random,
            sleep=self._rest,
            stopped=self._ending.is_set,
        )
        keep = partial(kept, archive, one.file)
        return send_with_retries(keep, self._policy, around, partial(self._tell_wait, one), tries)

    def _tell_wait(self, one: Waiting, so_far: Outcome, wait_s: float) -> None:
        log.warning(
            "connector %s: file %s is accepted, and not archived yet: %s: %s; next attempt in %.1f s",
            self._settings.connector,
            _name(one),
            URL,
            so_far.cause,
            wait_s,
        )

    def _noted(self, one: Waiting, outcome: Outcome) -> None:
        archived = outcome.verdict is Verdict.ACCEPTED
        if not archived:
            log.warning(
                "connector %s: file %s is accepted, but will not be archived: %s: %s. %s.",
                self._settings.connector,
                _name(one),
                URL,
                outcome.cause,
                outcome.cure,
            )
        cause = None if archived else outcome.cause
        with self._lock:
            at_ms = round(time.time() * 1000)
            self._note(_name(one), Archiving(self._settings.address, at_ms, cause))

    def _rest(self, seconds: float) -> None:
        self._ending.wait(seconds)


def _name(one: Waiting) -> str:
    return posixpath.basename(one.file.where)
