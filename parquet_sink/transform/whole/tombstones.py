"""Which records of a batch have a null value, or a null key."""

from collections.abc import Iterable

import numpy as np

from parquet_sink.convert.decoded import Piece
from parquet_sink.transform.records import DecodedRecords


def tombstones(records: DecodedRecords, pieces: Iterable[Piece]) -> list[int]:
    """Positions of those that are in none of the pieces."""
    there = np.zeros(len(records.batch), np.bool_)
    for piece in pieces:
        there[piece.positions.to_numpy()] = True
    every = records.positions.to_numpy()
    found: list[int] = every[~there[every]].tolist()
    return found
