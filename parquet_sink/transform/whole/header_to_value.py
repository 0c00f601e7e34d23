"""Headers as fields of the value."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.values import Values
from parquet_sink.convert.decoded import Piece
from parquet_sink.model.records import RecordParts
from parquet_sink.transform.headers import Headers
from parquet_sink.transform.keys import connect_key
from parquet_sink.transform.protocol import Side, WrongSettings
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.transform.whole.additions import Additions, Existing, Pool, Renaming, existing_key, prefix_key


class HeaderToValue:
    """Writes headers into the value, as the header converter decodes them; of a repeated name the last one counts."""

    keys: ClassVar[tuple[Key, ...]] = (
        connect_key(
            "headers",
            Type.LIST,
            "The headers to take, each as `name`, or as `name:field` where the field has another name. A record "
            "without such a header has null there.",
            default=(),
            default_text="all that a record has",
            origin=Origin.OWN,
        ),
        prefix_key("header"),
        existing_key("the header"),
    )

    def __init__(self, values: Values, side: Side) -> None:
        if side == "key":
            raise WrongSettings({"type": "HeaderToValue works on values alone; leave $Key away."})
        self._names = Renaming.of(values.names("headers"), values.text("prefix") or "")
        self._existing = cast("Existing", values.text("existing"))
        chosen = self._names.chosen
        self.needs = RecordParts(headers=True, header_values=None if chosen is None else frozenset(chosen))

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """As `transform.protocol.Transform` says; tombstones stay."""
        if records.headers is None:
            return records
        work = Additions("HeaderToValue", self._existing)
        pool = Pool(records.headers.pool)
        chosen = self._names.chosen
        last = {new: records.headers.last(name) for name, new in (chosen or {}).items()}
        pieces: list[Piece] = []
        for piece in records.values:
            at = piece.positions.to_numpy()
            if chosen is None:
                groups = pool.groups_by_row(self._all(records.headers, at))
            else:
                groups = pool.groups({new: found[at] for new, found in last.items()})
            pieces += work.to(piece, list(groups))
        return replace(records, values=tuple(pieces)).reject(work.rejected)

    def _all(self, headers: Headers, positions: np.ndarray) -> Iterator[dict[str, int]]:
        """For each of these records, by the field's name, where the value of the last header is."""
        for places in headers.places(positions):
            yield {self._names.new(name): at for name, at in places.items()}
