"""Settings of converters that say how bytes become records."""

from typing import Final

from parquet_sink.config.checks import only
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.convert.converter_setting import (
    AVRO,
    CONVERT_SETTINGS,
    JSON,
    JSON_SCHEMA,
    PROTOBUF,
    Setting,
    setting_key,
)
from parquet_sink.convert.settings import ConverterKind

_NO_TEXT: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})


def _encoding(value: Value) -> str | None:
    """The names are Python's codecs for text; some of them (`idna`) read something else than a character set."""
    reason = "It is no character set known here; write UTF-8, ISO-8859-1, windows-1252, UTF-16 or the like."
    text = str(value)
    try:
        "a".encode(text)
    except (LookupError, ValueError):
        return reason
    return reason if text.lower().replace("_", "-") in _NO_TEXT else None


ENCODING: Final = Check("a character set that Python knows", _encoding)


def _flag(kinds: frozenset[ConverterKind], name: str, default: bool, fills: str, doc: str) -> Setting:
    return Setting(setting_key(name, Type.BOOLEAN, doc, default=default), kinds, fills)


def _never(kinds: frozenset[ConverterKind], name: str, doc: str, why: str) -> Setting:
    """A flag whose other value would change what is read, and is refused."""
    return Setting(setting_key(name, Type.BOOLEAN, doc, default=False, check=only(False, why)), kinds)


DECODING_SETTINGS: Final = (
    Setting(
        setting_key(
            "schemas.enable",
            Type.BOOLEAN,
            "Whether each JSON value is an envelope of schema and payload (`true`, Kafka Connect's default), or JSON "
            "alone. Anything but an envelope is invalid input under `true`; set `false` for plain JSON objects.",
            default=True,
        ),
        JSON,
    ),
    _flag(
        JSON,
        "replace.null.with.default",
        True,
        "replace_null_with_default",
        "Whether null in a field with a default is read as that default. JSON without a schema has no defaults.",
    ),
    Setting(
        setting_key(
            "converter.encoding",
            Type.STRING,
            "Character set of text. A value that is no text in it is invalid input. The name is written twice, as in "
            "`value.converter.converter.encoding`.",
            default="UTF-8",
            check=ENCODING,
        ),
        frozenset({"string"}),
        "encoding",
    ),
    _flag(
        AVRO,
        "enhanced.avro.schema.support",
        False,
        "enhanced_names",
        "Name the members of a union by their full names, with the namespace.",
    ),
    _flag(
        AVRO | JSON_SCHEMA,
        "generalized.sum.type.support",
        False,
        "generalized_sum_types",
        "Name the members of a union by their position, alike for all formats.",
    ),
    _flag(
        AVRO,
        "flatten.singleton.unions",
        True,
        "flatten_singleton_unions",
        "Read a union of one member as that member.",
    ),
    _flag(
        JSON_SCHEMA,
        "use.optional.for.nonrequired",
        False,
        "optional_for_nonrequired",
        "Read a property that is not required as optional.",
    ),
    _flag(
        PROTOBUF,
        "generate.index.for.unions",
        True,
        "index_for_unions",
        "Put a number behind the name of a `oneof`: `choice_0`.",
    ),
    _flag(
        PROTOBUF,
        "flatten.unions",
        False,
        "flatten_unions",
        "Read the members of a `oneof` as fields of the message itself.",
    ),
    _flag(PROTOBUF, "int.for.enums", False, "int_for_enums", "Read an enum as its number in place of its name."),
    _flag(
        PROTOBUF,
        "optional.for.nullables",
        False,
        "optional_for_nullables",
        "Read fields with the label `optional` as optional.",
    ),
    _flag(
        PROTOBUF,
        "optional.for.proto2",
        True,
        "optional_for_proto2",
        "Read fields of proto2 with the label `optional` as optional.",
    ),
    _flag(
        PROTOBUF,
        "wrapper.for.nullables",
        False,
        "wrapper_for_nullables",
        "Read fields of the wrapper messages (`google.protobuf.StringValue` and the like) as optional values.",
    ),
    _flag(
        PROTOBUF,
        "wrapper.for.raw.primitives",
        True,
        "wrapper_for_raw_primitives",
        "Read a wrapper message at the top as the value in it.",
    ),
    _never(
        PROTOBUF,
        "generate.struct.for.nulls",
        "Give an absent message a value whose fields have their defaults.",
        "an absent message is read as null",
    ),
    _never(
        JSON_SCHEMA,
        "json.fail.invalid.schema",
        "Check each value against all rules of its schema.",
        "values are read by their schema's types and not checked against its other rules",
    ),
    _never(
        JSON_SCHEMA,
        "preserve.additional.properties",
        "Keep properties that the schema does not name.",
        "properties that the schema does not name are left out",
    ),
    Setting(
        Key(
            "decimal.format",
            CONVERT_SETTINGS,
            Type.STRING,
            "Form in which decimals are written; both are read, whichever is set.",
            choices=("BASE64", "NUMERIC"),
            origin=Origin.CONNECT,
        ),
        JSON | JSON_SCHEMA,
    ),
)
