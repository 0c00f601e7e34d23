"""A committed offset, and the metadata beside it: who committed it, of which topic, and what was being flushed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Final

from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey


@dataclass(frozen=True)
class RangePlan:
    """The range [start, end) that is being flushed, and its reason.

    It stands beside the committed offset, so that after a crash the same range is flushed again, as the same files. Its
    start is below that offset when a part of the range was accepted before the rest failed.
    """

    start: int
    end: int
    reason: str


NO_PLANS: Final[Mapping[PartitionKey, RangePlan]] = MappingProxyType({})
NO_IDS: Final[Mapping[str, str]] = MappingProxyType({})
NO_EPOCHS: Final[Mapping[PartitionKey, int]] = MappingProxyType({})


def commit_metadata(instance: Instance, plan: RangePlan | None = None, topic_id: str = "") -> str:
    """What stands beside each committed offset; far below the broker's limit of 4,096 bytes.

    topic_id: of the topic that the offset belongs to; "" when it is not known.
    """
    put_down = None if plan is None else asdict(plan)
    return json.dumps({"by": "parquet-sink", **asdict(instance), "plan": put_down, "topic_id": topic_id or None})


@dataclass(frozen=True)
class Committed:
    """One committed offset, and the metadata found beside it. epoch: of the leader, None where none was committed."""

    offset: int
    metadata: str
    epoch: int | None = None

    def committer(self) -> str:
        """Who made it, for an operator."""
        who = self._who()
        try:
            return f"instance {who['id']} (host {who['host']}, process {who['pid']}, started {who['started']})"
        except KeyError:
            return "an operator or another program"

    def is_from(self, instance: Instance) -> bool:
        """Whether this instance made it."""
        return self._who().get("id") == instance.id

    @property
    def plan(self) -> RangePlan | None:
        """The range that was being flushed when this offset was committed, if one was."""
        found = self._who().get("plan") or {}
        try:
            plan = RangePlan(int(found.get("start", self.offset)), int(found["end"]), str(found["reason"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        return plan if plan.start <= self.offset < plan.end else None

    @property
    def topic_id(self) -> str:
        """Of the topic that the offset belongs to; "" when nobody wrote it down."""
        found = self._who().get("topic_id")
        return found if isinstance(found, str) else ""

    def _who(self) -> dict[str, Any]:
        try:
            found = json.loads(self.metadata)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) and found.get("by") == "parquet-sink" else {}
