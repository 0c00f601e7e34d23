"""Compiles a registered Protobuf schema to descriptors, by protoc: a subprocess and a private folder.

Schemas are untrusted: names of files cannot leave the folder, protoc sees nothing but the folder and its own files of
google/protobuf, and its time is bounded. Each schema has a descriptor pool of its own, so equal names in different
schemas do not meet.

Measured: about 60 ms of CPU time for a schema, nearly all of it the start of protoc.
"""

import base64
import binascii
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError

from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.errors import StorageFailed

_HEAD = 'syntax = "proto3"; package {package}; '

_CONFLUENT_META = """import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4; }
message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""

_CONFLUENT_TYPES = {
    "decimal": "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }",
    "variant": "message Variant { bytes metadata = 1; bytes value = 2; }",
}

_GOOGLE_TYPES = {
    "calendar_period": """enum CalendarPeriod { CALENDAR_PERIOD_UNSPECIFIED = 0; DAY = 1; WEEK = 2; FORTNIGHT = 3;
        MONTH = 4; QUARTER = 5; HALF = 6; YEAR = 7; }""",
    "color": """import "google/protobuf/wrappers.proto";
        message Color { float red = 1; float green = 2; float blue = 3; google.protobuf.FloatValue alpha = 4; }""",
    "date": "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "datetime": """import "google/protobuf/duration.proto";
        message DateTime { int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4; int32 minutes = 5;
            int32 seconds = 6; int32 nanos = 7;
            oneof time_offset { google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; } }
        message TimeZone { string id = 1; string version = 2; }""",
    "dayofweek": """enum DayOfWeek { DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3;
        THURSDAY = 4; FRIDAY = 5; SATURDAY = 6; SUNDAY = 7; }""",
    "decimal": "message Decimal { string value = 1; }",
    "expr": "message Expr { string expression = 1; string title = 2; string description = 3; string location = 4; }",
    "fraction": "message Fraction { int64 numerator = 1; int64 denominator = 2; }",
    "interval": """import "google/protobuf/timestamp.proto";
        message Interval { google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2; }""",
    "latlng": "message LatLng { double latitude = 1; double longitude = 2; }",
    "localized_text": "message LocalizedText { string text = 1; string language_code = 2; }",
    "money": "message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }",
    "month": """enum Month { MONTH_UNSPECIFIED = 0; JANUARY = 1; FEBRUARY = 2; MARCH = 3; APRIL = 4; MAY = 5; JUNE = 6;
        JULY = 7; AUGUST = 8; SEPTEMBER = 9; OCTOBER = 10; NOVEMBER = 11; DECEMBER = 12; }""",
    "phone_number": """message PhoneNumber { message ShortCode { string region_code = 1; string number = 2; }
        oneof kind { string e164_number = 1; ShortCode short_code = 2; } string extension = 3; }""",
    "postal_address": """message PostalAddress { int32 revision = 1; string region_code = 2; string language_code = 3;
        string postal_code = 4; string sorting_code = 5; string administrative_area = 6; string locality = 7;
        string sublocality = 8; repeated string address_lines = 9; repeated string recipients = 10;
        string organization = 11; }""",
    "quaternion": "message Quaternion { double x = 1; double y = 2; double z = 3; double w = 4; }",
    "timeofday": "message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }",
}


def _texts() -> dict[str, str]:
    texts = {"confluent/meta.proto": _HEAD.format(package="confluent") + _CONFLUENT_META}
    for package, files in (("confluent.type", _CONFLUENT_TYPES), ("google.type", _GOOGLE_TYPES)):
        folder = package.replace(".", "/")
        texts |= {f"{folder}/{name}.proto": _HEAD.format(package=package) + text for name, text in files.items()}
    return texts


KNOWN = _texts()
"""Import paths to the text of files that need not be registered, because Confluent's ProtobufSchema knows them.

Confluent's own types and Google's common types: messages, names and numbers are the published ones; options that only
concern generated code are left out. Files of google/protobuf are not here: protoc has them.
"""


COMPILE_SECONDS = 30
_MAX_NAME = 500
_MAX_PART = 200
_SHOWN = 300
_SOURCES = "sources"
_BUILT_IN = "google/protobuf/"
_ASIDE = re.compile(r"warning:|^[IWE]\d{4} ", re.IGNORECASE)
_META = re.compile(r"\(\s*\.?confluent\.\w+_meta\s*\)")
_META_IMPORT = re.compile(r"""\bimport\s+(?:\w+\s+)?["']confluent/meta\.proto["']""")
_MAP_ENTRY = re.compile(r"\boption\s+map_entry\s*=\s*true\s*;")


@dataclass(frozen=True)
class Compiled:
    """A schema's descriptors.

    pool: everything, its own. file: the schema's own file. serialized: it was registered as a FileDescriptorProto,
    where the entries of maps count as messages. editions: names of the files with an edition, not proto2 or proto3.
    """

    pool: Any
    file: Any
    serialized: bool
    editions: frozenset[str]


def compile_schema(schema: RegisteredSchema) -> Compiled:
    """Descriptors of `schema` and of all that it imports.

    Raises InvalidValue for a text that does not compile (with protoc's first message), StorageFailed when the folder
    for temporary files cannot be used.
    """
    own = _own_name(reference.name for reference in schema.references)
    texts = KNOWN | {reference.name: reference.text for reference in schema.references}
    file = _serialized_file(schema.text)
    text = schema.text if file is None else "".join(f'import "{_checked(name)}";\n' for name in file.dependency)
    files = _run(own, texts | {own: text})
    if file is not None:
        file.name = own
        files = [*(other for other in files if other.name != own), file]
    pool = _pool(files)
    editions = frozenset(other.name for other in files if other.syntax == "editions")
    return Compiled(pool, pool.FindFileByName(own), file is not None, editions)


def _own_name(taken: Iterable[str]) -> str:
    names = frozenset(taken)
    name = "registered.proto"
    while name in names:
        name = f"_{name}"
    return name


def _serialized_file(text: str) -> Any:
    """The FileDescriptorProto that `text` is in base64, as ProtobufSchema takes it; None for any other text."""
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    return file if file.message_type or file.dependency else None


def _run(own: str, texts: Mapping[str, str]) -> list[Any]:
    """FileDescriptorProto of `own` and of all that it imports, imported ones first."""
    try:
        with tempfile.TemporaryDirectory(prefix="parquet-sink-protoc-") as folder:
            _write(os.path.join(folder, _SOURCES), texts)
            return _protoc(folder, own)
    except OSError as error:
        raise StorageFailed(f"cannot compile a Protobuf schema in a temporary folder: {error.strerror}") from None


def _write(folder: str, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        if name.startswith(_BUILT_IN):
            continue
        path = os.path.join(folder, _checked(name))
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as file:
                file.write(_prepared(text).encode())
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise InvalidValue("the Protobuf schema has references whose names exclude each other") from None
        except UnicodeEncodeError:
            raise InvalidValue("the Protobuf schema is not valid Unicode text") from None


def _checked(name: str | bytes) -> str:
    """An import path that stays inside the folder. Raises InvalidValue.

    name: bytes where a descriptor has one that is not UTF-8.
    """
    text = name if isinstance(name, str) else "\\"
    parts = text.split("/")
    plain = text.isprintable() and text.isascii() and not {'"', "\\", ":"} & set(text) and len(text) <= _MAX_NAME
    if not plain or any(part in {"", ".", ".."} or len(part) > _MAX_PART for part in parts):
        raise InvalidValue("the Protobuf schema imports a file whose name is not a plain relative path")
    return text


def _prepared(text: str) -> str:
    """The text as protoc takes it.

    Confluent's serializers register the entries of a map as messages with `option map_entry`, which protoc takes from
    nobody. Without the option the message is the same on the wire, and is known as a map by its name. And its registry
    adds tags to fields without importing the option that they are.
    """
    if _META.search(text) and not _META_IMPORT.search(text):
        text += '\nimport "confluent/meta.proto";\n'
    return _MAP_ENTRY.sub("", text) if "map_entry" in text else text


def _protoc(folder: str, own: str) -> list[Any]:
    """Run protoc. `-P` and a folder without sources: no file of the schema can be taken for a Python module."""
    command = [sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{_SOURCES}", "--include_imports"]
    command += ["--descriptor_set_out=compiled", os.path.join(_SOURCES, own)]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InvalidValue(f"the Protobuf schema takes longer than {COMPILE_SECONDS} s to compile") from None
    if done.returncode:
        raise InvalidValue(f"the Protobuf schema does not compile: {_first_line(done.stderr)}")
    with open(os.path.join(folder, "compiled"), "rb") as file:
        return list(descriptor_pb2.FileDescriptorSet.FromString(file.read()).file)


def _first_line(output: bytes) -> str:
    """The first message that is no warning, without folders."""
    lines = [line for line in output.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
    line = next((line for line in lines if not _ASIDE.search(line)), "protoc gives no reason")
    shown = line.replace(f"{_SOURCES}/", "")
    return (shown if shown.isprintable() else ascii(shown))[:_SHOWN]


def _pool(files: Iterable[Any]) -> Any:
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
    except TypeError:
        raise InvalidValue("the Protobuf schema does not compile: its descriptors contradict each other") from None
    return pool
