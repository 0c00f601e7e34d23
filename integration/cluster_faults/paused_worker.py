"""A worker's membership, and an uploader beside it that looks at the lease as a task does; both may be paused.

`python -m integration.cluster_faults.paused_worker BROKERS GROUP TOPIC WORKER_ID SESSION_MS FOLDER TARGET`. The folder
is of its leases, and has the member id in the file `member`. TARGET: a port; it is sent a line for each upload.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

from integration.group_member import member_of, stays
from parquet_sink.distributed import membership
from parquet_sink.process import lease
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.retry import RetryPolicy, Surroundings, send_with_retries

MEMBER: Final = "member"
EACH_S: Final = 0.03
LEASE: Final = "LEASE"
"""The variable that makes leases as long as so many sessions, for the test of the test."""


def upload(folder: Path, port: int) -> None:
    """One after the other, for as long as there is a lease, and without an end."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    leases = lease.LeaseFolder(folder)
    policy = RetryPolicy(1, 0.01, 1.0, retry_refused=False)
    with socket.create_connection(("127.0.0.1", port)) as target:
        while True:
            member_id = (folder / MEMBER).read_text() if (folder / MEMBER).exists() else ""
            looked_ns = [0]

            def allowed(path: str = leases.path(member_id), looked_ns: list[int] = looked_ns) -> bool:
                looked_ns[0] = lease.clock_ns()
                return lease.holds(path)

            def send(left_s: float, member_id: str = member_id, looked_ns: list[int] = looked_ns) -> Outcome:
                target.sendall(f"{member_id} {looked_ns[0]}\n".encode())
                target.recv(1)
                return Outcome(Verdict.ACCEPTED, "")

            around = Surroundings(lambda: 0.0, time.time, lambda: 0.5, time.sleep, lambda: False, allowed=allowed)
            send_with_retries(send, policy, around, lambda outcome, seconds: None)
            time.sleep(EACH_S)


def main(brokers: str, group: str, topic: str, worker_id: str, session_ms: str, folder: str, port: str) -> None:
    """Ends at SIGTERM, by leaving."""
    if (uploader := os.fork()) == 0:
        try:
            upload(Path(folder), int(port))
        finally:
            os.kill(os.getppid(), signal.SIGKILL)  # a worker that uploads nothing proves nothing
    membership.LEASE = float(os.environ.get(LEASE, membership.LEASE))  # type: ignore[misc]
    made = member_of(brokers, group, topic, worker_id, session_ms, folder)

    def leave(*_: object) -> None:
        os.kill(uploader, signal.SIGKILL)
        made.leave()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    wanted = Path(folder) / MEMBER
    for member_id, _ in stays(made):
        written = wanted.with_suffix(".new")
        written.write_text(member_id)
        written.replace(wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
