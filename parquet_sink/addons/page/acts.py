"""What may be done to a connector from its page, in words: what will happen, and what happened."""

from dataclasses import dataclass
from typing import Final

from parquet_sink.worker.rest.in_process import Api

FLUSH_S: Final = 5
"""How long a flush is waited for before it is said that it goes on."""


@dataclass(frozen=True)
class Act:
    """will: before; done: after. method: of the endpoint of that name. states: where it makes sense.

    danger: whether nothing is delivered afterwards.
    """

    name: str
    title: str
    will: str
    done: str
    states: frozenset[str]
    method: str = "PUT"
    query: str = ""
    danger: bool = False


_RUNS: Final = frozenset({"running", "late", "retrying", "starting"})
ACTS: Final = (
    Act(
        "flush",
        "Flush now",
        "All records that wait go out now, whatever the thresholds say; files that are not full end with the reason "
        "“request”. Offsets move once the target has accepted them.",
        "",
        frozenset({"running", "late", "retrying"}),
        "POST",
        f"?wait={FLUSH_S}",
    ),
    Act(
        "pause",
        "Pause",
        "The flush in progress is finished, then nothing more is taken. It keeps its position and its processes; what "
        "comes meanwhile waits in Kafka.",
        "It pauses: the flush in progress is finished, then nothing is sent until it is resumed.",
        _RUNS,
    ),
    Act(
        "resume",
        "Resume",
        "It goes on from its committed offsets, with what has come since.",
        "It goes on from its committed offsets.",
        frozenset({"paused", "stopped"}),
    ),
    Act(
        "restart",
        "Restart",
        "Its query ends once the flush in progress is finished, and begins again from the committed offsets, with its "
        "configuration and secrets read again. What failed in the middle is sent again under the same file names.",
        "It is being started again from its committed offsets.",
        _RUNS | {"failed", "paused"},
        "POST",
        "?includeTasks=true",
    ),
    Act(
        "stop",
        "Stop",
        "Its query ends once the flush in progress is finished, and it gives up what it holds. What waits stays in "
        "Kafka. Its offsets may be changed then; it comes back when it is resumed.",
        "It stops: the flush in progress is finished first. Nothing is sent until it is resumed.",
        _RUNS | {"failed", "paused"},
        danger=True,
    ),
)


def offered(api: Api, state: str, kind: str) -> list[Act]:
    """Those that make sense now and that the visitor's role may do."""
    return [
        one
        for one in ACTS
        if state in one.states
        and api.may(one.method, f"/connectors/{{connector}}/{one.name}")
        and not (one.name == "flush" and kind == "source")
    ]
