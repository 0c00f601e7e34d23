"""Every connector class with every key of any class, given, wrong and missing: settings or problems, never a trace.

Keys are shared by classes that leave some of them out, so a rule that asks for one it takes for granted fails in the
class that has it not. These tests are made of the tables of keys, and so hold for classes and keys that come.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random, sample
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink import plugins
from parquet_sink.cli.hosting import Plan, loader
from parquet_sink.config.key import Key, Type
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import Checked, format_report
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, find_class
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.settings import SIDES
from parquet_sink.process.signals import StopRequest
from parquet_sink.worker.rest.call import Call
from parquet_sink.worker.rest.plugins import Plugins
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from parquet_sink.worker_config.worker_keys import WORKER_KEYS
from tests.connectors.ems.connector_files import GOOD as EMS
from tests.connectors.ems.connector_files import E
from tests.thorough import examples
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import by_keys

CLASSES: Final = tuple(plugins.BUILT_IN[CONNECTOR_CLASSES.group])
_JSON: Final = {key: text for key, text in EMS.items() if key.startswith("value.converter")}
_SINK: Final = {"name": "orders", "topics": "orders", **_JSON}
_BUCKET: Final = {
    **{key: text for key, text in EMS.items() if key not in (f"{E}endpoint", f"{E}authorization.key")},
    f"{E}target.type": "s3",
    f"{E}s3.bucket": "lake",
    f"{E}s3.region": "eu-central-1",
}
_SOURCE: Final = {"name": "lines", "file": "lines.txt", "topic": "lines", **_JSON}
COMPLETE: Final[Mapping[str, Mapping[str, str]]] = {
    "EmsSink": EMS,
    "EmsSinkConnector": _BUCKET,
    "S3Sink": _BUCKET,
    "FileStreamSourceConnector": _SOURCE,
    "FileStreamSinkConnector": {**_SINK, "file": "lines.txt"},
}
"""What each class needs, by the last part of its name."""
SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "topics.regex": ("orders-.*", "["),
    "value.converter": ("StringConverter", "AvroConverter", "XmlConverter", "nothing.Converter"),
    "key.converter": ("StringConverter", "ByteArrayConverter", "AvroConverter", "nothing.Converter"),
    "header.converter": ("StringConverter", "SimpleHeaderConverter", "nothing.Converter"),
    "transforms": ("hoist", "sql", "absent"),
    "predicates": ("tombstone", "absent"),
    "consumer.override.*": ("1", "SASL_SSL"),
    "consumer.override.bootstrap.servers": ("a:1,b:2", "a"),
    f"{E}endpoint": ("directory:/tmp/lake", "https://a.example/x", "http://a.example/x", "https:"),
    f"{E}authorization.key": ("Bearer x", "x"),
    f"{E}oauth2.token.url": ("https://a.example/token", "http://a.example/token"),
    f"{E}target.table.map": ("orders:A,.*:B", "orders"),
    f"{E}data.primary.key": ("id", "id,kafkaOffset", "1"),
    f"{E}order.field.name": ("id", "kafkaOffset", "__celonis_order"),
    f"{E}tmp.dir": ("/var/tmp/parquet-sink", "/dev/null"),
    f"{E}obfuscation.fields": ("id", "a.b", "a,a.b"),
    f"{E}obfuscation.hmac.key": ("0123456789abcdef", "short"),
    f"{E}s3.prefix": ("{topic}", "{table}/{topic}", "{"),
    f"{E}s3.endpoint": ("https://a.example", "http://a.example", "https://a.example/x"),
    f"{E}archive.url": ("s3://kept/old", "s3://lake", "directory:/var/tmp/kept", "directory:/tmp/lake", "file:/x"),
    f"{E}tls.ca.file": ("/etc/ca.pem", "/dev/null"),
    "errors.deadletterqueue.topic.name": ("letters", "orders", "a b"),
    "errors.deadletterqueue.topic.replication.factor": ("1", "0"),
    "topic": ("lines", "a b"),
}
"""Texts of keys whose rule is more than type and choice: at least one that is right and one that is not, or is odd."""


def _keys() -> dict[str, Key]:
    found: dict[str, Key] = {}
    for name in CLASSES:
        for key in find_class(name).keys:
            found.setdefault(key.name, key)
    return found


KEYS: Final = _keys()
OWN: Final = [
    key
    for key in KEYS.values()
    if key.name != "connector.class" and not key.name.startswith(tuple(f"{side}.converter." for side in SIDES))
]
"""Without settings of converters, which are many, and of which no class of connectors has its own."""


def _texts(key: Key) -> Iterator[str]:
    """What somebody might write there."""
    yield from SAMPLES.get(key.name, ())
    if key.type is Type.BOOLEAN:
        yield from ("true", "false")
    elif key.type in (Type.INT, Type.LONG):
        least = 1 if key.minimum is None else key.minimum
        yield from (str(least), str(least + 10_000_000))
    elif key.choices:
        yield from key.choices
    else:
        yield "x"
    yield from ("", "\x07?", "${env:SECRET}", "${env:ABSENT}")


def _given(key: Key) -> str:
    """The name that a file gives it: of a prefix, a name below that."""
    return f"{key.name[:-1]}some" if key.is_prefix else key.name


@cache
def _worker(folder: str, secret: str = "canary") -> Worker:
    machine = Machine(
        tmp_dir=folder,
        memory_dir=folder,
        working_dir=folder,
        is_file=lambda path: path.endswith((".pem", "/null")),
        environ={"SECRET": secret},
    )
    offsets = {"offset.storage.file.filename": f"{folder}/offsets", "bootstrap.servers": "a:1"}
    return load_worker(offsets, source="worker.properties", bootstrap_option=None, machine=machine).worker


def _without(config: Mapping[str, str], name: str) -> dict[str, str]:
    """The class itself stays: of another there is nothing to say."""
    return {key: text for key, text in config.items() if key != name or key == "connector.class"}


class Asked:
    """Answers as `check` gives them, and as REST does."""

    def __init__(self, folder: Path) -> None:
        self._worker = _worker(str(folder))
        self._loads = loader(Plan(self._worker, StopRequest()))
        self._rest = Plugins(FakeHerder(), by_keys(self._worker))

    def by_tables(self, config: Mapping[str, str]) -> tuple[str, ...]:
        """The problems, of a file that has settings without any."""
        loaded = load(config, self._worker, source="f.properties")
        assert (loaded.settings is None) == bool(loaded.problems)
        return loaded.problems

    def by_machine(self, config: Mapping[str, str]) -> tuple[str, ...]:
        """With what the machine and the libraries know, as both do in the end; the whole report can be written."""
        loaded = self._loads(config, "orders")
        assert (loaded.settings is None) == bool(loaded.problems)
        assert format_report(Checked(LoadedWorker(self._worker), (loaded,), ()))
        return loaded.problems

    def by_rest(self, config: Mapping[str, str]) -> list[str]:
        """All errors of the validation."""
        path = {"plugin": config["connector.class"]}
        infos = self._rest.validate(Call(path=path, body=dict(config))).content
        errors = [error for one in infos["configs"] for error in one["value"]["errors"]]
        assert infos["error_count"] == len(errors)
        return errors


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Of a worker with a place for offsets."""
    return Asked(tmp_path_factory.mktemp("worker"))


def _complete(name: str) -> dict[str, str]:
    return {"connector.class": name, **COMPLETE[name.rpartition(".")[2]]}


@pytest.mark.parametrize("name", CLASSES)
def test_what_each_class_needs_is_enough(name: str, asked: Asked) -> None:
    """Else the tests below would see problems only."""
    config = _complete(name)
    assert (asked.by_tables(config), asked.by_machine(config), asked.by_rest(config)) == ((), (), [])


@pytest.mark.parametrize("name", CLASSES)
def test_any_key_of_any_class_is_judged(name: str, asked: Asked) -> None:
    """With whatever text: of its own class, and of another that has it not. See `examples`."""
    config = _complete(name)
    for key in sample([*KEYS.values()], examples(len(KEYS))):
        for text in _texts(key) if key in OWN else [next(_texts(key))]:
            asked.by_tables({**config, _given(key): text})


@pytest.mark.parametrize("name", CLASSES)
def test_rest_tells_the_same_for_each_key(name: str, asked: Asked) -> None:
    """Given or missing: all that is wrong, beside the key that it is about. It alone wants a name. See `examples`."""
    config = _complete(name)
    for key in sample(OWN, examples(len(OWN))):
        changes = [{**config, _given(key): next(_texts(key))}]
        changes += [_without(config, key.name)] if key.name in config and key.name != "name" else []
        for changed in changes:
            assert sorted(asked.by_tables(changed)) == sorted(asked.by_rest(changed))


@pytest.mark.parametrize("name", CLASSES)
def test_all_keys_together_but_one_are_judged(name: str, asked: Asked) -> None:
    """Much of that cannot go together, and each that cannot is a problem or a warning."""
    config = {_given(key): next(_texts(key)) for key in OWN} | _complete(name)
    for missing in COMPLETE[name.rpartition(".")[2]]:
        asked.by_tables(_without(config, missing))


def _mixed(name: str, random: Random) -> dict[str, str]:
    """Some keys more than it needs, and perhaps one missing; most are right, so that settings are made, too."""
    config = _complete(name)
    for key in random.sample(OWN, random.randint(2, 12)):
        texts = list(_texts(key))
        config[_given(key)] = texts[0] if random.random() < 0.8 else random.choice(texts)
    return _without(config, random.choice([*config, "", ""]))


@pytest.mark.parametrize("name", CLASSES)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=examples(150))
def test_any_keys_together_are_judged(name: str, asked: Asked, random: Random) -> None:
    """By the tables of keys, and the rules between them."""
    asked.by_tables(_mixed(name, random))


@pytest.mark.parametrize("name", CLASSES)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=examples(12))
def test_any_keys_together_are_tried_on_the_machine(name: str, asked: Asked, random: Random) -> None:
    """By folders, certificates and the libraries of clients, too; few, because these are slow to load."""
    asked.by_machine(_mixed(name, random))


@pytest.mark.parametrize(("kind", "keys"), [("connector", tuple(KEYS.values())), ("worker", WORKER_KEYS)])
def test_no_message_has_what_a_provider_gave(kind: str, keys: tuple[Key, ...], tmp_path: Path) -> None:
    """Whatever key it is given to, and whatever is wrong with it: the placeholder is shown."""
    config, told = {"connector.class": CLASSES[0], **EMS}, []
    for key in keys:
        first = next(_texts(key))
        for value in ("Canary9", f"{first}Canary9", f"{first},Canary9,Canary9", "Canary9:a,Canary9:b"):
            worker = _worker(str(tmp_path), value)
            given = {_given(key): "${env:SECRET}"}
            found: Loaded | LoadedWorker = (
                load({**config, **given}, worker, source="f.properties")
                if kind == "connector"
                else load_worker({"bootstrap.servers": "a:1", **given}, source="w.properties", machine=worker.machine)
            )
            told += [*found.problems, *found.warnings]
    assert sum("${env:SECRET}" in one for one in told) > 20
    assert [one for one in told if "canary9" in one.lower()] == []
