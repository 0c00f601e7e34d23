"""The decoder for each converter, made once in a process, so that schemas survive micro-batches."""

from typing import Final

from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.plain.settings import BYTES
from parquet_sink.convert.settings import Converter
from parquet_sink.process.per_process import PerProcess

_decoders: Final[PerProcess[Converter, Decoder]] = PerProcess(lambda settings: settings.open())


def decoder_for(settings: Converter) -> Decoder:
    """The process's decoder for these settings. Raises what opening them raises."""
    return _decoders.get(settings)


def key_decoder_for(settings: Converter | None) -> Decoder:
    """Likewise for keys; None: no key converter is set, and keys are bytes."""
    return decoder_for(settings or BYTES)
