"""The door for authors of plug-ins: what it has, what it loads, and that the documents lead to it alone."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from parquet_sink import api

ROOT = Path(__file__).parents[2]
SOURCE = Path(api.__file__).read_text(encoding="utf-8")
PAGES = sorted(
    path for name in ("plugins", "connector-classes", "config-providers", "own-*")
    for path in (ROOT / "docs" / "how-to").glob(f"{name}.md")
)  # fmt: skip
EXAMPLES = sorted((ROOT / "docs" / "examples").rglob("*.py"))
FORMER = {
    "config.key": ("Key", "Origin", "Type"),
    "config.providers": ("Resolved",),
    "config.report": ("Report",),
    "config.secret": ("Secret",),
    "config.values": ("Values", "read"),
    "connectors": ("reading", "record_sinks"),
    "connectors.connect_keys": ("CONNECTOR_KEYS",),
    "connectors.provider_class": ("ProviderError", "WrongSettings"),
    "connectors.reading": ("check", "kafka_settings"),
    "connectors.record_sinks": ("RECORD_SINK_KEYS", "check", "settings"),
    "connectors.source": ("checks",),
    "connectors.source.build": ("source_settings",),
    "connectors.source.checks": ("check",),
    "connectors.source.keys": ("OWN_KEYS", "SOURCE_KEYS"),
    "convert.decoded": ("Decoded", "Inferred", "Trees", "Typed"),
    "convert.decoders": ("decoder_for",),
    "convert.invalid": ("InvalidValue",),
    "convert.own": ("OneByOne",),
    "convert.settings": ("ConverterSettings",),
    "errors": ("RecordSinkFailed", "RetryLater", "SourceFailed"),
    "convert.keys": ("CONVERTER_KEYS",),
    "shape.keys": ("OBFUSCATION_KEYS", "SHAPE_KEYS"),
    "files.settings": ("FileSettings",),
    "kafka.keys": ("OVERRIDE_KEYS", "TOPIC_KEYS"),
    "kafka.settings": ("FlushSettings",),
    "model.records": ("VALUES_ONLY", "RecordBatch", "RecordParts"),
    "model.source_records": ("SourceRecord",),
    "pipeline.settings": ("SinkSettings",),
    "shape.run": ("Run",),
    "shape.settings": ("ShapeSettings",),
    "shape.shaper": ("Shaper",),
    "targets.outcome": ("Health", "ProbeResult"),
    "targets.push.settings": ("PushSettings",),
    "transform.chain": ("Step", "TransformChain"),
    "transform.fields.base": ("Columns", "FieldTransform", "TypedChange"),
    "transform.protocol": ("RecordFault", "WrongSettings"),
    "transform.records": ("DecodedRecords",),
}
"""What the documents told to import before there was `parquet_sink.api`, by module below `parquet_sink`."""


def doc(name: str) -> str | None:
    """Of a class or function its docstring; of another value the text behind it, where it is defined."""
    found: Any = getattr(api, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        return found.__doc__
    module, _, attribute = api._PATHS[name].partition(":")
    body = ast.parse(inspect.getsource(import_module(f"parquet_sink.{module}"))).body
    behind = {name_of(one): after for one, after in pairwise(body)}[attribute]
    return ast.unparse(behind.value) if isinstance(behind, ast.Expr) else None


def name_of(node: ast.stmt) -> str:
    """The name that an assignment gives."""
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target)
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else ""


@pytest.mark.parametrize("name", api.__all__)
def test_each_name_is_there_and_documented(name: str) -> None:
    """It is loaded, is what its module has, and says what it is."""
    module, _, attribute = api._PATHS[name].partition(":")
    assert getattr(api, name) is getattr(import_module(f"parquet_sink.{module}"), attribute)
    assert doc(name)


def test_the_type_checker_reads_the_same_names() -> None:
    """What is imported for it is what is loaded."""
    (block,) = [one for one in ast.parse(SOURCE).body if isinstance(one, ast.If)]
    typed = {
        alias.asname: f"{one.module}:{alias.name}".removeprefix("parquet_sink.")
        for one in block.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
        if alias.asname
    }
    for one in block.body:
        if isinstance(one, ast.Assign):
            module, attribute = ast.unparse(one.value).split(".")
            (where,) = [
                node.module
                for node in block.body
                if isinstance(node, ast.ImportFrom) and module in [alias.name for alias in node.names]
            ]
            typed[name_of(one)] = f"{where}.{module}:{attribute}".removeprefix("parquet_sink.")
    assert typed == api._PATHS
    assert set(dir(api)) == set(api.__all__)


def test_a_name_that_is_not_there_is_told() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match=re.escape("module 'parquet_sink.api' has no attribute 'Nothing'")):
        api.Nothing  # noqa: B018 - it is what raises


def test_keys_settings_and_errors_load_neither_arrow_nor_spark() -> None:
    """A plug-in's module is imported where a file is checked."""
    names = "Key, Type, Origin, Check, Secret, Values, Report, Machine, WrongSettings, SinkSettings, ShapeSettings"
    program = (
        "import sys; import parquet_sink.api; "
        "assert [one for one in sys.modules if one.startswith('parquet_sink.')] == ['parquet_sink.api']; "
        f"from parquet_sink.api import {names}, RetryLater, SourceFailed, RecordSinkFailed, RECORD_SINK_KEYS; "
        "print({'pyarrow', 'pyspark', 'boto3', 'urllib3', 'confluent_kafka'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_documents_import_from_here_alone(path: Path) -> None:
    """No page, and no example, leads past the door."""
    text = path.read_text(encoding="utf-8")
    imported = re.findall(r"^\s*(?:from|import) (parquet_sink\S*)(?: import (.*))?$", text, re.MULTILINE)
    assert [one for one in imported if one != ("parquet_sink", "api") and one[0] != "parquet_sink.api"] == []
    names = [name.strip() for _, names in imported if names != "api" for name in names.strip("()").split(",")]
    used = {*re.findall(r"\bapi\.(\w+)", text), *filter(None, names)}
    assert used - {*api.__all__} == set()


def test_documents_do_import() -> None:
    """What is looked at is there."""
    assert len(PAGES) == 9
    assert sum("from parquet_sink.api import" in path.read_text(encoding="utf-8") for path in EXAMPLES) == 8


@pytest.mark.parametrize("module", FORMER)
def test_what_documents_told_before_goes_on_being_there(module: str) -> None:
    """A module that moves leaves these names where they were: packages that are installed import them."""
    found = import_module(f"parquet_sink.{module}")
    for name in FORMER[module]:
        former = getattr(found, name, None) or import_module(f"parquet_sink.{module}.{name}")
        assert former in [getattr(api, one) for one in api.__all__] or inspect.ismodule(former)
