"""Settings cross to other processes by value, secrets included; what is shown has none."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.formats.avro.settings import AvroConverter
from parquet_sink.config.secret import Secret, dump_with_secrets, load_with_secrets
from parquet_sink.convert.plain.settings import StringConverter
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.net.settings import ProxySettings
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.push.settings import PushSettings

CANARY = "canary-0be1"
texts = st.text()
secrets = st.builds(Secret, texts)
pushes = st.builds(PushSettings, endpoint=texts, authorization=secrets, target_table=texts, ca_file=st.none() | texts,
                   proxy=st.none() | st.builds(ProxySettings, host=texts, password=st.none() | secrets))  # fmt: skip
kafkas = st.builds(
    KafkaSettings,
    topics=st.lists(texts).map(tuple),
    client=st.dictionaries(texts, texts | secrets),
    tasks_max=st.none() | st.integers(),
)
registries = st.builds(
    RegistrySettings,
    urls=st.lists(texts).map(tuple),
    username=st.none() | texts,
    password=st.none() | secrets,
    bearer_token=st.none() | secrets,
    key_password=st.none() | secrets,
    id_bytes=st.sampled_from((4, 8)),
)
converters = st.builds(AvroConverter, registry=registries) | st.builds(StringConverter, encoding=texts)
obfuscations = st.builds(
    ObfuscationSettings, fields=st.lists(texts).map(tuple), salt=st.none() | secrets, hmac_key=st.none() | secrets
)
shapes = st.builds(ShapeSettings, obfuscation=st.none() | obfuscations, chunks=st.none() | st.integers())
all_settings = st.builds(
    SinkSettings,
    kafka=kafkas,
    target=pushes,
    files=st.builds(FileSettings),
    shape=shapes,
    value=converters,
    key=st.none() | converters,
)
ONE = SinkSettings(
    name="n",
    kafka=KafkaSettings(topics=("t",), client={"sasl.password": Secret(CANARY), "a": "b"}),
    flush=FlushSettings(1, 2, 3),
    shape=ShapeSettings(primary_keys=("a", "b"), obfuscation=ObfuscationSettings(("c",), hmac_key=Secret(CANARY))),
    files=FileSettings("/tmp"),
    target=PushSettings("https://h", Secret(CANARY), "T", proxy=ProxySettings("h", 1, password=Secret(CANARY))),
    value=AvroConverter(RegistrySettings(("https://r",), "u", Secret(CANARY))),
    key=AvroConverter(RegistrySettings(("https://r",), bearer_token=Secret(CANARY))),
)


@given(all_settings)
def test_settings_survive_the_way_through_json(settings: SinkSettings) -> None:
    """Equal settings come out, with equal types: secrets are secrets and tuples are tuples."""
    loaded = load_with_secrets(dump_with_secrets(settings))
    assert loaded == settings
    assert type(loaded.kafka.topics) is tuple
    assert isinstance(loaded.target.authorization, Secret)
    assert type(loaded.value) is type(settings.value)


def test_only_the_named_form_holds_secrets() -> None:
    """What repr and str show has stars."""
    assert CANARY in dump_with_secrets(ONE)
    assert CANARY not in repr(ONE) + str(ONE)


@dataclass(frozen=True)
class Bucket:
    """Settings that no module of the sink knows."""

    region: str
    credential: Secret | tuple[Secret, ...]


@dataclass(frozen=True)
class BucketSettings(SinkSettings):
    """Those of another connector class, with a field of its own."""

    bucket: Bucket | None = None


@given(texts, secrets, st.lists(secrets).map(tuple))
def test_a_connector_class_may_have_settings_of_its_own(region: str, one: Secret, more: tuple[Secret, ...]) -> None:
    """A dataclass of any module comes back as what it was, with its secrets, also where the field has a choice."""
    for credential in (one, more):
        mine = BucketSettings(**{**vars(ONE), "bucket": Bucket(region, credential)})
        loaded = load_with_secrets(dump_with_secrets(mine))
        assert loaded == mine
        assert type(loaded) is BucketSettings


def test_what_cannot_be_handed_over_is_told_at_once() -> None:
    """A value that would come back as another is no setting: the program is told, not the process that reads it."""
    with pytest.raises(TypeError, match="set cannot be handed over"):
        dump_with_secrets(replace(ONE, shape={"a"}))


NOT_OURS = (
    *("{", "{}", "[]", "1", '{"name": "n", "other": 1}', '{"$class": "nowhere.at_all:A", "fields": {}}'),
    *(
        '{"$class": "os:system", "fields": {}}',
        '{"$class": "pathlib:Path", "fields": {}}',
        '{"$class": "json:no.where"}',
    ),
)


@pytest.mark.parametrize("text", NOT_OURS)
def test_foreign_json_is_refused(text: str) -> None:
    """A text that was not written by the counterpart raises at once."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        load_with_secrets(text)


def test_a_client_setting_called_like_the_mark_is_no_trap() -> None:
    """A mapping with one entry named as the mark of a secret stays what it is."""
    odd = replace(ONE, kafka=KafkaSettings(client={"$secret": "x"}))
    assert load_with_secrets(dump_with_secrets(odd)) == odd
