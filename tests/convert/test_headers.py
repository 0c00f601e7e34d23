"""The converter of headers, chosen as Kafka Connect does."""

import pytest

from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.ems.connector_files import MACHINE, load_file, settings_of
from tests.messages import assert_says

JSON = "org.apache.kafka.connect.json.JsonConverter"
STEPS = {"transforms": "d", "transforms.d.type": "tests.convert.test_headers.Keep"}


class Keep:
    """A transform."""

    keys = ()

    def __init__(self, *args: object) -> None:
        self.args = args


def test_headers_are_simple_unless_told_otherwise() -> None:
    """As in Kafka Connect's worker."""
    assert settings_of(STEPS).header == ConverterSettings("simple_header")


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("org.apache.kafka.connect.storage.SimpleHeaderConverter", {}, ConverterSettings("simple_header")),
        ("SimpleHeaderConverter", {}, ConverterSettings("simple_header")),
        ("simpleheader", {}, ConverterSettings("simple_header")),
        (JSON, {}, ConverterSettings("json_envelope")),
        ("json", {"schemas.enable": "false"}, ConverterSettings("json")),
        ("string", {"converter.encoding": "UTF-16"}, ConverterSettings("string", encoding="UTF-16")),
        ("Long", {}, ConverterSettings("long")),
        ("bytes", {}, ConverterSettings("bytes")),
    ],
)
def test_headers_are_decoded_as_the_file_says(name: str, settings: dict[str, str], expected: ConverterSettings) -> None:
    """With the same settings as values and keys."""
    keys = {f"header.converter.{key}": text for key, text in settings.items()}
    loaded = load_file({**STEPS, "header.converter": name, **keys})
    assert (loaded.problems, loaded.warnings) == ((), ())
    assert loaded.require().header == expected


def test_the_worker_file_has_the_default() -> None:
    """A connector's own converter takes nothing from it."""
    loaded = load_worker({"header.converter": JSON}, source="w", machine=MACHINE)
    assert settings_of(STEPS, loaded.worker).header == ConverterSettings("json_envelope")
    assert settings_of({**STEPS, "header.converter": "string"}, loaded.worker).header == ConverterSettings("string")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("any.Converter", ('"any.Converter"', "SimpleHeaderConverter", "JsonConverter")),
        ("io.confluent.connect.avro.AvroConverter", ()),
    ],
)
def test_what_decodes_no_headers_is_refused_where_there_are_transforms(name: str, said: tuple[str, ...]) -> None:
    """Kafka Connect has no Avro headers either; a file without transforms may name what it likes."""
    (problem,) = load_file({**STEPS, "header.converter": name}).problems
    assert_says(problem, "[header.converter]", "not a converter of headers", *said)
    assert load_file({"header.converter": name}).problems == ()


def test_values_are_not_decoded_as_headers() -> None:
    """SimpleHeaderConverter is for headers alone."""
    (problem,) = load_file({"value.converter": "SimpleHeaderConverter"}).problems
    assert_says(problem, "[value.converter]", "SimpleHeaderConverter", "not a known converter")
