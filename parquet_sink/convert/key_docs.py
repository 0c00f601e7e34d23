"""The documentation of converters and their settings, written from their tables."""

from collections.abc import Iterable
from dataclasses import replace

from parquet_sink.config.docs import TABLE_HEAD, row_of
from parquet_sink.config.key import Key
from parquet_sink.convert.converter_setting import CONVERT_SETTINGS, REGISTRY, Setting
from parquet_sink.convert.converters import CONVERTERS, SIMPLE_HEADER
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.convert.settings import KIND_TEXTS

_CONVERTERS = """\
A short name may be written in any case. Any other name may be that of [a class of your own
](own-converters.md).

| Converter | Short names | Records are |
|---|---|---|"""
_DECODES = {
    **KIND_TEXTS,
    "json": "JSON; with `schemas.enable=true` in an envelope with its schema",
    "simple_header": "headers alone: text that is read as JSON-like as it can be",
}
_SETTINGS = """\
They stand behind `value.converter.`, `key.converter.` or `header.converter.`, in a connector file or in the worker
file. A setting of another converter than the one in use is told as a warning. Meanings begin with the converters that
have the setting; those with a registry are Avro, Protobuf and JSON Schema, which decode no headers.
"""
_NAMES = {
    "json": "JSON",
    "avro": "Avro",
    "protobuf": "Protobuf",
    "json_schema": "JSON Schema",
    "string": "text",
}


def converters() -> str:
    """The table of converters: class names, short names, what is decoded."""
    known = (*CONVERTERS, SIMPLE_HEADER)
    rows = [f"| `{one.class_name}` | {_listed(one.short_names)} | {_DECODES[one.kind]} |" for one in known]
    return "\n".join([_CONVERTERS, *rows, ""])


def settings() -> str:
    """One table for all files and for both sides; settings without a meaning are listed behind it, with the reason."""
    meant = [one for one in SETTINGS if not (one.unused or one.refused or one.key.no_effect)]
    parts = [f"## {CONVERT_SETTINGS}", "", _SETTINGS, *TABLE_HEAD]
    parts += [row_of(with_kinds(one)) for one in meant]
    parts += ["", "Accepted, and nothing is changed by them:", "", *_by_reason(one for one in SETTINGS if one.unused)]
    parts += [
        "",
        "Without effect, which a warning says:",
        "",
        *_by_reason(one for one in SETTINGS if one.key.no_effect),
    ]
    parts += ["", "Refused:", "", *_by_reason(one for one in SETTINGS if one.refused), ""]
    return "\n".join(parts)


def with_kinds(setting: Setting) -> Key:
    """The key with its converters told first."""
    names = [name for kind, name in _NAMES.items() if kind in setting.kinds]
    whose = "With a registry" if setting.kinds == REGISTRY else ", ".join(names)
    if len(names) == len(_NAMES):
        whose = "Every converter"
    doc = f"Refused. {setting.reason}" if setting.refused else setting.key.doc
    return replace(setting.key, doc=f"{'Apicurio' if setting.apicurio else whose}: {doc}")


def _by_reason(some: Iterable[Setting]) -> list[str]:
    names: dict[str, list[str]] = {}
    for one in some:
        names.setdefault(one.reason, []).append(one.key.name)
    return [f"- {_listed(of_reason)}: {reason}" for reason, of_reason in names.items()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
