"""Workers that are paused at random, and whether an upload of theirs began after their lease. Real members, no Spark.

`python -m integration.cluster_faults.pauses`: PAUSES (1000) of the workers of SCENES (8) groups, two in each, SEED,
SESSION_MS (1500). `make pauses`. Ends with 0 when no upload began after its lease, with 1 otherwise.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from integration.cluster_faults.paused_worker import LEASE, MEMBER
from integration.sizes import size
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.process.lease import LeaseFolder, clock_ns, holds

TOPIC: Final = "configs"
WORKERS: Final = "ab"
LOOK_S: Final = 0.02
BACK_S: Final = 60.0
KINDS: Final = ("all", "all", "all", "the member", "the uploader")
"""Which of a worker's processes are paused."""
SHORTEST_MS: Final = 1_000
"""The session that brokers must allow: `group.min.session.timeout.ms`."""


@dataclass
class Upload:
    """One that came. looked_ns: when its worker began to look at its lease; came_ns: when the target had it."""

    member_id: str
    looked_ns: int
    came_ns: int


@dataclass
class Counted:
    """What came out. lapses: seconds for which the other worker of a group had no lease, by pause's kind."""

    pauses: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    uploads: int = 0
    late: list[str] = field(default_factory=list)
    in_flight: int = 0
    lapses: dict[str, list[float]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """For a reader."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.pauses.items()))
        yield f"{self.pauses.total()} pauses ({kinds}), of which {self.lost} cost the worker its session"
        yield f"{self.uploads} uploads; {len(self.late)} began after their worker's lease"
        yield f"{self.in_flight} were on their way when their worker was paused, and came after its session"
        for kind, found in sorted(self.lapses.items()):
            yield f"the other worker had no lease: {len(found)} times beside {kind}, for {max(found):.2f} s at most"
        yield from self.late[:10]


class Judge:
    """The target, and an observer of the coordinator: when members were there for the last time."""

    def __init__(self, brokers: str, groups: list[str]) -> None:
        self.uploads: list[Upload] = []
        self._gone_ns: dict[str, int] = {}
        self._there: set[str] = set()
        self._groups, self._admin = groups, AdminClient({"bootstrap.servers": brokers, "log_level": 0})
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends = threading.Event()
        for act in (self._accept, self._observe):
            threading.Thread(target=act, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("r") as lines:
            for line in lines:
                member_id, looked = line.split()
                self.uploads.append(Upload(member_id, int(looked), clock_ns()))
                connection.sendall(b".")

    def _observe(self) -> None:
        """Who is in none of the groups any more was removed before the answer came."""
        while not self._ends.wait(LOOK_S):
            found = set[str]()
            try:
                for future in self._admin.describe_consumer_groups(self._groups, request_timeout=10).values():
                    found |= {one.member_id for one in future.result().members}
            except KafkaException:
                continue
            now_ns = clock_ns()
            for member_id in self._there - found:
                self._gone_ns.setdefault(member_id, now_ns)
            self._there = found

    def senders(self) -> set[str]:
        """Member ids that something came from."""
        return {one.member_id for one in self.uploads}

    def close(self, counted: Counted) -> None:
        """Judges all uploads."""
        self._ends.set()
        self._listener.close()
        counted.uploads = len(self.uploads)
        for one in self.uploads:
            gone_ns = self._gone_ns.get(one.member_id)
            if gone_ns is not None and one.looked_ns > gone_ns:
                late_s = (one.looked_ns - gone_ns) / 1e9
                counted.late.append(f"an upload of member {one.member_id} began {late_s:.2f} s after it was removed")
            elif gone_ns is not None and one.came_ns > gone_ns:
                counted.in_flight += 1


@dataclass
class Worker:
    """Two processes: a member, and its uploader."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    def pids(self) -> dict[str, list[int]]:
        """Whom a pause may meet."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        member, uploader = self.process.pid, int(children[0])
        return {"all": [uploader, member], "the member": [member], "the uploader": [uploader]}

    @property
    def member_id(self) -> str:
        found = self.folder / MEMBER
        return found.read_text() if found.exists() else ""

    def has_lease(self) -> bool:
        return holds(LeaseFolder(self.folder).path(self.member_id))

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Pauses:
    """All pauses of one group, in a thread of its own: one worker at a time."""

    def __init__(
        self, group: str, workers: list[Worker], count: int, session_s: float, seed: str, kinds: Sequence[str]
    ) -> None:
        self._group, self.workers, self._count, self._session_s = group, workers, count, session_s
        self._kinds = kinds
        self._chance = random.Random(seed)
        self.counted = Counted()
        self.failure: str | None = None
        self.thread = threading.Thread(target=self._run, name=group)

    def _run(self) -> None:
        try:
            for _ in range(self._count):
                self._one()
        except Exception as error:  # noqa: BLE001 - told by whoever started it
            self.failure = f"{self._group}: {type(error).__name__}: {error}"

    def _one(self) -> None:
        for worker in self.workers:
            self._until_leased(worker)
        time.sleep(self._chance.uniform(0.0, 0.3) * self._session_s)
        worker, other = self._chance.sample(self.workers, 2)
        kind = self._chance.choice(self._kinds)
        about = self._chance.choice([0.4, 0.8, 0.8, 1.0, 1.0, 1.0, 1.5])  # the lease is over at 0.8, the session at 1
        length_s = self._session_s * about * self._chance.uniform(0.85, 1.15)
        before, pids = worker.member_id, worker.pids()[kind]
        label = f"{'a short' if about < 0.5 else 'a long' if about > 1.2 else 'a pause of about a session'}"
        watched, lapse_s = threading.Event(), [0.0]
        watching = threading.Thread(target=_watch, args=(other, watched, lapse_s))
        watching.start()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(length_s)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.2 * self._session_s)
        self._until_leased(worker)
        time.sleep(0.2 * self._session_s)
        watched.set()
        watching.join()
        self.counted.pauses[f"of {kind}"] += 1
        self.counted.lost += worker.member_id != before
        if lapse_s[0] > 0:
            self.counted.lapses.setdefault(label, []).append(lapse_s[0])

    def _until_leased(self, worker: Worker) -> None:
        deadline = time.monotonic() + BACK_S
        while not worker.has_lease():
            if worker.process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"worker {worker.folder.name} has no lease within {BACK_S:.0f} s")
            time.sleep(LOOK_S)


def _watch(worker: Worker, done: threading.Event, lapse_s: list[float]) -> None:
    """Adds up for how long a worker has no lease."""
    before = time.monotonic()
    while not done.wait(LOOK_S):
        now = time.monotonic()
        if not worker.has_lease():
            lapse_s[0] += now - before
        before = now


def paused(
    broker: Broker,
    folder: Path,
    count: int,
    groups: int,
    session_ms: int,
    seed: int,
    *,
    lease: float | None = None,
    kinds: Sequence[str] = KINDS,
) -> Counted:
    """So many pauses in all. lease: in sessions, where it is not to be as it is. Raises TimeoutError."""
    names = [f"paused-{os.getpid()}-{seed}-{number}" for number in range(groups)]
    with ExitStack() as parts:
        judge = Judge(broker.bootstrap_servers, names)
        runs = []
        for number, name in enumerate(names):
            workers = [_started(broker, name, folder, worker, session_ms, judge.port, lease) for worker in WORKERS]
            for worker in workers:
                parts.callback(worker.end)
            share = count // groups + (number < count % groups)
            runs.append(Pauses(name, workers, share, session_ms / 1_000, f"{seed}-{number}", kinds))
        for run in runs:
            run.thread.start()
        for run in runs:
            run.thread.join()
        counted = Counted()
        for run in runs:
            counted.pauses += run.counted.pauses
            counted.lost += run.counted.lost
            for kind, found in run.counted.lapses.items():
                counted.lapses.setdefault(kind, []).extend(found)
        judge.close(counted)
        if silent := [one.folder for run in runs for one in run.workers if one.member_id not in judge.senders()]:
            raise TimeoutError(f"no upload came from {silent[0]}")
    if failures := [run.failure for run in runs if run.failure is not None]:
        raise TimeoutError("; ".join(failures))
    return counted


def _started(
    broker: Broker, group: str, folder: Path, name: str, session_ms: int, port: int, lease: float | None
) -> Worker:
    own = folder / group / name
    own.mkdir(parents=True)
    words = [broker.bootstrap_servers, group, TOPIC, f"{name}:1", str(session_ms), str(own), str(port)]
    environment: Mapping[str, str] = os.environ if lease is None else {**os.environ, LEASE: str(lease)}
    command = [sys.executable, "-m", "integration.cluster_faults.paused_worker", *words]
    with (own / "said").open("wb") as said:
        process = subprocess.Popen(command, start_new_session=True, env=environment, stderr=said, stdout=said)
    return Worker(own, process)


def main() -> int:
    """Runs, prints, and returns the exit status."""
    count, groups, session_ms = size("PAUSES", 1_000), size("SCENES", 8), size("SESSION_MS", 1_500)
    seed = size("SEED", random.randrange(1, 1_000_000))
    print(
        f"{count} pauses in {groups} groups of {len(WORKERS)}, session.timeout.ms={session_ms}, SEED={seed}", flush=True
    )
    properties = {"group.min.session.timeout.ms": str(SHORTEST_MS), "group.initial.rebalance.delay.ms": "0"}
    with tempfile.TemporaryDirectory(prefix="parquet-sink-pauses-") as folder, Broker(properties=properties) as broker:
        broker.create_topic(TOPIC)
        began = time.monotonic()
        counted = paused(broker, Path(folder), count, groups, session_ms, seed)
        for line in counted.lines():
            print(line)
        print(f"{time.monotonic() - began:.0f} s")
    return 1 if counted.late else 0


if __name__ == "__main__":
    sys.exit(main())
