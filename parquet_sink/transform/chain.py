"""The transforms of one connector, one after the other, from decoded values to transformed ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoded import Decoder, LearningDecoder, OwnDecoder, Piece, Reading, SchemaColumns
from parquet_sink.convert.invalid import of_key
from parquet_sink.convert.wrong_values import MAY_HOLD, first_wrong
from parquet_sink.errors import ConnectorError, TransformFailed
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts
from parquet_sink.model.rejected import Stage
from parquet_sink.transform import headers as record_headers
from parquet_sink.transform.protocol import Predicate, Transform
from parquet_sink.transform.records import DecodedRecords, Reason, as_trees, merged

_UNREADABLE = "a header's name is not UTF-8, and a transform asks for the headers"

DECODED: Final = "decoded"
"""What is done first."""


@dataclass(frozen=True)
class Step:
    """A transform, and which records it is for: all, those of a predicate, or (negate) all others.

    name: for users. class_name: of the transform, as Kafka Connect tells it for the predicate, too.
    """

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False
    name: str = ""
    class_name: str = ""

    @property
    def needs(self) -> RecordParts:
        """What of a record is looked at."""
        return self.transform.needs | (VALUES_ONLY if self.predicate is None else self.predicate.needs)

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        """All records, those that are chosen transformed."""
        if self.predicate is None:
            return self.transform.apply(records)
        found = self.predicate.test(records)
        positions = records.positions.filter(pc.invert(found) if self.negate else found)
        if not len(positions):
            return records
        if len(positions) == len(records):
            return self.transform.apply(records)
        chosen = np.zeros(len(records.batch), np.bool_)
        chosen[positions.to_numpy()] = True
        return merged(self.transform.apply(records.where(chosen)), records.where(~chosen), chosen)


class TransformChain:
    """Steps in the order of the configuration.

    key_decoder, header_decoder: of these converters; used where keys, or values of headers, are asked for. also: what
    is asked for by who takes the records in the end.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        key_decoder: Decoder | None = None,
        header_decoder: Decoder | None = None,
        also: RecordParts = VALUES_ONLY,
    ) -> None:
        self._steps = tuple(steps)
        self._key_decoder = None if key_decoder is None else of_trees(key_decoder)
        self._header_decoder = SIMPLE_HEADER.open() if header_decoder is None else of_trees(header_decoder)
        self.needs = also
        for step in self._steps:
            self.needs |= step.needs

    def apply(self, batch: RecordBatch, decoder: Decoder) -> DecodedRecords:
        """The records of a batch decoded and transformed; tombstones are among them until a transform drops them.

        As in Connect a record that fails is rejected where it fails first: key, value, headers, then transforms. Raises
        ConnectorError when no record is to blame.
        """
        return self.transformed(self._decoded(batch, decoder))

    def transformed(self, decoded: DecodedRecords) -> DecodedRecords:
        """Records that are decoded already, with all that is needed of them; as `apply`."""
        by: dict[int, str] = {}
        known: Mapping[int, Reason] = {}
        for step, records in self._stepped(decoded):
            if step is not None and len(records.rejected) > len(known):
                by |= dict.fromkeys(records.rejected.keys() - known.keys(), step.class_name)
            known = records.rejected
        return replace(records, rejected_by=by) if by else records

    def each(self, batch: RecordBatch, decoder: Decoder) -> Iterator[tuple[str, DecodedRecords]]:
        """The records decoded, then after each step until none is left, with the name of what was done. As `apply`."""
        for step, records in self._stepped(self._decoded(batch, decoder)):
            yield DECODED if step is None else step.name, records

    def fault(self, batch: RecordBatch, decoder: Decoder) -> ConnectorError | None:
        """The error of the first class that left in a record what none may hold; None for no such class.

        It decodes and transforms once more, and looks at every value: for a batch that failed to become rows.
        """
        for step, records in self._stepped(self._decoded(batch, decoder)):
            for pieces, whole in ((records.values, "value"), (records.keys or (), "key")):
                if (found := _first_wrong(pieces, whole)) is not None:
                    at, what = batch.offsets[found[0]].as_py(), f"left {found[1]}; {MAY_HOLD}"
                    return _fault(batch, at, what, step or (decoder if whole == "value" else self._key_decoder))
        return None

    def _stepped(self, records: DecodedRecords) -> Iterator[tuple[Step | None, DecodedRecords]]:
        yield None, records
        for step in self._steps:
            if not len(records):
                break
            records = step.apply(records)
            yield step, records

    def _decoded(self, batch: RecordBatch, decoder: Decoder) -> DecodedRecords:
        keys: tuple[Piece, ...] | None = None
        bad_keys: Mapping[int, str] = {}
        if self.needs.keys and self._key_decoder is not None and batch.keys is not None:
            keys, bad_keys = decode_given(self._key_decoder, batch.keys)
        values, bad_values = decode_given(decoder, batch.values)
        records = DecodedRecords(batch, pa.array(np.arange(len(batch))), values, keys)
        records = records.reject({at: of_key(why) for at, why in bad_keys.items()}, Stage.KEY_CONVERTER)
        records = records.reject(
            {at: why for at, why in bad_values.items() if at not in bad_keys}, Stage.VALUE_CONVERTER
        )
        return self._with_headers(records) if self.needs.headers else records

    def _with_headers(self, records: DecodedRecords) -> DecodedRecords:
        raw = records.batch.headers
        if raw is None:
            return records
        bad: dict[int, str] = {}
        if raw.null_count:
            bad = dict.fromkeys(pc.indices_nonzero(raw.is_null()).to_pylist(), _UNREADABLE)
            raw = pc.fill_null(raw, pa.scalar([], raw.type))
        headers, undecoded = record_headers.decoded(raw, self._header_decoder, self.needs.header_values)
        new = {at: why for at, why in {**bad, **undecoded}.items() if at not in records.rejected}
        return replace(records, headers=headers).reject(new, Stage.HEADER_CONVERTER)


def _first_wrong(pieces: tuple[Piece, ...], whole: str) -> tuple[int, str] | None:
    """The position of the first such record of a piece, and what it has where."""
    for piece in pieces:
        if not isinstance(piece, SchemaColumns):
            for position, tree in zip(piece.positions.to_pylist(), as_trees(piece).trees, strict=True):
                if (what := first_wrong(tree, whole)) is not None:
                    return position, what
    return None


def _fault(batch: RecordBatch, offset: int, what: str, by: "Step | Decoder | None") -> ConnectorError | None:
    """by: who did it; a decoder of ours is not blamed."""
    key = (batch.topic, batch.partition)
    where = f"topic {batch.topic}, topic-partition {batch.partition}, offset {offset}"
    if isinstance(by, Step):
        return TransformFailed(
            f"{where}: {by.name} {what}. No record is blamed, and nothing from there on is committed. Correct its "
            "code, then start again."
        ).at(key)
    return by.failed(where, what).at(key) if isinstance(by, OwnDecoder) else None


def of_trees(decoder: Decoder) -> Decoder:
    """The decoder, told to give any value without a schema as a tree."""
    if isinstance(decoder, LearningDecoder):
        return decoder.for_topic(Reading(as_trees=True, any_tree=True), None)
    return decoder


def decode_given(decoder: Decoder, data: pa.BinaryArray) -> tuple[tuple[Piece, ...], Mapping[int, str]]:
    """What became of bytes, by their positions; those that are null are in no piece."""
    if not data.null_count:
        decoded = decoder.decode(data)
        return decoded.pieces, decoded.invalid
    places = pc.indices_nonzero(data.is_valid()).cast(pa.int64())
    decoded = decoder.decode(data.drop_null())
    pieces = tuple(replace(piece, positions=places.take(piece.positions)) for piece in decoded.pieces)
    return pieces, {places[at].as_py(): why for at, why in decoded.invalid.items()}
