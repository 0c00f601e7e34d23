"""Blocks of records to rows: the one door to this package.

Plain JSON is read by `json_shaper`, many records at once; everything else is decoded by a converter first, and shaped
by `decoded_shaper`. For equal records both give equal rows.
"""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.json.trees import JsonTrees
from parquet_sink.model.records import RecordBatch
from parquet_sink.shape.decoded_shaper import DecodedShaper
from parquet_sink.shape.json_shaper import JsonShaper
from parquet_sink.shape.obfuscation.field_obfuscator import FieldObfuscator
from parquet_sink.shape.run import Run
from parquet_sink.shape.settings import ShapeSettings

__all__ = ["Run", "Shaper"]


class _Shaping(Protocol):
    @property
    def known(self) -> pa.Schema | None: ...
    def shape(self, block: RecordBatch) -> Iterator[Run]: ...


class Shaper:
    """One per topic and Spark task; owns the topic's evolving columns."""

    def __init__(self, settings: ShapeSettings, known: pa.Schema | None = None, decoder: Decoder | None = None) -> None:
        """known: the payload columns learned so far (another shaper's `known`, also after `serialize`).

        decoder: of the connector's converter; None for JSON without a schema.
        """
        self._settings = settings
        self._inner: _Shaping
        if decoder is None and not _needs_trees(settings):
            self._inner = JsonShaper(settings, known)
        else:
            anything = settings.chunks is not None
            self._inner = DecodedShaper(settings, decoder or JsonTrees(anything=anything), known)

    @property
    def known(self) -> pa.Schema | None:
        """The payload columns learned so far, None before the first."""
        return self._inner.known

    def shape(self, block: RecordBatch) -> Iterator[Run]:
        """The rows of the block in offset order; tombstones give none.

        Raises InvalidRecord at the first record that has no row, after giving all rows before it; that record leaves
        no trace in the columns. Raises another ConnectorError when no record is to blame (the registry is away).
        """
        return self._inner.shape(block)

    def unmatched(self) -> tuple[str, ...]:
        """Paths of `obfuscation.fields` that match none of the columns learned so far."""
        obfuscation = self._settings.obfuscation
        if obfuscation is None or self._settings.chunks is not None or (known := self.known) is None:
            return ()
        return FieldObfuscator(obfuscation, self._settings.flatten).unmatched(
            tuple(known), exploded=self._settings.explode
        )


def _needs_trees(settings: ShapeSettings) -> bool:
    """Whether JSON without a schema must be looked at record by record."""
    return settings.chunks is not None or settings.explode
