"""The beginning of an attempt at a range: the topic-partition is this attempt's, or the range comes again."""

import logging
from typing import Final

from parquet_sink.errors import ConnectorError
from parquet_sink.files.claims import PartitionClaim
from parquet_sink.model.ranges import Again
from parquet_sink.task.range_progress import RangeProgress

log = logging.getLogger(__name__)

CLAIM_WAIT_S: Final = 5.0


def claim(of: PartitionClaim, progress: RangeProgress, connector: str) -> bool:
    """Whether it is ours now. If not, `progress` says why: an earlier attempt holds it still, or the disk failed."""
    try:
        if of.acquire():
            return True
    except ConnectorError as error:
        progress.fail(error)
        return False
    progress.again = Again(progress.planned.tries, CLAIM_WAIT_S)
    log.warning(
        "connector %s: topic %s, topic-partition %d: an earlier attempt has not ended yet; trying again in %g s",
        connector,
        progress.planned.topic,
        progress.planned.partition,
        CLAIM_WAIT_S,
    )
    return False
