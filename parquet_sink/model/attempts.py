"""Attempts to hand over one file, as they are remembered: by value, so that they cross processes as JSON or pickled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

MOST_LOGGED: Final = 20
"""Attempts at a file that are kept: the first, and the last of the others."""
LONGEST_CAUSE: Final = 300


@dataclass(frozen=True)
class Attempt:
    """One attempt. at_ms: when it began, epoch milliseconds. seconds: until it was known what came of it.

    verdict: what came of it, one of `targets.outcome.Verdict`. status: the target's number for it, such as an HTTP
    status; None when no answer came, or the target has none. cause: in words, at most LONGEST_CAUSE characters.
    """

    at_ms: int
    seconds: float
    verdict: str
    status: int | None = None
    cause: str = ""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Attempt":
        """The inverse of `dataclasses.asdict`. Raises TypeError for anything else."""
        return cls(**fields)


@dataclass(frozen=True)
class AttemptCount:
    """How many attempts came to the same: verdict and status as of `Attempt`."""

    verdict: str
    status: int | None
    count: int

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "AttemptCount":
        """The inverse of `dataclasses.asdict`. Raises TypeError for anything else."""
        return cls(**fields)


def logged(log: tuple[Attempt, ...], attempt: Attempt) -> tuple[Attempt, ...]:
    """The log with one more attempt; of very many the first and the latest stay."""
    added = (*log, attempt)
    return added if len(added) <= MOST_LOGGED else (added[0], *added[len(added) - MOST_LOGGED + 1 :])
