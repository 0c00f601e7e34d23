"""What one line of the table of converters' settings says: `Setting`."""

from dataclasses import dataclass, replace
from typing import Final, get_args

from parquet_sink.config.checks import ABSENT, refused
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.convert.converters import Converter
from parquet_sink.convert.settings import ConverterKind

CONVERT_SETTINGS: Final = "Settings of converters"

ANY: Final[frozenset[ConverterKind]] = frozenset(get_args(ConverterKind)) - {"own"}
JSON: Final[frozenset[ConverterKind]] = frozenset({"json", "json_envelope"})
REGISTRY: Final[frozenset[ConverterKind]] = frozenset({"avro", "protobuf", "json_schema"})
AVRO: Final[frozenset[ConverterKind]] = frozenset({"avro"})
PROTOBUF: Final[frozenset[ConverterKind]] = frozenset({"protobuf"})
JSON_SCHEMA: Final[frozenset[ConverterKind]] = frozenset({"json_schema"})

TLS: Final = "schema.registry.ssl."
NO_OAUTH: Final = (
    "No token is fetched from an authorization server; give one in bearer.auth.token, or sign in with "
    "basic.auth.user.info."
)
NO_HEADERS: Final = (
    "No header of one's own is sent to the registry; sign in with basic.auth.user.info or bearer.auth.token."
)


@dataclass(frozen=True)
class Setting:
    """One setting, for values and for keys of records alike.

    key: with the setting's own name; in a file `value.converter.` or `key.converter.` stands before it. kinds: the
    converters that it concerns. fills: the field of `ConverterSettings` that has its value. apicurio: it concerns
    Apicurio's converters alone. unused: it is accepted, and for the reason that its key's text gives, nothing reads it.
    """

    key: Key
    kinds: frozenset[ConverterKind]
    fills: str = ""
    apicurio: bool = False
    unused: bool = False

    @property
    def refused(self) -> bool:
        return self.key.check is not None and self.key.check.rule == ABSENT

    @property
    def reason(self) -> str:
        """Why a setting without a meaning has none."""
        if self.key.check is not None and self.refused:
            return self.key.check.test(None) or ""
        return self.key.no_effect or self.key.doc

    def concerns(self, converter: Converter) -> bool:
        """Whether it has a meaning for a converter. JsonConverter has the settings of both of its kinds."""
        return converter.kind in self.kinds and (converter.apicurio or not self.apicurio)

    def under(self, prefix: str) -> Key:
        """The key as it stands in a file. Its check is made where the setting is used: see `convert.configuration`."""
        return replace(self.key, name=prefix + self.key.name, check=None)


def setting_key(
    name: str,
    type_: Type,
    doc: str,
    *,
    default: Value = None,
    default_text: str = "",
    check: Check | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
    no_effect: str = "",
    origin: Origin = Origin.CONNECT,
) -> Key:
    """The key of a setting, of Kafka Connect's world unless told otherwise."""
    return Key(
        name,
        CONVERT_SETTINGS,
        type_,
        doc,
        default=default,
        default_text=default_text,
        check=check,
        minimum=minimum,
        maximum=maximum,
        no_effect=no_effect,
        origin=origin,
    )


def refused_key(name: str, type_: Type, reason: str) -> Key:
    """The key of a setting that would change what we do, and cannot be honoured. reason: with the cure."""
    return setting_key(name, type_, "Refused.", check=refused(reason))
