"""A converter of a user's own: found by its path, checked by its keys, decoding in its own way."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from parquet_sink.convert.decoded import Decoded, Untyped
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import Converter, ConverterSettings, CustomConverter
from parquet_sink.errors import ConverterFailed, RetryLater
from parquet_sink.model.rejected import Stage
from parquet_sink.task.record_steps import classes_of
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.ems.connector_files import CANARY, MACHINE, load_file, settings_of
from tests.messages import assert_says, saying

MODULE = "own_converter_for_a_test"
EXAMPLE = """
from parquet_sink.api import InvalidValue, Key, OneByOne, Type


class CsvLines(OneByOne):
    keys = (
        Key(
            "columns", "CSV", Type.LIST, "Names of the fields.", default=(), required=True, missing="name the columns."
        ),
    )

    def __init__(self, values, side):
        self.columns = values.names("columns")

    def record(self, value):
        if not value:
            return None  # a tombstone
        try:
            fields = value.decode().split(",")
        except UnicodeDecodeError:
            raise InvalidValue("the line is no UTF-8") from None
        if len(fields) != len(self.columns):
            raise InvalidValue(f"the line has {len(fields)} fields, and columns names {len(self.columns)}")
        return dict(zip(self.columns, fields))
"""
OTHERS = """

from parquet_sink.config.class_settings import WrongSettings
from parquet_sink.api import Converter
from parquet_sink.convert.decoded import Decoded, Typed
from parquet_sink.errors import RetryLater
import pyarrow as pa

class Odd:
    keys = (Key("how", "Odd", Type.STRING, "How it fails.", default=""), Key("salt", "Odd", Type.PASSWORD, "A secret."))
    def __init__(self, values, side):
        self.how = values.text("how")
        if self.how == "wrong":
            raise WrongSettings({"how": f"{values.quoted('how')} is wrong.", "type": f"It decodes no {side}."})
    def decode(self, values):
        if self.how == "later":
            raise RetryLater("not now")
        if self.how == "twice":
            return Decoded((Typed(pa.array([0, 0]), pa.array([1, 2])),))
        if self.how == "beyond":
            return Decoded((), {len(values): "no"})
        if self.how == "short":
            return Decoded((Typed(pa.array([0]), pa.array([1, 2])),))
        return {}["a"]

class Closed(Converter):
    title = "it forgot how to open"

class Dumb:
    keys = ()
    def __init__(self, values, side):
        pass

class Deaf(OneByOne):
    keys = ()
    def __init__(self, values, side):
        pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A converter without declared settings, and one that fails in many ways."""
    (tmp_path / f"{MODULE}.py").write_text(EXAMPLE + OTHERS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(MODULE, None)


CSV = {"value.converter": f"{MODULE}.CsvLines", "value.converter.columns": "id,name"}
ODD = {"value.converter": f"{MODULE}.Odd"}


def decode(settings: Converter, *values: bytes) -> Decoded:
    """What becomes of values."""
    return decoder_for(settings).decode(pa.array(values, pa.binary()))


def test_the_example_of_the_page() -> None:
    """Records without a schema, invalid values with a reason, and tombstones."""
    settings = settings_of({"value.converter.schemas.enable": None, **CSV})
    found = decode(settings.value, b"7,Ada", b"8", b"", b"9,Grace", b"\xff,x")
    (piece,) = found.pieces
    assert isinstance(piece, Untyped)
    assert piece.positions.to_pylist() == [0, 3]
    assert piece.trees == [{"id": "7", "name": "Ada"}, {"id": "9", "name": "Grace"}]
    assert found.invalid.keys() == {1, 4}
    assert_says(found.invalid[1], "1 fields", "columns names 2")
    assert_says(found.invalid[4], "no UTF-8")


def test_keys_of_records_too() -> None:
    """Each side has its own."""
    settings = settings_of({"key.converter": f"{MODULE}.CsvLines", "key.converter.columns": "k", "transforms": ""})
    assert settings.key is not None
    assert isinstance(settings.key, CustomConverter)
    assert (settings.key.settings.name, settings.value) == ("key.converter", ConverterSettings())


def test_a_converter_of_the_worker_file() -> None:
    """With its settings, to which a connector may add."""
    worker = load_worker(CSV, source="w", machine=MACHINE)
    assert [one for one in worker.warnings if "converter" in one] == []
    changes: Mapping[str, str | None] = {"value.converter": None, "value.converter.schemas.enable": None}
    settings = settings_of(changes, worker.worker)
    assert isinstance(settings.value, CustomConverter)
    assert settings.value.settings.texts == (("columns", "id,name"),)
    other = settings_of({**changes, "value.converter.columns": "a"}, worker.worker)
    assert isinstance(other.value, CustomConverter)
    assert other.value.settings.texts == (("columns", "a"),)


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({**CSV, "value.converter.columns": ""}, "value.converter.columns", ("missing", "name the columns")),
        ({**ODD, "value.converter.how": "wrong"}, "value.converter.how", ('"wrong" is wrong',)),
        (
            {"value.converter": f"{MODULE}.None"},
            "value.converter",
            (f'"{MODULE}.None"', "cannot be loaded", f"{MODULE}:None", "AttributeError"),
        ),
        ({"value.converter": "json.dumps"}, "value.converter", ('"json.dumps"', "json:dumps", "cannot be used")),
        (
            {"value.converter": "no.such.Converter"},
            "value.converter",
            ('"no.such.Converter"', "not a known converter"),
        ),
        (
            {"value.converter": f"{MODULE}.Closed"},
            "value.converter",
            ("Closed", "no method open", "define open(self)", "decoder"),
        ),
        (
            {"value.converter": f"{MODULE}.Dumb"},
            "value.converter",
            ("Dumb", "no decoder", "derive from parquet_sink.api.OneByOne", "define record"),
        ),
        ({"value.converter": f"{MODULE}.Deaf"}, "value.converter", ("Deaf", "lacks record", "write it")),
    ],
)
def test_what_is_wrong_with_one(changes: Mapping[str, str], key: str, said: tuple[str, ...]) -> None:
    """Is told as of any key."""
    assert_says(load_file({"value.converter.schemas.enable": None, **changes}).problems[0], f"[{key}]", *said)


def test_unknown_settings_are_told() -> None:
    """Those of other converters among them."""
    loaded = load_file({**CSV, "value.converter.colums": "a", "value.converter.schemas.enable": "false"})
    assert loaded.problems == ()
    colums, schemas = sorted(loaded.warnings)
    assert_says(colums, "[value.converter.colums]", "unknown", "no effect", "Did you mean value.converter.columns?")
    assert_says(schemas, "[value.converter.schemas.enable]", "unknown", "no effect")


def test_its_secrets_stay_secret() -> None:
    """In settings, and in what is said of them."""
    loaded = load_file({**ODD, "value.converter.schemas.enable": None, "value.converter.salt": CANARY})
    assert loaded.problems == ()
    assert CANARY not in repr(loaded.require())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("", ("failed with KeyError",)),
        ("twice", ("position", "twice")),
        ("beyond", ("position", "that there is not")),
        ("short", ("another number of records", "positions")),
    ],
)
def test_a_mistake_in_it_is_no_records_fault(how: str, said: tuple[str, ...]) -> None:
    """The connector stops and names it."""
    settings = settings_of({**ODD, "value.converter.schemas.enable": None, "value.converter.how": how or "x"})
    with pytest.raises(ConverterFailed, match=saying("value.converter", f"{MODULE}.Odd", *said)):
        decode(settings.value, b"x", b"y")


def test_dead_letters_and_log_lines_name_its_class() -> None:
    """As the file does."""
    settings = settings_of({"value.converter.schemas.enable": None, **CSV})
    assert classes_of(settings)[Stage.VALUE_CONVERTER] == f"{MODULE}.CsvLines"


def test_it_may_ask_to_be_tried_again() -> None:
    """As a transform may."""
    settings = settings_of({**ODD, "value.converter.schemas.enable": None, "value.converter.how": "later"})
    with pytest.raises(RetryLater):
        decode(settings.value, b"x")
