"""What a transform or predicate of a user's own gives back: whether it can be what became of the records."""

import numpy as np
import pyarrow as pa

from parquet_sink.convert.decoded import Piece, Trees
from parquet_sink.process.plugin_errors import WrongAnswer
from parquet_sink.transform.records import DecodedRecords


def is_ours(inner: object) -> bool:
    """Whether it is of this package, whose tests say what it gives."""
    return type(inner).__module__.startswith("parquet_sink.")


def checked(found: DecodedRecords, given: DecodedRecords) -> DecodedRecords:
    """The same. Raises WrongAnswer when a record would come from nowhere, come twice, or be lost without a word."""
    if found.batch is not given.batch:
        raise WrongAnswer("it gave another batch than it was given")
    positions = found.positions.to_numpy()
    if not np.isin(positions, given.positions.to_numpy()).all() or (np.diff(positions) <= 0).any():
        raise WrongAnswer("it gave records that it was not given, or not in their order")
    _check("values", found.values, positions, several=True)
    _check("keys", found.keys or (), positions, several=False)
    return found


def _check(what: str, pieces: tuple[Piece, ...], positions: np.ndarray, *, several: bool) -> None:
    """several: whether a record may have several rows, one after the other in one piece."""
    places = []
    for piece in pieces:
        count = len(piece.trees if isinstance(piece, Trees) else piece.rows)
        if count != len(piece.positions):
            raise WrongAnswer(f"a piece of its {what} has {count} records for {len(piece.positions)} positions")
        here = piece.positions.to_numpy()
        if (np.diff(here) < (0 if several else 1)).any():
            raise WrongAnswer(f"the positions of a piece of its {what} do not increase")
        places.append(np.unique(here))
    every = np.concatenate(places) if places else np.zeros(0, np.int64)
    if len(np.unique(every)) != len(every):
        raise WrongAnswer(f"it gave one record in two pieces of its {what}")
    if not np.isin(every, positions).all():
        raise WrongAnswer(f"its {what} have a record that is not among its positions")


def checked_choice(found: pa.BooleanArray, given: DecodedRecords) -> pa.BooleanArray:
    """The same. Raises WrongAnswer when it does not choose among these records."""
    if len(found) != len(given) or found.type != pa.bool_() or found.null_count:
        raise WrongAnswer(f"it must give {len(given)} booleans, one for each record and none null")
    return found
