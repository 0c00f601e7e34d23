"""Protobuf schemas that mean harm: bounded in time, confined to their folder, and nothing of them stays behind."""

import base64
import random
import tempfile
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from parquet_sink.addons.formats.protobuf import compile as protobuf_compile
from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.addons.formats.protobuf.indexes import message_at
from parquet_sink.addons.formats.protobuf.plan import plan
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings

HEAD = 'syntax = "proto3"; '


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def compiled(text: str, **references: str) -> protobuf_compile.Compiled:
    """The descriptors of a schema."""
    found = tuple(Referenced(name, one) for name, one in references.items())
    return compile_schema(RegisteredSchema(1, "PROTOBUF", text, found))


@pytest.mark.parametrize(
    "text",
    [
        HEAD + 'import "/etc/hostname"; message A {}',
        HEAD + 'import "../../../etc/hostname"; message A {}',
        HEAD + 'import "registered.proto"; message A {}',
        HEAD + 'import "compiled"; message A {}',
        HEAD + "message A {" * 5_000 + "}" * 5_000,
        HEAD + "/*" + "x" * 2_000_000,
        HEAD + "option x = " + "{a:" * 2_000 + "}" * 2_000 + ";",
        HEAD + "message A {} \0",
        HEAD + "(" + " " * 1_000_000 + ".confluent.x_meta",
        HEAD + "option" + " " * 1_000_000 + "map_entry",
        "x" * 2_000_000,
    ],
    ids=["absolute", "above", "itself", "output", "deep", "comment", "option", "nul", "tag", "entry", "noise"],
)
def test_texts_that_do_not_compile(folder: Path, text: str) -> None:
    """Each is refused in one short line that names no folder, and its own folder is gone."""
    with pytest.raises(InvalidValue, match="does not compile") as caught:
        compiled(text)
    assert len(str(caught.value)) < 400
    assert str(folder) not in str(caught.value)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "name", ["/tmp/x.proto", "../x.proto", "a/../../x.proto", "a\0b", "a\\b", "C:x", "", "a//b", "x" * 600]
)
def test_names_of_references(folder: Path, name: str) -> None:
    """A name that is not a plain relative path is refused, and nothing is written outside."""
    with pytest.raises(InvalidValue, match="relative path"):
        compiled(HEAD + "message A {}", **{name: HEAD})
    assert not list(folder.iterdir())


def test_a_reference_called_like_an_option(folder: Path) -> None:
    """Names that begin with a dash are files as others."""
    assert compiled(HEAD + 'import "-I/x.proto"; message A {}', **{"-I/x.proto": HEAD}).file.message_types_by_name
    assert not list(folder.iterdir())


def test_public_imports_that_unfold(folder: Path) -> None:
    """Files that import the next two publicly are each read once."""
    references: dict[str, str] = {}
    for level in range(30):
        below = "".join(f'import public "{side}{level + 1}.proto"; ' for side in "ab") if level < 29 else ""
        references |= {f"{side}{level}.proto": HEAD + below for side in "ab"}
    assert compiled(HEAD + 'import "a0.proto"; message A {}', **references).file.message_types_by_name
    assert not list(folder.iterdir())


def test_time_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that takes too long is ended, and its folder is removed."""
    monkeypatch.setattr(protobuf_compile, "COMPILE_SECONDS", 0.02)
    fields = " ".join(f"int32 f{number} = {number};" for number in range(1, 60_000))
    with pytest.raises(InvalidValue, match="takes longer than"):
        compiled(HEAD + f"message A {{ {fields} }}")
    assert not list(folder.iterdir())


def test_damaged_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that was registered as a descriptor, with bytes changed, has columns or a reason why not."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3")
    message = file.message_type.add(name="M")
    message.field.add(name="a", number=1, type=9, label=1)
    message.field.add(name="b", number=2, type=11, label=3, type_name=".M.N")
    message.nested_type.add(name="N").field.add(name="c", number=1, type=14, label=1, type_name=".E")
    file.enum_type.add(name="E").value.add(name="Z", number=0)
    monkeypatch.setattr(protobuf_compile, "_run", lambda own, texts: [descriptor_pb2.FileDescriptorProto(name=own)])
    rng, whole = random.Random(1), file.SerializeToString()
    planned = 0
    for _ in range(1_500):
        changed = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            found = compiled(base64.b64encode(changed).decode())
            plan(found, message_at(found, (0,)), ConverterSettings(kind="protobuf"))
        except InvalidValue:
            continue
        planned += 1
    assert 0 < planned < 1_500
