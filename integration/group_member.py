"""A worker's membership in a process of its own, which can be killed and frozen: it prints what it is, and its lease.

`python -m integration.group_member BROKERS GROUP TOPIC WORKER_ID SESSION_MS FOLDER`. The folder is of its leases.
"""

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from parquet_sink.distributed.membership import GroupTiming, Membership
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.lease import LeaseFolder

LOOK_S: Final = 0.02


def timing(session_ms: int) -> GroupTiming:
    """In the proportions of the defaults."""
    return GroupTiming(session_ms, session_ms * 3 // 10, session_ms * 6)


def member_of(brokers: str, group: str, topic: str, worker_id: str, session_ms: str, folder: str) -> Membership:
    """A member that begins."""
    return Membership(
        KafkaSettings((topic,), None, group, {"bootstrap.servers": brokers}),
        config_topic=topic,
        worker_id=worker_id,
        url=f"http://{worker_id}/",
        timing=timing(int(session_ms)),
        lease=LeaseFolder(Path(folder)).write,
        position=lambda: 0,
    )


def stays(membership: Membership) -> Iterator[tuple[str, bool]]:
    """Member id and whether it leads, now and whenever they change."""
    known: tuple[str, bool] | None = None
    while True:
        member = membership.now()
        if (now := (member.member_id, member.leads)) != known:
            known = now
            yield now
        time.sleep(LOOK_S)


def main(*arguments: str) -> None:
    """Prints member id and whether it leads whenever they change; leaves at SIGTERM."""
    membership = member_of(*arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(membership.leave()))
    for member_id, leads in stays(membership):
        print(member_id or "-", "leads" if leads else "follows", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
