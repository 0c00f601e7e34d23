"""Which parked records are meant: by topic, topic-partition, offset and stage; and those of a file, by their rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from parquet_sink.parked.files import ParkedFile


@dataclass(frozen=True)
class Selection:
    """None: whichever. offsets: the first and the last."""

    topic: str | None = None
    partition: int | None = None
    offsets: tuple[int, int] | None = None
    stage: str | None = None

    def may_have(self, file: ParkedFile) -> bool:
        """Whether records of the file may be among them."""
        if (self.topic or file.topic, file.partition if self.partition is None else self.partition) != (
            file.topic,
            file.partition,
        ):
            return False
        first, last = self.offsets or (file.first_offset, file.last_offset)
        return first <= file.last_offset and last >= file.first_offset

    def rows(self, table: pa.Table) -> np.ndarray:
        """The rows of a file's records that are among them, in order; offset and stage are looked at."""
        offsets = table.column("offset").to_numpy()
        chosen = np.ones(len(offsets), np.bool_)
        if self.offsets is not None:
            chosen &= (offsets >= self.offsets[0]) & (offsets <= self.offsets[1])
        if self.stage is not None:
            chosen &= np.array([stage == self.stage for stage in table.column("stage").to_pylist()], np.bool_)
        return np.flatnonzero(chosen)
