"""From checked values to the settings of the way from record to row. Pure."""

from typing import cast

from parquet_sink.config.key import ems
from parquet_sink.config.values import Values
from parquet_sink.shape.settings import ObfuscationMethod, ObfuscationSettings, ShapeSettings


def build_shape(values: Values) -> ShapeSettings:
    """Nothing is judged here: everything wrong was told before."""
    primary_keys = values.names(ems("data.primary.key"))
    chunks = values.number(ems("flattener.jsonblob.chunks"))
    return ShapeSettings(
        flatten=values.flag(ems("flattener.enable")),
        discard_collections=values.flag(ems("flattener.collections.discard")),
        embed_metadata=values.flag(ems("embed.kafka.metadata")),
        primary_keys=primary_keys,
        allow_null_primary_keys=values.flag(ems("allow.null.pk")),
        order_field=values.text(ems("order.field.name")) if primary_keys else None,
        decimals_to_double=values.flag(ems("convert.decimals.to.double")),
        lowercase=values.flag(ems("convert.lowercase.fields")),
        chunks=chunks,
        chunk_bytes=None if chunks is None else values.number(ems("data.fallback.varchar.length")),
        explode=values.text(ems("explode.mode")) == "List",
        obfuscation=_obfuscation(values),
    )


def _obfuscation(values: Values) -> ObfuscationSettings | None:
    """Salt and key only where the method uses them; a fixed salt wins over random ones, as in the EMS connector."""
    fields = values.names(ems("obfuscation.fields"))
    if not fields:
        return None
    method = cast(ObfuscationMethod, values.text(ems("obfuscation.method")))
    salt = values.secret(ems("obfuscation.sha512.salt")) if method == "sha512" else None
    random_salt = method == "sha512" and salt is None and values.flag(ems("obfuscation.sha512.randomsalt"))
    key = values.secret(ems("obfuscation.hmac.key")) if method == "hmac-sha256" else None
    return ObfuscationSettings(fields=fields, method=method, salt=salt, random_salt=random_salt, key=key)
