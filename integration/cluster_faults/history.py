"""What a run shows: which worker sent which file, who was to, and how long nobody did. Pure.

Times are epoch milliseconds of one machine: those of workers, leader and target are comparable.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

NEVER: Final = float("inf")


@dataclass(frozen=True)
class Sent:
    """A file that the target accepted, and the worker that sent it. received_ms: when its request came."""

    connector: str
    partition: int
    worker: str
    received_ms: int
    accepted_ms: int


@dataclass(frozen=True)
class Owner:
    """A worker that the leader gave a connector to, and when."""

    worker: str
    since_ms: int


@dataclass(frozen=True)
class Loss:
    """What was done to a worker with these connectors. until_ms: since when it may deliver again, dead ones at once.

    at_rest: no connector had moved for some seconds.
    """

    kind: str
    worker: str
    connectors: tuple[str, ...]
    at_ms: int
    until_ms: int
    at_rest: bool = False


@dataclass(frozen=True)
class Gap:
    """From a loss to the connector's next file. moved_s: to the assignment of another owner; None where it stayed.

    rest_s: from the connector's file before that one, which a worker that stops in order may send after the loss.
    """

    seconds: float
    moved_s: float | None
    rest_s: float


def gaps(loss: Loss, files: Iterable[Sent], owners: Mapping[str, Sequence[Owner]]) -> list[Gap]:
    """For each connector of the worker that was lost: to the first file of another worker, or of it once it is back.

    NEVER where none came.
    """
    firsts, lasts = dict.fromkeys(loss.connectors, NEVER), dict.fromkeys(loss.connectors, -NEVER)
    for one in sorted(files, key=lambda one: one.accepted_ms):
        after = loss.at_ms if one.worker != loss.worker else loss.until_ms
        if firsts.get(one.connector) == NEVER:
            (firsts if one.received_ms > after else lasts)[one.connector] = one.accepted_ms
    found = []
    for name, first in firsts.items():
        moves = (one.since_ms for one in owners.get(name, ()) if loss.at_ms < one.since_ms <= first)
        moved = next(moves, None)
        found.append(
            Gap(
                (first - loss.at_ms) / 1_000,
                None if moved is None else (moved - loss.at_ms) / 1_000,
                (first - lasts[name]) / 1_000,
            )
        )
    return found


def longest_rests(
    names: Iterable[str], files: Iterable[Sent], owners: Mapping[str, Sequence[Owner]], from_ms: int, to_ms: int
) -> list[float]:
    """Of connectors that stayed where they were in that time: the longest each was without an accepted file, in s."""
    times = {
        name: [from_ms] for name in names if not any(from_ms < one.since_ms < to_ms for one in owners.get(name, ()))
    }
    for one in sorted(files, key=lambda one: one.accepted_ms):
        if one.connector in times and from_ms < one.accepted_ms < to_ms:
            times[one.connector].append(one.accepted_ms)
    return [max(after - before for before, after in pairwise([*found, to_ms])) / 1_000 for found in times.values()]


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that so many of them do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(-int(-share * len(ordered) // 1), 1) - 1] if ordered else 0.0


def two_owners(files: Iterable[Sent], owners: Mapping[str, Sequence[Owner]]) -> list[str]:
    """Files that a worker sent after its successor's first one, in words; one in flight is let pass.

    That is one request for each topic-partition and change of owner. A worker that was never given the connector may
    send nothing.
    """
    troubles = []
    ordered = sorted(files, key=lambda one: (one.connector, one.received_ms))
    for name, group in groupby(ordered, lambda one: one.connector):
        turns = [next(run) for _, run in groupby(owners.get(name, ()), lambda one: one.worker)]
        now, late = -1, Counter[tuple[int, int]]()
        for one in group:
            begun = [
                at for at, turn in enumerate(turns) if turn.worker == one.worker and turn.since_ms <= one.received_ms
            ]
            if begun and begun[-1] >= now:
                now = begun[-1]
                continue
            late[now, one.partition] += 1
            if not begun or late[now, one.partition] > 1:
                troubles.append(
                    f"connector {name}, topic-partition {one.partition}: worker {one.worker} sent a file at "
                    f"{one.received_ms}, when {turns[now].worker if now >= 0 else 'nobody'} had it"
                )
    return troubles
