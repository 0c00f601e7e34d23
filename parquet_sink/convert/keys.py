"""Keys of converters with their settings, `value.converter.*` and so on, and their tables for the documentation."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from parquet_sink.config.checks import ABSENT
from parquet_sink.config.docs import TABLE_HEAD, row_of
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.convert import converters
from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.registry.converter import RegistryConverter
from parquet_sink.convert.settings import CONVERT_SETTINGS, SIDES, Converter

CONVERT: Final = "Converters"
PREFIXES: Final = tuple(f"{side}.converter." for side in SIDES)


@dataclass(frozen=True)
class Setting:
    """A setting of some converters, for values, keys and headers alike.

    key: with its own name; in a file `value.converter.` and so on stands before it. of: the converters that have it.
    unused: it is accepted, and for the reason that its text gives, nothing reads it.
    """

    key: Key
    of: tuple[type[Converter], ...]
    unused: bool

    @property
    def refused(self) -> bool:
        return self.key.check is not None and self.key.check.rule == ABSENT

    @property
    def reason(self) -> str:
        """Why a setting without a meaning has none."""
        if self.key.check is not None and self.refused:
            return self.key.check.test(None) or ""
        return self.key.no_effect or self.key.doc

    def under(self, prefix: str) -> Key:
        """The key as it stands in a file. Its check is made where the setting is used: see `convert.configuration`."""
        return replace(self.key, name=prefix + self.key.name, check=None)


def _settings() -> tuple[Setting, ...]:
    """Those of all converters, each once; those that nothing reads at the end."""
    keys = {key.name: key for one in CONVERTERS for key in one.keys}
    unused = {key.name for one in CONVERTERS for key in one.unused}
    found = [
        Setting(key, tuple(one for one in CONVERTERS if key in one.keys), name in unused) for name, key in keys.items()
    ]
    return tuple(sorted(found, key=lambda one: one.unused))


SETTINGS: Final = _settings()


def settings_under(prefix: str) -> tuple[Key, ...]:
    """The table as keys of a file, `value.converter.` and so on before each name; for headers what can concern them."""
    side = next(side for side in SIDES if prefix.startswith(side))
    return tuple(setting.under(prefix) for setting in SETTINGS if any(side in one.sides for one in setting.of))


def find_setting(name: str) -> Setting | None:
    """The setting of a name without its prefix: an exact one before the longest that ends in `.*`."""
    matching = [setting for setting in SETTINGS if setting.key.matches(name)]
    return max(matching, key=lambda one: (not one.key.is_prefix, len(one.key.name)), default=None)


def _known(value: Value) -> str | None:
    return converters.refusal(str(value))


_KNOWN = Check("the class of a known converter", _known)


def _converter(side: str, doc: str, default_text: str) -> Key:
    name = f"{side}.converter"
    connect = Origin.CONNECT
    return Key(name, CONVERT, Type.STRING, doc, default_text=default_text, check=_KNOWN, origin=connect)


CONVERTER_KEYS: Final = (
    _converter(
        "value",
        "How values of records are decoded. Must be set here or in the worker file. Named here, it takes no setting "
        "from the worker file, as in Kafka Connect; settings without it add to the worker's converter.",
        "the worker's",
    ),
    _converter(
        "key",
        "How keys of records are decoded, where a transform or predicate asks for a key; else they are not even read.",
        "the worker's, else keys are bytes",
    ),
    Key(
        "header.converter",
        CONVERT,
        Type.STRING,
        "How values of headers are decoded, where a transform asks for them: as in Kafka Connect by "
        "`SimpleHeaderConverter`, or as JSON, text, bytes or a number. In a file without transforms any is accepted.",
        default_text="the worker's, else SimpleHeaderConverter",
        origin=Origin.CONNECT,
    ),
    Key(
        "header.converter.*",
        CONVERT,
        Type.STRING,
        "Any other is accepted, with any settings, in a file without transforms.",
        origin=Origin.CONNECT,
    ),
    *(key for prefix in PREFIXES for key in settings_under(prefix)),
)
"""Converters of values, keys and headers, with their settings."""

_CONVERTERS: Final = """\
A short name may be written in any case. Any other name may be that of [a class of your own
](../how-to/own-converters.md).

| Converter | Short names | Records are |
|---|---|---|"""
_SETTINGS: Final = """\
They stand behind `value.converter.`, `key.converter.` or `header.converter.`, in a connector file or in the worker
file. A setting of another converter than the one in use is a warning. Meanings begin with the converters that
have the setting; those with a registry are Avro, Protobuf and JSON Schema, which decode no headers.
"""


def table_of_converters() -> str:
    """For the documentation: class names, short names, what is decoded."""
    rows = [f"| `{one.class_name}` | {_listed(one.short_names())} | {one.title} |" for one in CONVERTERS]
    return "\n".join([_CONVERTERS, *rows, ""])


def table_of_settings() -> str:
    """One for all files and for all sides; settings without a meaning are listed behind it, with the reason."""
    meant = [one for one in SETTINGS if not (one.unused or one.refused or one.key.no_effect)]
    parts = [f"## {CONVERT_SETTINGS}", "", _SETTINGS, *TABLE_HEAD]
    parts += [row_of(with_converters(one)) for one in meant]
    parts += ["", "Accepted, and nothing is changed by them:", "", *_by_reason(one for one in SETTINGS if one.unused)]
    parts += ["", "Without effect, which a warning says:", ""]
    parts += _by_reason(one for one in SETTINGS if one.key.no_effect)
    parts += ["", "Refused:", "", *_by_reason(one for one in SETTINGS if one.refused), ""]
    return "\n".join(parts)


def with_converters(setting: Setting) -> Key:
    """The key, its text beginning with its converters, without one that only adds settings to another."""
    labels = [one.label for one in setting.of if one.label and not {*one.__mro__[1:]} & {*setting.of}]
    whose = ", ".join(labels)
    if len(setting.of) == len(CONVERTERS):
        whose = "Every converter"
    elif setting.of == tuple(one for one in CONVERTERS if issubclass(one, RegistryConverter)):
        whose = "With a registry"
    doc = f"Refused. {setting.reason}" if setting.refused else setting.key.doc
    return replace(setting.key, doc=f"{whose}: {doc}")


def _by_reason(some: Iterable[Setting]) -> list[str]:
    names: dict[str, list[str]] = {}
    for one in some:
        names.setdefault(one.reason, []).append(one.key.name)
    return [f"- {_listed(of_reason)}: {reason}" for reason, of_reason in names.items()]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
