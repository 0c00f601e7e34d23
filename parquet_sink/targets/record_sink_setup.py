"""What a record sink is set up with, as far as every process knows it: planners have settings, and no sinks."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from parquet_sink.targets.outcome import ProbeResult

if TYPE_CHECKING:  # these load Arrow
    from parquet_sink.model.records import RecordParts
    from parquet_sink.targets.record_sink import RecordSink


class RecordSinkSetup(Protocol):
    """What a record sink is set up with: a frozen dataclass, handed to Spark's processes by value.

    address: where records go, in words, without secrets. needs: what of a record it looks at beside its value.
    """

    @property
    def address(self) -> str: ...
    @property
    def needs(self) -> "RecordParts": ...

    def problems(self) -> Sequence[str]:
        """What is wrong as far as it can be told without writing, each as `Invalid [key]. reason; cure`."""
        ...

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether records would be taken, within so many seconds. Stores nothing. Raises nothing on purpose."""
        ...

    def open(self) -> "RecordSink":
        """A sink of its own for the caller, who closes it. Raises as `RecordSink.put`."""
        ...
