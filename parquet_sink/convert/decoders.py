"""The decoder for each converter, made once in a process, so that schemas survive micro-batches.

A format's module is loaded when its converter is first used: a worker loads only what it needs.
"""

import time
from collections.abc import Callable
from typing import Final

from parquet_sink.convert.decoded import Decoder
from parquet_sink.convert.registry.registered import RegisteredDecoder, RegisteredSchema, SchemaKind
from parquet_sink.convert.settings import ConverterKind, ConverterSettings
from parquet_sink.process.per_process import PerProcess

_KINDS: Final[dict[ConverterKind, SchemaKind]] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json_schema": "JSON"}


def decoder_for(settings: ConverterSettings) -> Decoder:
    """The process's decoder for these settings.

    Raises InvalidConfiguration when a registry's settings name files that cannot be read.
    """
    return _decoders.get(settings)


def key_decoder_for(settings: ConverterSettings | None) -> Decoder:
    """Likewise for keys; None: no key converter is set, and keys are bytes."""
    return decoder_for(settings or ConverterSettings("bytes"))


def _made(settings: ConverterSettings) -> Decoder:
    if (kind := _KINDS.get(settings.kind)) is not None:
        return _registered(settings, kind)
    if settings.kind == "json":
        from parquet_sink.convert.json import decoder as json

        return json.decoder()
    if settings.kind == "json_envelope":
        from parquet_sink.convert.envelope import decoder as envelope

        return envelope.decoder(settings)
    if settings.kind == "xml":
        from parquet_sink.convert import xml

        return xml.decoder()
    if settings.kind == "simple_header":
        from parquet_sink.convert.connect_values import decoder as connect_values

        return connect_values.decoder()
    from parquet_sink.convert import own, plain

    return plain.decoder(settings) if settings.own is None else own.decoder(settings.own)


_decoders: Final = PerProcess(_made)


def _registered(settings: ConverterSettings, kind: SchemaKind) -> Decoder:
    from parquet_sink.convert.registry.client import registry_for

    registry = settings.registry
    assert registry is not None, "configuration demands a registry for this converter"
    make = _maker(kind)
    return RegisteredDecoder(
        registry_for(registry),
        kind,
        lambda schema: make(schema, settings),
        registry.id_bytes,
        registry.cache_size,
        clock=time.monotonic,
    )


def _maker(kind: SchemaKind) -> Callable[[RegisteredSchema, ConverterSettings], Decoder]:
    """What makes a decoder of payloads for one schema of this kind."""
    if kind == "AVRO":
        from parquet_sink.convert.avro import decoder as avro_decoder

        return avro_decoder.decoder
    if kind == "PROTOBUF":
        from parquet_sink.convert.protobuf import decoder as protobuf_decoder

        return protobuf_decoder.decoder
    from parquet_sink.convert.json_schema import decoder as json_schema

    return json_schema.decoder
