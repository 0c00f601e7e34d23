"""Converters: their names, whose settings count, and what is said about settings of others."""

import pytest

from parquet_sink import plugins
from parquet_sink.config.declared import by_key, keys_of
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.json.settings import PLAIN_JSON, JsonConverter
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.convert.registry.converter import RegistryConverter
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.settings import Converter, ConverterSettings
from parquet_sink.plugins import BUILT_IN
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.messages import assert_says

E = "connect.ems."
JSON_CONVERTER = JsonConverter.class_name
V, K = "value.converter", "key.converter"
CONNECT = "org.apache.kafka.connect"
AVRO = "io.confluent.connect.avro.AvroConverter"
CANARY = "canary-77aa"
MACHINE = Machine(environ={"SECRET": CANARY})
BASE = {
    "name": "orders",
    "topics": "orders",
    f"{E}endpoint": "https://h/x",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}
URL = {f"{V}.schema.registry.url": "https://r:8081"}


def _worker(properties: dict[str, str] | None = None) -> LoadedWorker:
    return load_worker({"bootstrap.servers": "k:1", **(properties or {})}, source="w.properties", machine=MACHINE)


def _load(properties: dict[str, str], worker: dict[str, str] | None = None) -> Loaded:
    return load({**BASE, **properties}, _worker(worker).require(), source="f.properties")


def _value(properties: dict[str, str], worker: dict[str, str] | None = None) -> ConverterSettings:
    return _load(properties, worker).require().value


NAMES: list[tuple[str, str]] = [
    (JSON_CONVERTER, "json_envelope"),
    (f"{CONNECT}.storage.StringConverter", "string"),
    (f"{CONNECT}.converters.ByteArrayConverter", "bytes"),
    (f"{CONNECT}.converters.BooleanConverter", "boolean"),
    (f"{CONNECT}.converters.ShortConverter", "short"),
    (f"{CONNECT}.converters.IntegerConverter", "integer"),
    (f"{CONNECT}.converters.LongConverter", "long"),
    (f"{CONNECT}.converters.FloatConverter", "float"),
    (f"{CONNECT}.converters.DoubleConverter", "double"),
    ("com.celonis.kafka.connect.ems.converter.XmlConverter", "xml"),
    (AVRO, "avro"),
    ("io.confluent.connect.protobuf.ProtobufConverter", "protobuf"),
    ("io.confluent.connect.json.JsonSchemaConverter", "json_schema"),
    ("io.apicurio.registry.utils.converter.AvroConverter", "avro"),
    *(("JsonConverter", "json_envelope"), ("Json", "json_envelope"), ("json", "json_envelope")),
    *(("avroconverter", "avro"), ("Avro", "avro"), ("avro", "avro"), ("AVRO", "avro")),
    *(("ProtobufConverter", "protobuf"), ("protobuf", "protobuf")),
    *(("JsonSchema", "json_schema"), ("json_schema", "json_schema"), ("jsonschema", "json_schema")),
    *(("xml", "xml"), ("String", "string"), ("string", "string")),
    *(("bytes", "bytes"), ("bytearray", "bytes"), ("ByteArray", "bytes")),
    *(("boolean", "boolean"), ("short", "short"), ("integer", "integer")),
    *(("long", "long"), ("float", "float"), ("double", "double")),
]


@pytest.mark.parametrize("place", ["connector file", "worker file"])
@pytest.mark.parametrize("side", [V, K])
@pytest.mark.parametrize(("name", "kind"), NAMES)
def test_every_name_of_a_converter_is_understood(name: str, kind: str, side: str, place: str) -> None:
    """Full class names, Kafka Connect's aliases and our words; for values and keys, in either file."""
    settings = {side: name}
    if kind in ("avro", "protobuf", "json_schema"):
        settings[f"{side}.schema.registry.url"] = "https://r:8081"
    other = {} if side == V else {V: "bytes"}
    loaded = _load({**settings, **other}) if place == "connector file" else _load(other, settings)
    assert loaded.warnings == ()
    found = loaded.require()
    assert (found.value if side == V else found.key) is not None
    assert (found.value if side == V else found.key or found.value).what == WHAT[kind]


def test_every_converter_is_tried_above() -> None:
    """No converter is known that no test names."""
    assert {one.class_name for one in CONVERTERS if "value" in one.sides} <= {name for name, _ in NAMES}


def test_every_converter_is_told_in_words() -> None:
    """`check` and the documentation have a text for whatever a converter decodes."""
    assert all(one.title for one in CONVERTERS)
    assert PLAIN_JSON.what != JsonConverter().what


def test_the_registry_names_each_class_as_it_names_itself() -> None:
    """A connector file, dead letters and the documentation have the same name."""
    assert [one.class_name for one in CONVERTERS] == [*BUILT_IN[plugins.CONVERTERS]]


WHAT = {one.word: one().what for one in CONVERTERS} | {"json_envelope": JsonConverter().what}
KNOWN = (
    *("not a known converter", "JsonConverter", "AvroConverter", "ProtobufConverter", "JsonSchemaConverter"),
    *("XmlConverter", "StringConverter", "ByteArrayConverter", "BooleanConverter", "ShortConverter"),
    *("IntegerConverter", "LongConverter", "FloatConverter", "DoubleConverter"),
)
UNKNOWN: list[tuple[str, tuple[str, ...]]] = [
    ("x.AvroConverter", ('"x.AvroConverter"', *KNOWN, f"Did you mean {AVRO}?")),
    ("io.debezium.Zzz", ('"io.debezium.Zzz"', *KNOWN)),
    (
        "io.apicurio.registry.utils.converter.ProtobufConverter",
        (
            "Apicurio's ProtobufConverter",
            "not read",
            "Confluent's form",
            "io.confluent.connect.protobuf.ProtobufConverter",
        ),
    ),
    (
        "io.apicurio.registry.utils.converter.ExtJsonConverter",
        ("Apicurio's ExtJsonConverter", "not read", "plain JSON", JSON_CONVERTER),
    ),
]


@pytest.mark.parametrize("side", [V, K])
@pytest.mark.parametrize(("name", "reason"), UNKNOWN)
def test_an_unknown_converter_is_refused_by_name(name: str, reason: tuple[str, ...], side: str) -> None:
    """With what is known, and nothing said about its settings; a worker's converter is judged where it is used."""
    more = {side: name, f"{side}.some.setting": "x"}
    loaded = _load({V: "bytes", **more})
    (problem,) = loaded.problems
    assert_says(problem, f"[{side}]", *reason)
    assert loaded.warnings == ()
    assert (_worker(more).problems, _worker(more).warnings) == ((), ())
    other = {} if side == V else {V: "bytes"}
    (inherited,) = _load(other, more).problems
    assert_says(inherited, f"[{side}]", *reason, "w.properties")
    assert _load({V: "bytes", K: "bytes"}, more).problems == ()


def test_a_converter_from_a_provider_is_not_shown() -> None:
    """The placeholder is named, not what it stands for."""
    for loaded in (_load({V: "${env:SECRET}"}), _load({}, {V: "${env:SECRET}"})):
        (problem,) = loaded.problems
        assert "${env:SECRET}" in problem
        assert CANARY not in problem


def test_a_value_converter_is_needed_and_a_key_converter_is_not() -> None:
    """Nothing is guessed about values; keys stay bytes."""
    (problem,) = _load({}).problems
    assert_says(problem, "[value.converter]", "worker file", "name the records' converter", "plain JSON")
    assert_says(problem, JSON_CONVERTER, "value.converter.schemas.enable=false")
    assert _load({V: "bytes"}).require().key is None


def test_json_has_an_envelope_unless_told_otherwise() -> None:
    """Kafka Connect's default of schemas.enable is true."""
    assert _value({V: "json"}) == JsonConverter()
    assert _value({V: "json", f"{V}.schemas.enable": "true"}) == JsonConverter()
    assert _value({V: "json", f"{V}.schemas.enable": "false"}) == PLAIN_JSON
    assert _value({V: "json", f"{V}.schemas.enable": " "}) == JsonConverter()


def test_a_converter_named_in_the_connector_file_takes_nothing_from_the_worker() -> None:
    """As in Kafka Connect, also when it is the same converter."""
    worker = {V: "json", f"{V}.schemas.enable": "false", f"{V}.replace.null.with.default": "false"}
    assert _value({}, worker) == ConverterSettings("json", replace_null_with_default=False)
    assert _value({V: "json"}, worker) == ConverterSettings("json_envelope")
    avro = {V: "avro", f"{V}.schema.registry.url": "https://w", f"{V}.enhanced.avro.schema.support": "true"}
    (problem,) = _load({V: "avro"}, avro).problems
    assert_says(problem, f"[{V}.schema.registry.url]", "missing", AVRO, "address")


def test_settings_alone_add_to_the_workers_converter() -> None:
    """One by one, the connector's before the worker's; keys and values do not mix."""
    worker = {
        V: "avro",
        f"{V}.schema.registry.url": "https://w",
        f"{V}.enhanced.avro.schema.support": "true",
        f"{V}.flatten.singleton.unions": "false",
        K: "string",
        f"{K}.converter.encoding": "latin-1",
    }
    changes = {
        f"{V}.enhanced.avro.schema.support": "false",
        f"{V}.max.retries": "9",
        f"{K}.converter.encoding": "cp1252",
    }
    settings = _load(changes, worker).require()
    assert settings.value == ConverterSettings(
        "avro", RegistrySettings(("https://w",), max_retries=9), flatten_singleton_unions=False
    )
    assert settings.key == ConverterSettings("string", encoding="cp1252")


def test_a_wrong_setting_of_the_worker_is_told_where_it_is_used() -> None:
    """The worker's converter is a default: only a connector that takes it has to be able to use it."""
    worker = {V: "string", f"{V}.converter.encoding": "klingon"}
    assert _worker(worker).problems == ()
    assert _load({V: "bytes"}, worker).problems == ()
    (problem,) = _load({}, worker).problems
    assert_says(problem, f"[{V}.converter.encoding]", "not a known character set", "UTF-8", "windows-1252")


OPTIONS = [(one, field) for one in CONVERTERS for field in by_key(one()) if "." in field and "registry" not in field]


@pytest.mark.parametrize(("converter", "name"), OPTIONS, ids=lambda one: one if isinstance(one, str) else one.word)
@pytest.mark.parametrize("side", [V, K])
def test_every_option_of_a_converter_arrives(converter: type[Converter], name: str, side: str) -> None:
    """Each in its field; its documented default is the field's."""
    (default,) = [key.default for key in keys_of(converter) if key.name == name]
    assert by_key(converter())[name] == default
    wanted = "UTF-16" if isinstance(default, str) else not default
    properties = {V: "bytes", side: converter.class_name, f"{side}.{name}": str(wanted)}
    if issubclass(converter, RegistryConverter):
        properties[f"{side}.{'apicurio' if converter.apicurio else 'schema'}.registry.url"] = "https://r"
    loaded = _load(properties)
    assert loaded.warnings == ()
    found = loaded.require().value if side == V else loaded.require().key
    assert type(found) is converter
    assert by_key(found)[name] == wanted


@pytest.mark.parametrize("encoding", ["UTF-8", "utf8", "ISO-8859-1", "US-ASCII", "windows-1252", "UTF-16LE"])
def test_encodings_that_python_knows_are_accepted(encoding: str) -> None:
    """Under Java's usual names."""
    assert _value({V: "string", f"{V}.converter.encoding": encoding}).encoding == encoding


@pytest.mark.parametrize(
    "encoding", ["klingon", "base64", "rot13", "idna", "unicode_escape", "undefined", "a\x00b", "é"]
)
def test_what_is_no_character_set_is_refused(encoding: str) -> None:
    """Python's codecs that are no character sets, too."""
    assert len(_load({V: "string", f"{V}.converter.encoding": encoding}).problems) == 1


FOREIGN = [
    ("json", "schema.registry.url", "https://r", JSON_CONVERTER),
    ("json", "enhanced.avro.schema.support", "true", JSON_CONVERTER),
    ("json", "converter.encoding", "klingon", JSON_CONVERTER),
    ("string", "schemas.enable", "false", f"{CONNECT}.storage.StringConverter"),
    ("string", "request.header.X", CANARY, f"{CONNECT}.storage.StringConverter"),
    ("bytes", "decimal.format", "NUMERIC", f"{CONNECT}.converters.ByteArrayConverter"),
    ("avro", "flatten.unions", "true", AVRO),
    ("avro", "json.fail.invalid.schema", "true", AVRO),
    ("avro", "apicurio.registry.url", "http://r/apis/registry/v2", AVRO),
    ("avro", "apicurio.registry.auto-register", "true", AVRO),
]


@pytest.mark.parametrize("side", [V, K])
@pytest.mark.parametrize(("converter", "name", "value", "class_name"), FOREIGN)
def test_settings_of_another_converter_are_warned_about(
    converter: str, name: str, value: str, class_name: str, side: str
) -> None:
    """They have no effect, right or wrong; in the connector file and in the worker file."""
    properties = {side: converter, f"{side}.{name}": value}
    if converter == "avro":
        properties[f"{side}.schema.registry.url"] = "https://r"
    loaded = _load({V: "bytes", **properties})
    (warning,) = loaded.warnings
    assert_says(warning, f"[{side}.{name}]", "no effect", class_name)
    assert CANARY not in warning
    worker = _worker(properties)
    assert (loaded.problems, worker.problems, worker.warnings) == ((), (), (warning,))
    assert _load({} if side == V else {V: "bytes"}, properties).warnings == ()


def test_unknown_settings_are_warned_about_with_the_nearest_one() -> None:
    """Under either prefix, compared without it."""
    loaded = _load(
        {V: "json", f"{V}.schema.enable": "false", K: "string", f"{K}.convertr.encoding": "x", f"{V}.zz": "1"}
    )
    json, string, without = loaded.warnings
    assert_says(json, f"[{V}.schema.enable]", "unknown", "no effect", f"Did you mean {V}.schemas.enable?")
    assert_says(string, f"[{K}.convertr.encoding]", "unknown", "no effect", f"Did you mean {K}.converter.encoding?")
    assert_says(without, f"[{V}.zz]", "unknown", "no effect")
    assert "Did you mean" not in without


def test_a_file_of_connect_standalone_is_accepted() -> None:
    """Settings of JsonConverter for both sides, internal converters, settings without a converter."""
    worker = _worker(
        {
            K: JSON_CONVERTER,
            V: JSON_CONVERTER,
            f"{K}.schemas.enable": "true",
            f"{V}.schemas.enable": "false",
            "internal.key.converter": JSON_CONVERTER,
            "internal.value.converter": JSON_CONVERTER,
            "internal.key.converter.schemas.enable": "false",
        }
    )
    assert worker.problems == ()
    assert {text.split(". ")[0] for text in worker.warnings} == {
        "Warning [internal.key.converter]",
        "Warning [internal.value.converter]",
        "Warning [internal.key.converter.schemas.enable]",
    }
    settings = load({**BASE}, worker.require(), source="f").require()
    assert (settings.value, settings.key) == (PLAIN_JSON, JsonConverter())
    assert _worker({f"{K}.schemas.enable": "true"}).warnings == ()


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("protobuf", "generate.struct.for.nulls", "read as null"),
        ("json_schema", "json.fail.invalid.schema", "not checked"),
    ],
)
def test_an_option_that_is_not_honoured_is_refused(kind: str, name: str, reason: str) -> None:
    """Not ignored: it would change what is read."""
    (problem,) = _load({V: kind, **URL, f"{V}.{name}": "true"}).problems
    assert_says(problem, f"[{V}.{name}]", "true", reason, "set false", "remove the key")
    assert _load({V: kind, **URL, f"{V}.{name}": "false"}).warnings == ()


def test_settings_that_concern_writing_are_accepted_silently() -> None:
    """Each, for each converter that may have it, without a word."""
    silent = [setting for setting in SETTINGS if setting.unused and not setting.key.is_prefix]
    assert silent
    for setting in silent:
        for converter in [one for one in setting.of if "value" in one.sides]:
            url = "apicurio.registry.url" if getattr(converter, "apicurio", False) else "schema.registry.url"
            properties = {V: converter.class_name, f"{V}.{setting.key.name}": "x"}
            loaded = _load(properties | ({f"{V}.{url}": "https://r"} if converter.more else {}))
            assert (loaded.problems, [one for one in loaded.warnings if url not in one]) == ((), []), setting.key.name


def test_both_sides_and_both_files_have_the_same_settings() -> None:
    """One table makes them all."""
    names = [key.name for key in EMS_KEYS]
    for setting in SETTINGS:
        assert f"{V}.{setting.key.name}" in names
        assert f"{K}.{setting.key.name}" in names
