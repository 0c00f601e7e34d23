"""How many records of a range were set aside, and which: counted once it is known how far the range got."""

from array import array
from bisect import bisect_left

from parquet_sink.kafka.dead_letter_headers import stage_name
from parquet_sink.model.rejected import Rejected, SetAsideCount


class SetAsideTally:
    """Of one range. Records come in any order. place: where they are kept, in words. dead_letters: if in a topic."""

    def __init__(self, place: str = "", *, dead_letters: bool = False) -> None:
        self._place, self._dead_letters = place, dead_letters
        self._offsets: dict[str, array[int]] = {}
        self._first: Rejected | None = None

    def add(self, rejected: Rejected) -> None:
        """A record that the policy took."""
        self._offsets.setdefault(stage_name(rejected.stage), array("q")).append(rejected.offset)
        if self._first is None or rejected.offset < self._first.offset:
            self._first = rejected

    def below(self, offset: int) -> SetAsideCount | None:
        """Those below an offset; None when there are none."""
        if self._first is None or self._first.offset >= offset:
            return None
        stages: dict[str, int] = {}
        last = self._first.offset
        for stage, found in self._offsets.items():
            ordered = sorted(found)
            if count := bisect_left(ordered, offset):
                stages[stage], last = count, max(last, ordered[count - 1])
        first = self._first
        return SetAsideCount(
            count=sum(stages.values()),
            first=first.offset,
            last=last,
            stages=stages,
            reason=first.reason,
            place=self._place,
            dead_letters=self._dead_letters,
        )
