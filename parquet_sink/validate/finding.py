"""What was found when something was tried: a line of `parquet-sink check --connect`."""

from dataclasses import dataclass

from parquet_sink.config.report import printable
from parquet_sink.targets.outcome import Health


@dataclass(frozen=True)
class Finding:
    """How one item stands. FAILED: `run` would fail as well."""

    health: Health
    item: str
    text: str

    def line(self) -> str:
        """As `check` prints it."""
        return f"  {self.health:<7} {self.item}: {printable(self.text)}"
