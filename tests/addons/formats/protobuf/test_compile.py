"""Registered Protobuf schemas become descriptors; hostile ones are refused and reach nothing."""

import base64
import os
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from parquet_sink.addons.formats.protobuf import compile as protobuf_compile
from parquet_sink.addons.formats.protobuf.compile import KNOWN, Compiled, compile_schema
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from parquet_sink.errors import StorageFailed
from tests.messages import saying


def schema(text: str, **references: str) -> RegisteredSchema:
    """A registered schema; references by name, `__` for a slash."""
    named = tuple(Referenced(name.replace("__", "/") + ".proto", below) for name, below in references.items())
    return RegisteredSchema(1, "PROTOBUF", text, named)


def reason(registered: RegisteredSchema) -> str:
    """Why a schema does not compile."""
    with pytest.raises(InvalidValue) as error:
        compile_schema(registered)
    return str(error.value)


def names(compiled: Compiled) -> list[str]:
    """The messages of the schema's own file."""
    return list(compiled.file.message_types_by_name)


@pytest.mark.parametrize("head", ["", 'syntax = "proto2";', 'syntax = "proto3";', 'edition = "2023";'])
def test_all_syntaxes_compile(head: str) -> None:
    """Proto2 (also unsaid), proto3 and editions compile."""
    text = head + "message A { repeated int32 x = 1; } message B {}"
    assert names(compile_schema(schema(text))) == ["A", "B"]


def test_references_are_imports() -> None:
    """A schema imports its references, which import others, by the names they are referred to."""
    text = 'syntax = "proto3"; import "a/b.proto"; message M { a.B b = 1; }'
    middle = 'syntax = "proto3"; package a; import "c.proto"; message B { C c = 1; }'
    compiled = compile_schema(schema(text, c='syntax = "proto3"; message C { int32 x = 1; }', a__b=middle))
    assert compiled.pool.FindMessageTypeByName("a.B").fields[0].message_type.full_name == "C"


def test_known_files_need_no_reference() -> None:
    """Google's well-known and common types and Confluent's own can be imported without a reference."""
    imports = [*KNOWN, "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"]
    text = "".join(f'import "{name}";\n' for name in imports) + "message M { google.type.Date d = 1; }"
    assert names(compile_schema(schema(f'syntax = "proto3";\n{text}'))) == ["M"]


def test_a_registered_reference_replaces_a_known_file() -> None:
    """A reference of the name of a known file is used as it was registered, but not one of google/protobuf."""
    text = 'syntax = "proto3"; import "google/type/date.proto"; import "google/protobuf/duration.proto"; message M {}'
    date = 'syntax = "proto3"; package google.type; message Date { string text = 1; }'
    compiled = compile_schema(schema(text, google__type__date=date, google__protobuf__duration="nonsense"))
    assert compiled.pool.FindMessageTypeByName("google.type.Date").fields[0].name == "text"


def test_schemas_do_not_meet() -> None:
    """Two schemas may define one name in two ways."""
    first = compile_schema(schema('syntax = "proto3"; message M { int32 a = 1; }'))
    second = compile_schema(schema('syntax = "proto3"; message M { string b = 1; }'))
    assert (first.file.message_types_by_name["M"].fields[0].name, names(second)) == ("a", ["M"])
    assert second.file.message_types_by_name["M"].fields[0].name == "b"


def test_map_entries_that_serializers_registered_compile() -> None:
    """A text in which the entries of a map are messages with `option map_entry` compiles."""
    entry = "message TagsEntry { option map_entry = true; string key = 1; int32 value = 2; }"
    text = f'syntax = "proto3"; message M {{ repeated TagsEntry tags = 1; {entry} }}'
    assert names(compile_schema(schema(text))) == ["M"]


@pytest.mark.parametrize("head", ["", 'import "confluent/meta.proto";', "import public 'confluent/meta.proto';"])
def test_tags_that_the_registry_added_compile(head: str) -> None:
    """A text with Confluent's tags compiles with and without the import that they need."""
    tagged = 'message M { string f = 1 [(confluent.field_meta) = { tags: [ "PII" ] }]; }'
    assert names(compile_schema(schema(f'syntax = "proto3"; {head} {tagged}'))) == ["M"]


def test_a_serialized_descriptor_is_taken() -> None:
    """A FileDescriptorProto in base64 is a schema, too, with its imports."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3", dependency=["c.proto"])
    file.message_type.add(name="M").field.add(name="c", number=1, type=11, type_name=".C", label=1)
    compiled = compile_schema(schema(base64.b64encode(file.SerializeToString()).decode(), c="message C {}"))
    assert (names(compiled), compiled.serialized) == (["M"], True)


def test_descriptors_that_contradict_each_other_are_refused() -> None:
    """A serialized descriptor that names a type nobody defines does not compile."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3")
    file.message_type.add(name="M").field.add(name="c", number=1, type=11, type_name=".Nobody", label=1)
    assert "contradict" in reason(schema(base64.b64encode(file.SerializeToString()).decode()))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message {", "registered.proto:1:9: Expected message name."),
        ('import "gone.proto";', "gone.proto: File not found."),
        ('syntax = "proto3"; message M { Nobody n = 1; }', "Nobody"),
        ('syntax = "proto9"; message M {}', "proto9"),
        ('import "/etc/passwd"; message M {}', "/etc/passwd"),
        ('import "../registered.proto"; message M {}', "registered.proto"),
    ],
)
def test_what_does_not_compile_is_named_without_folders(text: str, said: str) -> None:
    """The reason is protoc's first message, and shows no path of this machine."""
    shown = reason(schema(text))
    assert said in shown
    assert "sources/" not in shown
    assert "parquet-sink-protoc" not in shown


def test_an_empty_text_has_no_messages() -> None:
    """An empty text is a schema without messages."""
    assert names(compile_schema(schema(""))) == []


@pytest.mark.parametrize(
    "name",
    [
        "/etc/x.proto",
        "../x.proto",
        "a/../x.proto",
        "a//x.proto",
        "",
        ".",
        "a\\b",
        "a\0b",
        'a"b',
        "a\nb",
        "x" * 501,
        "ä",
    ],
)
def test_references_cannot_leave_the_folder(name: str) -> None:
    """A reference whose name is no plain relative path is refused."""
    registered = RegisteredSchema(1, "PROTOBUF", "message M {}", (Referenced(name, "message X {}"),))
    assert "relative path" in reason(registered)


def test_a_serialized_import_cannot_leave_the_folder() -> None:
    """Neither can the imports of a serialized descriptor."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", dependency=['a";import "b'])
    assert "relative path" in reason(schema(base64.b64encode(file.SerializeToString()).decode()))


def test_references_that_exclude_each_other_are_refused() -> None:
    """One reference cannot be the folder of another one."""
    references = (Referenced("a.proto", "message X {}"), Referenced("a.proto/b", "message X {}"))
    assert "exclude each other" in reason(RegisteredSchema(1, "PROTOBUF", "message M {}", references))


def test_a_reference_is_no_python_module(tmp_path: Path) -> None:
    """A reference named like protoc's Python module is not run."""
    trap = f"open({os.fspath(tmp_path / 'sprung')!r}, 'w')"
    names_of_traps = ("grpc_tools/protoc.py", "grpc_tools/__init__.py", "sources/grpc_tools/protoc.py")
    references = tuple(Referenced(name, trap) for name in names_of_traps)
    compile_schema(RegisteredSchema(1, "PROTOBUF", "message M {}", references))
    assert not list(tmp_path.iterdir())


def test_the_own_name_is_free() -> None:
    """A reference may have the name that the schema's own file has here."""
    compiled = compile_schema(
        schema('import "registered.proto"; message M { optional X x = 1; }', registered="message X {}")
    )
    assert names(compiled) == ["M"]


def test_text_that_is_no_unicode_is_refused() -> None:
    """A text with a lone surrogate is refused."""
    assert "not valid Unicode" in reason(schema("// \ud800"))


def test_a_schema_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Protoc is ended when its time is over."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 20\n")
    slow.chmod(0o700)
    monkeypatch.setattr(sys, "executable", os.fspath(slow))
    monkeypatch.setattr(protobuf_compile, "COMPILE_SECONDS", 0.1)
    assert "takes longer than" in reason(schema("message M {}"))


def test_a_machine_that_cannot_compile_is_no_fault_of_the_schema(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a folder for temporary files the connector fails, not the record."""
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path / "gone"))
    with pytest.raises(StorageFailed, match=saying("cannot compile", "Protobuf")):
        compile_schema(schema("message M {}"))
