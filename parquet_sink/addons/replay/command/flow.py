"""A replay from its plan to its end: begun, gone on with, or only tried."""

import argparse
import logging
import os
import re
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from typing import Final, Self

from rich.progress import TextColumn

from parquet_sink import __version__
from parquet_sink.addons.replay.command.proof import NoProof, Proof, proof_for
from parquet_sink.addons.replay.command.report import Done, Foretold, Tally, printed
from parquet_sink.addons.replay.command.setup import plan_for, settings_for
from parquet_sink.addons.replay.copies import ReplayFile
from parquet_sink.addons.replay.journal import Journal, Order, Progress
from parquet_sink.addons.replay.pace import FULL, Rate
from parquet_sink.addons.replay.plan import ReplayPlan
from parquet_sink.addons.replay.run import Options, Replay, Watcher
from parquet_sink.addons.replay.selection import Selection
from parquet_sink.archive.archive import Archive, open_archive
from parquet_sink.cli.progress import ShownProgress
from parquet_sink.files import naming
from parquet_sink.files.lock import is_locked
from parquet_sink.history.records import Origin, upload_record
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.uploader import target_for
from parquet_sink.task.outcome import history_of, sender_of

BESIDE: Final = Rate(0.25)
"""While the connector runs on this machine, unless --rate says otherwise."""
LOW_PRIORITY: Final = 10
INTERRUPTED: Final = 130
FAILED: Final = 1
log = logging.getLogger(__name__)


def dry_run(args: argparse.Namespace, selection: Selection) -> int:
    """Says what would be sent. What the history does not know is made, and not sent."""
    settings = settings_for(args, args.target)
    journal = Journal(settings.files.tmp_dir, settings.name)
    with journal.alone():
        plan = plan_for(settings, selection, elsewhere=args.target is not None)
        unknown = ReplayPlan(tuple(one for one in plan.ranges if not one.foretold))
        with ProgressWatcher(args, settings.name, unknown.offsets_read, "made") as shown:
            options = Options(None, _rate(args, settings))
            replay = Replay(_in_own_folder(settings, journal), Order(unknown), options, watchers=(shown,))
            with closing(replay.files()) as files:
                made = list(files)
    where = target_for(settings.target).name
    printed(Foretold(settings.name, where, args.times, plan, made, replay.left_out), as_json=args.json)
    if replay.failure is None:
        return os.EX_OK
    log.error("connector %s: the effect of the next copies is not checked. %s", settings.name, replay.failure.message)
    return FAILED


def begin(args: argparse.Namespace, selection: Selection) -> int:
    """Sends what was chosen, from its start."""
    settings = settings_for(args, args.target)
    journal = Journal(settings.files.tmp_dir, settings.name)
    with journal.alone():
        plan = plan_for(settings, selection, elsewhere=args.target is not None)
        order = Order(plan, args.times, args.target, settings.fingerprint, __version__)
        if journal.unfinished:
            log.warning("connector %s: a replay that was stopped before its end is given up", settings.name)
        with proof_for(args, settings, plan) as proof:
            journal.begin(order)
            return _send(args, settings, journal, order, Progress(), proof)


def resume(args: argparse.Namespace) -> int:
    """Goes on where a replay was stopped."""
    settings = settings_for(args, None)
    journal = Journal(settings.files.tmp_dir, settings.name)
    with journal.alone():
        order, progress = journal.load()
        if order.target is not None:
            settings = settings_for(args, order.target)
        if order.settings_digest != settings.fingerprint:
            log.warning(
                "connector %s: settings or version are others than when the replay was begun; files may differ",
                settings.name,
            )
        with proof_for(args, settings, order.plan) as proof:
            return _send(args, settings, journal, order, progress, proof)


def _send(
    args: argparse.Namespace,
    settings: SinkSettings,
    journal: Journal,
    order: Order,
    progress: Progress,
    proof: Proof | NoProof,
) -> int:
    rate, began_s, earlier = _rate(args, settings), time.monotonic(), progress.files
    tally, interrupted = Tally(keep=args.json), False
    where = target_for(settings.target).name
    with (
        closing(HistoryWatcher(settings)) as noted,
        ProgressWatcher(args, settings.name, order.plan.offsets_read * (order.times - progress.round + 1)) as shown,
    ):
        options = Options(settings.target, rate, journal.save, _archive(settings))
        replay = Replay(_in_own_folder(settings, journal), order, options, progress, (shown, noted, proof))
        try:
            with closing(replay.files()) as files:
                for file in files:
                    tally.add(file)
        except KeyboardInterrupt:
            interrupted = True
    sending_s = time.monotonic() - began_s
    failure = None if replay.failure is None else replay.failure.message
    proven = None if interrupted else proof.result()
    done = Done(
        connector=settings.name,
        target=where,
        times=order.times,
        rate=str(rate),
        tally=tally,
        left_out=replay.left_out,
        plan=order.plan,
        seconds=sending_s,
        earlier=earlier,
        failure=failure,
        interrupted=interrupted,
        resume=command_to_go_on(args),
        proven=proven,
    )
    if not interrupted and failure is None:
        journal.forget()
    printed(done, as_json=args.json)
    if interrupted:
        return INTERRUPTED
    if proven is not None and not proven.holds:
        return INTERRUPTED if proven.stopped else FAILED
    complete = settings.errors.invalid_records or replay.left_out.count == replay.left_out.refused
    return os.EX_OK if failure is None and complete and not replay.left_out.refused else FAILED


def _archive(settings: SinkSettings) -> Callable[[], Archive] | None:
    """Opens the connector's archive once, where there is one."""
    return None if settings.archive is None else cache(partial(open_archive, settings.archive))


def _in_own_folder(settings: SinkSettings, journal: Journal) -> SinkSettings:
    """Files of a replay are apart from those of the connector, and are not kept; the archive has their first time."""
    return replace(settings, files=replace(settings.files, tmp_dir=journal.work_dir, keep_files=False), archive=None)


def _rate(args: argparse.Namespace, settings: SinkSettings) -> Rate:
    """As asked for; beside a running connector a share, and with lower priority."""
    lock = os.path.join(naming.connector_folder(settings.files.tmp_dir, settings.name), naming.LOCK_FILE)
    if not is_locked(lock):
        return args.rate or FULL
    os.setpriority(os.PRIO_PROCESS, 0, max(LOW_PRIORITY, os.getpriority(os.PRIO_PROCESS, 0)))
    return args.rate or BESIDE


def shown_key(text: str) -> str:
    """A placeholder as it was written; what may be the key itself as a word in its place."""
    return text if re.fullmatch(r"\$\{[^}]*\}", text) else "KEY"


def command_to_go_on(args: argparse.Namespace) -> str:
    """What goes on with this replay."""
    words = ["parquet-sink", "replay", "--connector", args.connector]
    for option in ("worker", "bootstrap_servers"):
        if getattr(args, option) is not None:
            words += [f"--{option.replace('_', '-')}", getattr(args, option)]
    words += [] if args.target_key is None else ["--target-key", shown_key(args.target_key)]
    words += ["--verify"] if args.verify else []
    words += ["--differences", args.differences] if args.differences is not None else []
    return shlex.join([*words, "--resume"])


class HistoryWatcher(Watcher):
    """Adds each file to the history. settings: of the connector, with the target that files go to."""

    def __init__(self, settings: SinkSettings) -> None:
        self._sender, self._history = sender_of(settings, Origin.REPLAY), history_of(settings)

    def flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        now_s = time.time()
        self._history.add([upload_record(one, self._sender, now_s, planned.topic_id) for one in receipts])

    def close(self) -> None:
        """Lets go of the file."""
        self._history.close()


class ProgressWatcher(Watcher):
    """Use as a context manager. total: offsets to be read. doing: what becomes of files, in words."""

    def __init__(
        self,
        args: argparse.Namespace,
        connector: str,
        total: int,
        doing: str = "sent",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        columns = (TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[told]}"))
        what = f"connector {connector}: replay"
        self._shown = ShownProgress(what, total, *columns, logs=args.progress, monotonic=monotonic)
        self._doing, self._lock = doing, threading.Lock()
        self._files = self._rows = self._bytes = 0

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._shown.__exit__(*error)

    def read(self, offsets: int) -> None:
        self._shown.advance(offsets, self._words())

    def sent(self, file: ReplayFile) -> None:
        with self._lock:
            self._files, self._rows = self._files + 1, self._rows + file.rows
            self._bytes += file.size_bytes
        self._shown.advance(0, self._words())

    def _words(self) -> str:
        files = f"{self._files:,} file{'' if self._files == 1 else 's'} {self._doing}"
        return f"of offsets read, {files}, {self._rows:,} rows, {self._bytes / 1e6:,.1f} MB"
