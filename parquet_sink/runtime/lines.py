"""One log line for each file, and for each connector that begins or ends: the view when there is no terminal."""

import logging
from collections.abc import Sequence
from typing import Final

from parquet_sink.model.receipts import Receipt
from parquet_sink.runtime.connector import Connector, Status
from parquet_sink.runtime.shown import shown

log = logging.getLogger(__name__)


WORDS: Final = {Status.STARTING: "starting; it waits for Java and Spark, which take 10 to 15 s to load"}
"""Of a status that says too little by itself."""


class LogLines:
    """An `Observer` that logs what is new since its last look."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._status: dict[str, Status] = {}

    def look(self, connectors: Sequence[Connector]) -> None:
        for connector in connectors:
            self._receipts(connector)
            status = shown(connector)
            if self._status.get(connector.settings.name) is not status:
                self._status[connector.settings.name] = status
                log.info("connector %s: %s", connector.settings.name, WORDS.get(status, status))

    def close(self, connectors: Sequence[Connector]) -> None:
        self.look(connectors)

    def pass_over(self, connectors: Sequence[Connector]) -> None:
        """Takes what there is as told already: another view did."""
        for connector in connectors:
            self._status[connector.settings.name] = shown(connector)
            if connector.state is not None:
                for number, _ in connector.state.receipts_after(0):
                    self._seen[connector.settings.name] = number

    def _receipts(self, connector: Connector) -> None:
        if connector.state is None:
            return
        name = connector.settings.name
        for number, receipt in connector.state.receipts_after(self._seen.get(name, 0)):
            self._seen[name] = number
            if receipt.accepted:
                log.info("%s", describe(receipt))


def describe(receipt: Receipt) -> str:
    """One accepted file in one line."""
    upload = receipt.seconds.get("upload", 0.0)
    again = f", {receipt.attempts} attempts" if receipt.attempts > 1 else ""
    return (
        f"connector {receipt.connector}: accepted {receipt.file_name} "
        f"({receipt.rows} rows, {receipt.size_bytes} bytes, rotated by {receipt.reason}, "
        f"upload {upload:.2f} s{again})"
    )
