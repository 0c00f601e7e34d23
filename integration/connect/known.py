"""Where our worker answers otherwise than Kafka Connect, and why."""

from typing import Final

from integration.connect.compare import Known

KNOWN: Final[tuple[Known, ...]] = ()
