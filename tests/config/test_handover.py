"""Settings cross to other processes by value, secrets included; what is shown has none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.config.handover import dump_with_secrets, load_with_secrets
from parquet_sink.config.secret import Secret
from parquet_sink.config.settings import (
    ConnectorSettings,
    ConverterSettings,
    FileSettings,
    FlushSettings,
    KafkaSettings,
    ObfuscationSettings,
    ProxySettings,
    PushSettings,
    RegistrySettings,
    ShapeSettings,
)

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
converters = st.builds(ConverterSettings, registry=st.none() | registries, encoding=texts)
obfuscations = st.builds(
    ObfuscationSettings, fields=st.lists(texts).map(tuple), salt=st.none() | secrets, key=st.none() | secrets
)
shapes = st.builds(ShapeSettings, obfuscation=st.none() | obfuscations, chunks=st.none() | st.integers())
all_settings = st.builds(
    ConnectorSettings,
    kafka=kafkas,
    push=pushes,
    files=st.builds(FileSettings),
    shape=shapes,
    value=converters,
    key=st.none() | converters,
)
ONE = ConnectorSettings(
    name="n",
    kafka=KafkaSettings(topics=("t",), client={"sasl.password": Secret(CANARY), "a": "b"}),
    flush=FlushSettings(1, 2, 3),
    shape=ShapeSettings(primary_keys=("a", "b"), obfuscation=ObfuscationSettings(("c",), key=Secret(CANARY))),
    files=FileSettings("/tmp"),
    push=PushSettings("https://h", Secret(CANARY), "T", proxy=ProxySettings("h", 1, password=Secret(CANARY))),
    value=ConverterSettings("avro", RegistrySettings(("https://r",), "u", Secret(CANARY))),
    key=ConverterSettings("avro", RegistrySettings(("https://r",), bearer_token=Secret(CANARY))),
)


@given(all_settings)
def test_settings_survive_the_way_through_json(settings: ConnectorSettings) -> None:
    """Equal settings come out, with equal types: secrets are secrets and tuples are tuples."""
    loaded = load_with_secrets(dump_with_secrets(settings))
    assert loaded == settings
    assert type(loaded.kafka.topics) is tuple
    assert isinstance(loaded.push.authorization, Secret)
    assert type(loaded.value) is ConverterSettings


def test_only_the_named_form_holds_secrets() -> None:
    """What repr and str show has stars."""
    assert CANARY in dump_with_secrets(ONE)
    assert CANARY not in repr(ONE) + str(ONE)


@pytest.mark.parametrize("text", ["{", "{}", '{"name": "n", "other": 1}'])
def test_foreign_json_is_refused(text: str) -> None:
    """A text that was not written by the counterpart raises at once."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        load_with_secrets(text)


def test_a_client_setting_called_like_the_mark_is_no_trap() -> None:
    """A mapping with one entry named as the mark of a secret stays what it is."""
    odd = replace(ONE, kafka=KafkaSettings(client={"$secret": "x"}))
    assert load_with_secrets(dump_with_secrets(odd)) == odd
