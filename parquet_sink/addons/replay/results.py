"""What became of each file of a replay, compared with its first time; pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from parquet_sink.addons.replay.copies import ReplayFile, overlap
from parquet_sink.addons.replay.plan import ReplayRange


class Verdict(StrEnum):
    """A file beside the one of the first time."""

    SAME = "same"
    """Name and bytes are those of the first time."""
    DIFFERENT = "different"
    NEW = "not in the history"
    """There is nothing to compare it with."""
    ABSENT = "absent"
    """One of the first time that has no record any more: nothing was sent for it."""


@dataclass(frozen=True)
class ReplayedFile:
    """round: 1 for the first of the times that everything is sent. was: its name of the first time, where it differs.

    causes: why it differs, in words.
    """

    round: int
    file: ReplayFile
    verdict: Verdict
    was: str | None = None
    causes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        about = {"round": self.round, "verdict": str(self.verdict), "was": self.was, "causes": list(self.causes)}
        return {**asdict(self.file), **about}


@dataclass(frozen=True)
class Now:
    """What files depend on now. fresh_salts: whether obfuscation makes every file another one."""

    settings_digest: str
    version: str
    fresh_salts: bool = False


def compared(one: ReplayRange, sent: Sequence[ReplayFile], now: Now, round_: int) -> list[ReplayedFile]:
    """The files of a range beside those of the first time. sent: in order, all that came of the range."""
    causes = _causes(one, sent, now)
    by_name = {was.name: was for was in one.expected}
    found: list[ReplayedFile] = []
    for file in sent:
        was = by_name.get(file.name) or _nearest(file, one.expected)
        if was is None:
            found.append(ReplayedFile(round_, file, Verdict.NEW))
        elif was.name == file.name and was.digest is None:
            found.append(ReplayedFile(round_, file, Verdict.NEW, causes=("the history has no digest of it",)))
        elif (was.name, was.digest) == (file.name, file.digest):
            found.append(ReplayedFile(round_, file, Verdict.SAME))
        else:
            name = None if was.name == file.name else was.name
            found.append(ReplayedFile(round_, file, Verdict.DIFFERENT, name, causes))
    absent = [was for was in one.expected if not any(overlap(was.span, file.span) for file in sent)]
    return found + [ReplayedFile(round_, was, Verdict.ABSENT, was.name, causes) for was in absent]


def _nearest(file: ReplayFile, expected: Sequence[ReplayFile]) -> ReplayFile | None:
    """The one of the first time with its first offset, else with any of its offsets."""
    near = [was for was in expected if overlap(was.span, file.span)]
    return next((was for was in near if was.first == file.first), near[0] if near else None)


def _causes(one: ReplayRange, sent: Sequence[ReplayFile], now: Now) -> tuple[str, ...]:
    """Why files of a range are not those of the first time: all that is known, else where to look."""
    found = []
    if one.deleted is not None:
        found.append(f"Kafka deleted offsets {one.deleted[0]} to {one.deleted[1] - 1} of its range")
    if one.recorded and one.version != now.version:
        found.append(f"it was made by version {one.version}, and now by {now.version}")
    elif one.recorded and one.settings_digest != now.settings_digest:
        found.append("the connector's settings are others than the first time")
    fewer = sum(was.records for was in one.expected) - sum(file.records for file in sent)
    if fewer > 0 and one.deleted is None:
        gone = "compacted" if one.thinned else "compacted, or without a row now"
        found.append(f"{fewer:,} record{'' if fewer == 1 else 's'} fewer than the first time: {gone}")
    if not one.recorded and one.expected:
        found.append("the history no longer has how its range was cut, so it was cut again")
    if now.fresh_salts:
        found.append("obfuscation takes a fresh salt each time")
    return tuple(found) or (
        "the cause is not known: a schema of the registry, a class of your own or a library may be another one now",
    )
