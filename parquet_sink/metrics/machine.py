"""Memory of the worker's processes, and which version it is."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from parquet_sink import __version__
from parquet_sink.process.usage import memory_limit_bytes

STANDS_S: Final = 10.0
"""How long a measurement stands: it takes some milliseconds for each process, and Java's several."""


class Machine(Collector):
    """memory: bytes by kind of process. clock: seconds."""

    def __init__(self, memory: Callable[[], Mapping[str, int]], clock: Callable[[], float]) -> None:
        self._memory, self._clock = memory, clock
        self._measured: Mapping[str, int] = {}
        self._measured_s: float | None = None

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        info = GaugeMetricFamily("parquet_sink_info", "1; the label has the version.", labels=("version",))
        info.add_metric([__version__], 1)
        yield info
        now_s = self._clock()
        if self._measured_s is None or not 0 <= now_s - self._measured_s < STANDS_S:
            self._measured, self._measured_s = self._memory(), now_s
        memory = GaugeMetricFamily(
            "parquet_sink_memory_bytes",
            "Memory of the worker and all its processes on this machine; what n share counts 1/n for each.",
            labels=("process",),
        )
        for kind, size_bytes in sorted(self._measured.items()):
            memory.add_metric([kind], size_bytes)
        yield memory
        if (limit := memory_limit_bytes()) is not None:
            yield GaugeMetricFamily(
                "parquet_sink_memory_limit_bytes", "What the control group allows, or the machine has.", value=limit
            )
