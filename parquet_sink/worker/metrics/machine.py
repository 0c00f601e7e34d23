"""What the worker's processes take of the machine, and which version it is."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from parquet_sink import __version__
from parquet_sink.process.usage import Usage, memory_limit_bytes

STANDS_S: Final = 10.0
"""How long a measurement stands at most."""
STANDS_COSTS: Final = 100
"""And this many times the CPU time that it took, which is some milliseconds, more with the memory that is in use."""


class Machine(Collector):
    """usage: by kind of process. clock: seconds. cpu: seconds of CPU time that this thread took."""

    def __init__(
        self,
        usage: Callable[[], Mapping[str, Usage]],
        clock: Callable[[], float],
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._usage, self._clock, self._cpu = usage, clock, cpu
        self._measured: Mapping[str, Usage] = {}
        self._measured_s, self._stands_s = 0.0, 0.0

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        info = GaugeMetricFamily("parquet_sink_info", "1; the label has the version.", labels=("version",))
        info.add_metric([__version__], 1)
        yield info
        now_s = self._clock()
        if not 0 <= now_s - self._measured_s < self._stands_s:
            began_s = self._cpu()
            self._measured, self._measured_s = self._usage(), now_s
            self._stands_s = min(STANDS_S, STANDS_COSTS * (self._cpu() - began_s))
        memory = GaugeMetricFamily(
            "parquet_sink_memory_bytes",
            "Memory of the worker and all its processes on this machine; what n share counts 1/n for each.",
            labels=("process",),
        )
        open_fds = GaugeMetricFamily(
            "parquet_sink_open_fds",
            "File descriptors that the worker and all its processes on this machine have open.",
            labels=("process",),
        )
        threads = GaugeMetricFamily(
            "parquet_sink_threads",
            "Threads of the worker and all its processes on this machine.",
            labels=("process",),
        )
        for kind, usage in sorted(self._measured.items()):
            memory.add_metric([kind], usage.memory_bytes)
            open_fds.add_metric([kind], usage.open_fds)
            threads.add_metric([kind], usage.threads)
        yield from (memory, open_fds, threads)
        if (limit := memory_limit_bytes()) is not None:
            yield GaugeMetricFamily(
                "parquet_sink_memory_limit_bytes", "What the control group allows, or the machine has.", value=limit
            )
