"""How Spark's slots are shared by a worker's connectors: locally they are fixed, on a cluster executors come and go."""

import logging
from collections.abc import Callable
from typing import Final

from parquet_sink.spark.slots import most_beside_others, share

log = logging.getLogger(__name__)

LOOK_S: Final = 2.0
PATIENCE_S: Final = 60.0
"""How long a cluster may have too few slots before that is told: executors take a while to come."""
_LOCAL: Final = "start the worker again, which gives each its own, or with more (--master local[N,4])"
_CLUSTER: Final = "give Spark more of the cluster (--conf spark.cores.max=N, spark.executor.instances=N, more machines)"


class SlotShares:
    """cores: of the machine that bound what one connector may take beside others, None for any number of slots.

    tells: whether too few are warned about.
    """

    def __init__(self, *, local: bool, cores: int | None, tells: bool) -> None:
        self._local, self._cores, self._tells = local, cores, tells
        self._seen: tuple[int, int] | None = None
        self._look_at_s, self._short_since_s, self._told = 0.0, 0.0, False
        self.each = 1
        """Slots that each connector may take at once."""

    def changed(self, connectors: int, count: Callable[[], int], now_s: float) -> bool:
        """Whether `each` is new. count: asks Spark; when connectors come or go, and on a cluster every LOOK_S."""
        same = self._seen is not None and self._seen[0] == connectors
        if same and (self._local or now_s < self._look_at_s):
            return False
        self._look_at_s = now_s + LOOK_S
        seen = connectors, count()
        if seen != self._seen:
            self._short_since_s, self._told = now_s, False
        self._seen, before = seen, self.each
        self._tell(*seen, now_s - self._short_since_s)
        most = None if self._cores is None else most_beside_others(connectors, self._cores)
        self.each = share(seen[1], connectors, most)
        return not same or self.each != before

    def _tell(self, connectors: int, slots: int, short_s: float) -> None:
        """Once for each shortage."""
        if self._told or not self._tells or connectors <= slots or (not self._local and short_s < PATIENCE_S):
            return
        self._told = True
        cure = _LOCAL if self._local else _CLUSTER
        log.warning("%d connectors share %d slots of Spark, so that some wait for others; %s", connectors, slots, cure)
