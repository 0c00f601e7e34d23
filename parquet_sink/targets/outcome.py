"""What one attempt to hand over a file came to, and how a target stands; whatever kind it is.

accepted   the target has the file, durably
refused    it said no, and would say so again
retriable  the file has certainly not been taken; later it may be
unknown    the file may have been taken: the same name and bytes are sent again, nothing is deleted or renamed
"""

from dataclasses import dataclass
from enum import StrEnum

from parquet_sink.model.receipts import Archiving, Notifying


class Verdict(StrEnum):
    """The four classes of outcomes."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    RETRIABLE = "retriable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """Result of one attempt. cause, cure: middles of sentences for the operator, never with a secret.

    status: the number that the target's protocol has for it, such as an HTTP status; None when no answer came, or the
    protocol has none. retry_after_seconds: how long the target asks to be left alone. answer_id: what the target calls
    the file. of_file: REFUSED for what is in this file, so that another one may be accepted; not for a key, a right or
    an address, which all files share. of_name: REFUSED perhaps because the target knows a file of this name. archive:
    what became of an accepted file at an archive; notice: of its notice, where that was posted at once. fate: what
    became of the file, where the verdict alone would not tell it right.
    """

    verdict: Verdict
    cause: str
    cure: str = ""
    status: int | None = None
    retry_after_seconds: float | None = None
    answer_id: str | None = None
    of_file: bool = False
    of_name: bool = False
    archive: Archiving | None = None
    notice: Notifying | None = None
    fate: str = ""


def of_another_content(there: str, local: str, elsewhere: str, status: int | None = None) -> Outcome:
    """REFUSED, because what has the name of a file is not that file. elsewhere: what to set for another place."""
    return Outcome(
        Verdict.REFUSED,
        f"{there} is there with another content than {local}, and is not overwritten",
        "Find out why: the topic was deleted and made again, so that offsets and with them the names of files begin "
        "again; or what connect.ems.tmp.dir had was lost; or another connector or program writes there. Then move away "
        f"what is there, or set {elsewhere}",
        status=status,
    )


class Health(StrEnum):
    """How a target stands. FAILED: an upload would fail as well. WARNING: it may pass."""

    OK = "OK"
    WARNING = "WARNING"
    FAILED = "FAILED"


@dataclass(frozen=True)
class ProbeResult:
    """What was found when a target was tried, in words for the operator, with the cure where there is trouble."""

    health: Health
    text: str
