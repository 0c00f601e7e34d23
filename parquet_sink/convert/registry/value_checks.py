"""The checks of single settings of a registry. None shows the value, since it may hold or stand for a secret."""

from typing import Final

from parquet_sink.config.key import Check, Value
from parquet_sink.config.secret import Secret

ID_BYTES: Final = {
    "Default4ByteIdHandler": 4,
    "Legacy4ByteIdHandler": 4,
    "DefaultIdHandler": 8,
    "Default8ByteIdHandler": 8,
    "Legacy8ByteIdHandler": 8,
}
"""How long a schema's id is with each of Apicurio's handlers."""
_ID_READERS = ("PrefixSchemaIdDeserializer", "DualSchemaIdDeserializer")


def simple_name(value: Value) -> str:
    """The last part of a Java class's name."""
    return str(value).rpartition(".")[2]


def _basic_source(value: Value) -> str | None:
    text = str(value).upper()
    if text in ("URL", "USER_INFO"):
        return None
    if text == "SASL_INHERIT":
        return (
            "It is SASL_INHERIT, but the registry's credential is never taken from Kafka's; set USER_INFO and "
            "basic.auth.user.info."
        )
    return "It is not one of URL, USER_INFO; write one of them."


def _bearer_source(value: Value) -> str | None:
    if str(value).upper() == "STATIC_TOKEN":
        return None
    return (
        "Only STATIC_TOKEN is possible, a token that is given; set it with bearer.auth.token, or sign in with "
        "basic.auth.user.info."
    )


def _user_info(value: Value) -> str | None:
    user, colon, _ = value.reveal().partition(":") if isinstance(value, Secret) else ("", "", "")
    return None if user and colon else "It must be a user and a password with a colon between; write user:password."


def _token(value: Value) -> str | None:
    text = value.reveal() if isinstance(value, Secret) else ""
    if text.isascii() and text.isprintable() and " " not in text:
        return None
    return "It holds characters that no token has; write printable ASCII without blanks and without the word Bearer."


def _pem(value: Value) -> str | None:
    if str(value).upper() == "PEM":
        return None
    return "Only PEM files are read, no Java key stores; convert it to PEM (keytool, openssl) and set PEM."


def _id_bytes(value: Value) -> str | None:
    return None if value in (4, 8) else "A schema's id has 4 or 8 bytes; write one of them."


def _id_handler(value: Value) -> str | None:
    if simple_name(value) in ID_BYTES:
        return None
    return f"It is no handler known here; write one of {', '.join(ID_BYTES)}, or set schema.id.bytes to 4 or 8."


def _id_reader(value: Value) -> str | None:
    if simple_name(value) in _ID_READERS:
        return None
    return "A schema's id is read from the record itself, never from headers; remove the key."


def _avro_encoding(value: Value) -> str | None:
    return None if str(value).upper() == "BINARY" else "Only Avro's binary form is read; set BINARY."


BASIC_SOURCE = Check("`URL`, `USER_INFO`", _basic_source)
BEARER_SOURCE = Check("`STATIC_TOKEN`", _bearer_source)
USER_INFO = Check("`user:password`", _user_info)
TOKEN = Check("printable ASCII", _token)
PEM = Check("`PEM`", _pem)
FOUR_OR_EIGHT = Check("4 or 8", _id_bytes)
ID_HANDLER = Check(", ".join(f"`{name}`" for name in ID_BYTES), _id_handler)
ID_READER = Check(", ".join(f"`{name}`" for name in _ID_READERS), _id_reader)
AVRO_ENCODING = Check("`BINARY`", _avro_encoding)
