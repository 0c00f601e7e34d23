"""Config providers of a worker file: Kafka's own under any name, and classes of a user's own."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.config.built_in_providers import BUILT_IN
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import NotGiven
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.worker_config.provider_class import GuardedProvider, OfMachine, find_class
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.connectors.ems.connector_files import GOOD, E
from tests.messages import assert_says

CANARY = "canary-9d2c"
KAFKA = "org.apache.kafka.common.config.provider."
OWN = '''
from parquet_sink.config.key import Key, Type
from parquet_sink.worker_config.provider_class import ProviderError, WrongSettings

class VaultConfigProvider:
    """A vault."""

    keys = (
        Key("address", "Vault", Type.STRING, "Where it is.", required=True, missing="give its address."),
        Key("token", "Vault", Type.PASSWORD, "Who asks."),
    )

    def __init__(self, values):
        if values.text("address") == "nowhere":
            raise WrongSettings({"address": f"{values.quoted('address')} is not an address; write vault://host."})
        if values.text("address") == "bug":
            raise RuntimeError(values.secret("token").reveal())
        self.token = values.secret("token")
        self.asked = 0

    def get(self, path, keys):
        self.asked += 1
        if path == "sealed":
            raise ProviderError("the vault is sealed; unseal it.")
        if path == "bug":
            raise ValueError(self.token.reveal())
        if path == "list":
            return list(keys)
        if path == "bytes":
            return {key: b"" for key in keys}
        if path == "count":
            return {key: f"AppKey {self.asked}" for key in keys}
        return {key: f"AppKey {self.token.reveal() if self.token else '-'}-{path}" for key in keys if key != "no"}

class Bare:
    pass
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of a user's own; its name."""
    name = "own_providers_for_a_test"
    (tmp_path / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


FILES = {"/s/worker": f"token={CANARY}\n", "/s/key": f"AppKey {CANARY}\n"}


def read(path: str) -> str:
    """A file of the machine."""
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


MACHINE = Machine(read_text=read, environ={"TOKEN": CANARY, "SINK_KEY": f"AppKey {CANARY}"})


def worker(providers: dict[str, str]) -> LoadedWorker:
    """A worker file with these keys below `config.`."""
    properties = {"bootstrap.servers": "k:9092", **{f"config.{key}": text for key, text in providers.items()}}
    return load_worker(properties, source="w.properties", machine=MACHINE)


def vault(own: str, **more: str) -> dict[str, str]:
    """A provider named v of the class of one's own."""
    of_class = {"providers": "v,env", "providers.v.class": f"{own}.VaultConfigProvider"}
    return {**of_class, "providers.v.param.address": "vault://h", **more}


def key_of(text: str, loaded: LoadedWorker) -> Loaded:
    """A connector with this as the value of its key."""
    return load({**GOOD, f"{E}authorization.key": text}, loaded.require(), source="f")


def given(text: str, loaded: LoadedWorker) -> str:
    """What the value comes to."""
    authorization = key_of(text, loaded).require().target.authorization  # type: ignore[union-attr]
    return str(authorization.reveal())


def refused(text: str, loaded: LoadedWorker) -> str:
    """Why such a value is none; never with a secret in it."""
    one = key_of(text, loaded)
    (problem,) = one.problems
    assert CANARY not in repr(one) + problem
    return problem.removeprefix(f"Invalid [{E}authorization.key]. ")


def test_kafkas_own_by_any_name() -> None:
    """Their classes in full, or by the last part, under a name of one's own; without a list all three are there."""
    named = {"providers": "secrets, folder,e", "providers.secrets.class": f"{KAFKA}FileConfigProvider"}
    named |= {"providers.folder.class": "DirectoryConfigProvider", "providers.e.class": f"{KAFKA}EnvVarConfigProvider"}
    loaded = worker(named)
    assert (loaded.problems, loaded.warnings) == ((), ())
    assert given("AppKey ${secrets:/s/worker:token}", loaded) == f"AppKey {CANARY}"
    assert given("${folder:/s:key}", loaded) == given("${e:SINK_KEY}", loaded) == f"AppKey {CANARY}"
    told = refused("${file:/s/worker:token}", loaded)
    assert_says(told, "${file:/s/worker:token}", "config provider file", "write config.providers=secrets,folder,e,file")
    assert given("${env:SINK_KEY}", worker({})) == f"AppKey {CANARY}"


def test_kafkas_own_are_in_the_registry() -> None:
    """By Kafka's names, with their keys; without a list the same three are there."""
    for name in plugins.BUILT_IN[plugins.CONFIG_PROVIDERS]:
        class_ = find_class(name)
        assert isinstance(class_, OfMachine)
        assert {key.name for key in class_.keys} <= {"allowed.paths", "allowlist.pattern"}
    assert {find_class(name) for name in plugins.BUILT_IN[plugins.CONFIG_PROVIDERS]} == set(BUILT_IN.values())


def test_what_they_may_read_is_honoured() -> None:
    """Kafka's own params."""
    loaded = worker(
        {
            "providers": "file,directory,env",
            "providers.file.param.allowed.paths": "/s/other,/t",
            "providers.directory.class": "DirectoryConfigProvider",
            "providers.directory.param.allowed.paths": "/s",
            "providers.env.param.allowlist.pattern": "SINK_.*",
        }
    )
    assert (loaded.problems, loaded.warnings) == ((), ())
    told = refused("${file:/s/worker:token}", loaded)
    assert_says(told, "/s/worker", "not below config.providers.file.param.allowed.paths", "allow it there")
    assert given("${directory:/s:key}", loaded) == given("${env:SINK_KEY}", loaded) == f"AppKey {CANARY}"
    told = refused("AppKey ${env:TOKEN}", loaded)
    assert_says(told, "TOKEN", "not among config.providers.env.param.allowlist.pattern", "allow it there")


def test_a_class_of_ones_own(own: str) -> None:
    """Found by its path, made with its params, which may come from Kafka's own, and asked for each connector."""
    loaded = worker(vault(own, **{"providers.v.param.token": "${env:TOKEN}"}))
    assert (loaded.problems, loaded.warnings) == ((), ())
    assert CANARY not in repr(loaded)
    assert given("${v:p/q:x}", loaded) == f"AppKey {CANARY}-p/q"
    assert CANARY not in repr(key_of("${v:p/q:x}", loaded))


def test_the_worker_file_may_ask_its_own_providers(own: str) -> None:
    """For whatever is not about them."""
    properties = {f"config.{key}": text for key, text in vault(own).items()}
    properties |= {"bootstrap.servers": "k:9092", "consumer.sasl.jaas.config": "${v:p:x}"}
    loaded = load_worker(properties, source="w", machine=MACHINE).require()
    assert str(loaded.consumer["sasl.jaas.config"].reveal()) == "AppKey --p"  # type: ignore[union-attr]


def test_by_an_entry_point(own: str, tmp_path: Path) -> None:
    """Of an installed package, by its name or what is short for it."""
    (tmp_path / "own-1.dist-info").mkdir()
    points = f"[parquet_sink.config_providers]\ncom.x.VaultConfigProvider = {own}:VaultConfigProvider\n"
    (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    for name in ("com.x.VaultConfigProvider", "VaultConfigProvider", "Vault"):
        assert given("${v:p:x}", worker(vault(own, **{"providers.v.class": name}))) == "AppKey --p"


def test_a_connector_that_is_loaded_again_asks_again(own: str) -> None:
    """A provider may have another answer at a restart; a file that was changed has."""
    loaded = worker(vault(own))
    assert [given("${v:count:x}", loaded) for _ in range(2)] == ["AppKey 1", "AppKey 2"]
    before, FILES["/s/key"] = FILES["/s/key"], "AppKey new\n"
    plain = worker({})
    assert given("${directory:/s:key}", plain) == "AppKey new"
    FILES["/s/key"] = before
    assert given("${directory:/s:key}", plain) == f"AppKey {CANARY}"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sealed", ("the vault is sealed; unseal it.",)),
        ("bug", ("provider v", "ValueError", "own_providers_for_a_test.py, line 26", "correct its class")),
        ("list", ("provider v", "no mapping", "of type list", "correct its class")),
        ("bytes", ("provider v", "no text", "of type bytes", "correct its class")),
    ],
)
def test_what_a_class_does_wrong_is_told_without_its_words(
    own: str, path: str, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Only what it raises to be told is; an error of another kind may quote the secret, so not even DEBUG has it."""
    caplog.set_level("DEBUG")
    loaded = worker(vault(own, **{"providers.v.param.token": CANARY}))
    assert_says(refused(f"${{v:{path}:x}}", loaded), f"${{v:{path}:x}}", *words)
    assert CANARY not in caplog.text


def test_a_key_that_is_not_there_is_named(own: str) -> None:
    """With its path, if it has one."""
    loaded = worker(vault(own))
    at_path, without = refused("${v:p:no}", loaded), refused("${v:no}", loaded)
    assert_says(at_path, "${v:p:no}", "provider v", "no no at p", "correct the path")
    assert_says(without, "${v:no}", "provider v", "no no", "correct the path")
    assert " at " not in without


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"providers.v.class": ""}, "providers.v.class", ("missing", "config provider v", "env, file, directory")),
        ({"providers.v.class": "Valut"}, "providers.v.class", ('"Valut"', "not a known config provider", "known are")),
        (
            {"providers.v.class": "own_providers_for_a_test.Bare"},
            "providers.v.class",
            ('"own_providers_for_a_test.Bare"', "no keys", "correct"),
        ),
        (
            {"providers.v.class": "own_providers_for_a_test.None"},
            "providers.v.class",
            ('"own_providers_for_a_test.None"', "cannot be loaded", "correct"),
        ),
        ({"providers.v.param.address": ""}, "providers.v.param.address", ("missing", "give its address")),
        (
            {"providers.v.param.address": "nowhere"},
            "providers.v.param.address",
            ('"nowhere"', "not an address", "vault://host"),
        ),
        (
            {"providers.v.param.address": "bug", "providers.v.param.token": CANARY},
            "providers.v.class",
            ("fails", "RuntimeError", "own_providers_for_a_test.py", "correct the class"),
        ),
        (
            {"providers.v.param.token": "${env:NONE}"},
            "providers.v.param.token",
            ("${env:NONE}", "environment variable NONE", "not set", "before the start"),
        ),
        (
            {"providers.v.param.token": "${v:p:x}"},
            "providers.v.param.token",
            ("${v:p:x}", "unknown config provider v", "known are env."),
        ),
        ({"providers": "v,env,v"}, "providers", ('"v"', "twice", "once")),
        (
            {"providers": "v,file", "providers.file.param.allowed.paths": "s"},
            "providers.file.param.allowed.paths",
            ('"s"', "not an absolute path", "from / on"),
        ),
        (
            {"providers.env.param.allowlist.pattern": "("},
            "providers.env.param.allowlist.pattern",
            ('"("', "not a regular expression", "correct it"),
        ),
    ],
)
def test_what_is_wrong_with_a_provider_is_told_by_its_key(
    own: str, changes: dict[str, str], key: str, words: tuple[str, ...]
) -> None:
    """Once, in the worker file, without secrets; and connectors are not told that it is unknown."""
    loaded = worker(vault(own, **changes))
    (found,) = loaded.problems
    assert_says(found, f"Invalid [config.{key}]", *words)
    assert CANARY not in repr(loaded)
    one = load({**GOOD, f"{E}authorization.key": "${v:p:x}"}, loaded.worker, source="f")
    assert not any("unknown config provider" in text for text in one.problems)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("providers.v.param.adress", ("unknown", "Did you mean config.providers.v.param.address?")),
        ("providers.w.class", ('config.providers does not name "w"', "list it there", "remove")),
        ("providers.vv.class", ("Did you mean config.providers.v.class?",)),
        ("providers.v.clas", ("unknown", "config.providers.v.class")),
    ],
)
def test_a_key_of_nobodys_is_warned_about(own: str, key: str, words: tuple[str, ...]) -> None:
    """With the nearest there is."""
    loaded = worker(vault(own, **{key: "x"}))
    assert loaded.problems == ()
    (found,) = loaded.warnings
    assert_says(found, f"Warning [config.{key}]", "no effect", *words)


class Hanging:
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def get(self, path: str, keys: tuple[str, ...]) -> dict[str, str]:
        assert self.go.wait(10)
        return dict.fromkeys(keys, "late")


def test_a_provider_that_hangs_is_left_alone() -> None:
    """The worker goes on in time, asks nobody else there meanwhile, and asks again once it has come back."""
    inner = Hanging()
    provider = GuardedProvider("v", inner, patience_s=0.02)
    first = provider.ask("p", ["x"])["x"]
    provider._patience_s = 60.0  # which the next one does not wait
    second = provider.ask("p", ["x"])["x"]
    assert_says(getattr(first, "text", ""), "provider v", "not answer within 0.02 s", "see whether")
    assert_says(getattr(second, "text", ""), "provider v", "not answered", "an earlier request", "correct its class")
    inner.go.set()
    with provider._asking:  # free again
        pass
    assert GuardedProvider("v", inner).ask("p", ["x"]) == provider.ask("p", ["x"]) == {"x": "late"}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("${v:sealed:x}", True),
        ("${v:bug:x}", True),
        ("${directory:/s:none}", True),
        ("${v:p:no}", False),
        ("${v:list:x}", False),
        ("${env:NONE}", False),
        ("${nobody:x}", False),
    ],
)
def test_what_may_pass_is_told_from_what_must_be_corrected(own: str, text: str, passes: bool) -> None:
    """A provider that is away may be there later, by the connector's own bounds; a wrong key is wrong for good."""
    loaded = worker(vault(own, providers="v,env,directory"))
    wrong = {**GOOD, f"{E}authorization.key": text, f"{E}away.timeout.ms": "7000", f"{E}restart.interval.ms": "300"}
    found = load(wrong, loaded.require(), source="f")
    assert found.again == (RestartSettings(pause_ms=300, away_ms=7_000) if passes else None)
    assert load({**wrong, f"{E}commit.records": "many"}, loaded.require(), source="f").again is None
    assert load({**wrong, "connector.class": text}, loaded.require(), source="f").settings is None


def test_a_provider_that_hangs_may_pass() -> None:
    """Whether it is asked for the first time or hangs still."""
    provider = GuardedProvider("v", Hanging(), patience_s=0.02)
    for _ in range(2):
        answer = provider.ask("p", ["x"])["x"]
        assert isinstance(answer, NotGiven)
        assert answer.passes
