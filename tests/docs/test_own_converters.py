"""docs/how-to/own-converters.md: the converter with declared settings is installed, reads and writes."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from parquet_sink.addons.sources.encoding.encoders import encoder_for
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.config.secret import dump_with_secrets, load_with_secrets
from parquet_sink.connectors.loading import load
from parquet_sink.convert.decoded import Untyped
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.errors import ConverterFailed
from parquet_sink.model.rejected import Stage
from parquet_sink.task.record_steps import classes_of
from parquet_sink.worker.rest.plugins import all_plugins
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.ems.connector_files import load_file, settings_of
from tests.connectors.packages import forget, install
from tests.messages import assert_says, saying

ROOT = Path(__file__).parents[2]


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The converter of its page, installed by its own pyproject.toml, and the keys that name it there."""
    example, page = (
        ROOT / "docs" / "examples" / "own-converter",
        (ROOT / "docs" / "how-to" / "own-converters.md").read_text(),
    )
    source = (example / "shop_csv.py").read_text()
    assert f"```python\n{source}```" in page
    (group,) = tomllib.loads((example / "pyproject.toml").read_text())["project"]["entry-points"].items()
    install(tmp_path, "shop_csv", source, group[1], group[0])
    monkeypatch.syspath_prepend(tmp_path)
    block = page.rpartition("```properties\n")[2].partition("```")[0]
    yield dict(line.split("=", 1) for line in block.splitlines())
    forget("shop_csv")


def test_the_converter_of_the_page_reads(lines: dict[str, str]) -> None:
    """It is listed, its settings cross by value, and values are records or invalid with a reason."""
    settings = settings_of({"value.converter.schemas.enable": None, **lines})
    value = load_with_secrets(dump_with_secrets(settings)).value
    decoded = decoder_for(value).decode(pa.array([b"7;Ada", b"8"], pa.binary()))
    (piece,) = decoded.pieces
    assert isinstance(piece, Untyped)
    assert (piece.trees, list(decoded.invalid)) == ([{"id": "7", "name": "Ada"}], [1])
    assert_says(decoded.invalid[1], "1 fields", "columns names 2")
    assert classes_of(settings)[Stage.VALUE_CONVERTER] == "com.example.Lines"
    assert ("com.example.Lines", "converter") in all_plugins()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"value.converter.columns": None}, ("[value.converter.columns]", "missing", "name the fields")),
        ({"value.converter.separator": "ab"}, ("[value.converter.separator]", '"ab"', "not a single", "write one")),
    ],
)
def test_what_is_wrong_with_its_settings_is_told(
    lines: dict[str, str], changed: dict[str, str | None], problem: tuple[str, ...]
) -> None:
    """As of any key, when the file is read."""
    found = load_file({"value.converter.schemas.enable": None, **lines, **changed})
    (told,) = found.problems
    assert_says(told, "Invalid ", *problem)
    assert found.warnings == ()


def test_the_converter_of_the_page_converts_no_headers(lines: dict[str, str]) -> None:
    """It says which sides are its own."""
    headers = {name.replace("value", "header"): text for name, text in lines.items()}
    found = load_file({"transforms": "h", "transforms.h.type": "InsertHeader", **headers})
    (told,) = [one for one in found.problems if "[header.converter]" in one]
    assert_says(told, "converts no headers", "another converter")


def test_the_converter_of_the_page_writes(lines: dict[str, str]) -> None:
    """A source may name it; a value that it has no bytes for is that record's fault, all else its own."""
    keys = {
        "name": "lines",
        "connector.class": "FileStreamSource",
        "file": "/tmp/a",
        "topic": "t",
        "key.converter": "string",
        **lines,
    }
    worker = load_worker({"offset.storage.file.filename": "/tmp/offsets"}, source="worker").require()
    settings = load(keys, worker, source="lines.properties").settings
    assert isinstance(settings, SourceSettings)
    encode = encoder_for(settings.value)
    assert (encode({"id": 7, "name": "Ada"}, None), encode(None, None)) == (b"7;Ada", None)
    with pytest.raises(NotEncodable, match="it has no fields"):
        encode("Ada", None)

    class Odd:
        def __str__(self) -> str:
            raise KeyError

    with pytest.raises(ConverterFailed, match=saying("value.converter", "com.example.Lines", "KeyError")):
        encode({"id": Odd()}, None)
