"""Kafka's jars: Java, the cache, the lock file, and what is said when something is missing; without network or Java."""

import hashlib
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit import ivy, jars
from parquet_sink.addons.devkit.ivy import Jar
from parquet_sink.addons.devkit.jars import Lock
from parquet_sink.errors import SetupError
from parquet_sink.process.java_home import find_java
from tests.factories import with_java
from tests.messages import assert_says, saying

CONTENT = b"the content of every jar here\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LOCK = Lock("9.9.9", tuple(Jar("org.example", name, "1.0", len(CONTENT), DIGEST) for name in ("alpha", "beta")))

# Stands for Java and Ivy: tells a version, counts its runs, and delivers each dependency that ivy.xml names.
FAKE_JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.9" 2023-10-17' >&2; exit 0; fi
echo run >> "$RUNS"
cp ivysettings.xml "$RUNS.settings"
mkdir -p jars
for name in $(grep -o 'name="[a-z]*" rev' ivy.xml | cut -d'"' -f2 | grep -v default); do
    echo 'the content of every jar here' > "jars/$name-1.0.jar"
    echo "	[SUCCESSFUL ] org.example#$name;1.0!$name.jar (1ms)"
done
"""


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with a cache folder of its own and a stand-in for Java."""
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    return with_java(tmp_path, FAKE_JAVA) | {"PARQUET_SINK_CACHE": str(tmp_path / "cache")}


def runs(folder: Path) -> int:
    """How often Ivy ran."""
    return (folder / "runs").read_text().count("run") if (folder / "runs").exists() else 0


def test_cache_folder_follows_the_environment() -> None:
    """Our own variable wins over XDG's, a relative XDG folder is ignored as its rules say, and home comes last."""
    assert jars.cache_folder({"PARQUET_SINK_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert jars.cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/parquet-sink")
    assert jars.cache_folder({"XDG_CACHE_HOME": "b"}) == Path.home() / ".cache" / "parquet-sink"


def test_mirror_replaces_maven_central() -> None:
    """The mirror's address is used as given, Maven Central's otherwise."""
    mirror = {"PARQUET_SINK_MAVEN_REPOSITORY": "https://mirror.example/maven/"}
    assert jars.repository(mirror) == "https://mirror.example/maven"
    assert jars.repository({}) == ivy.MAVEN_CENTRAL


def test_mirror_that_is_no_address_is_refused() -> None:
    """A mirror without a scheme is refused by the name of its variable."""
    with pytest.raises(SetupError, match=saying("PARQUET_SINK_MAVEN_REPOSITORY", "'mirror.example'")):
        jars.repository({"PARQUET_SINK_MAVEN_REPOSITORY": "mirror.example"})


def test_password_in_the_mirror_is_never_shown() -> None:
    """A mirror's address with a password is refused without repeating it."""
    with pytest.raises(SetupError, match="user or password") as refused:
        jars.repository({"PARQUET_SINK_MAVEN_REPOSITORY": "https://me:hunter2@mirror.example/maven"})
    assert "hunter2" not in str(refused.value)


def test_proxy_variables_reach_java() -> None:
    """Proxies of the environment become Java's properties, with hosts to reach directly."""
    given_ = {"https_proxy": "http://proxy.example:3128", "HTTP_PROXY": "other:80", "NO_PROXY": "localhost, .corp"}
    assert ivy.proxy_flags(given_) == [
        "-Dhttp.proxyHost=other",
        "-Dhttp.proxyPort=80",
        "-Dhttps.proxyHost=proxy.example",
        "-Dhttps.proxyPort=3128",
        "-Dhttp.nonProxyHosts=localhost|*.corp",
    ]
    assert ivy.proxy_flags({"https_proxy": ""}) == []


def test_shipped_lock_file_names_a_whole_broker() -> None:
    """The lock file has the broker, its tools and its logging, each once, with size and SHA-256."""
    lock = jars.read_lock()
    names = [jar.name for jar in lock.jars]
    assert len(set(names)) == len(names)
    for module in ("kafka_2.13", "kafka-clients", "kafka-tools"):
        assert f"{module}-{lock.kafka_version}.jar" in names
    assert any(name.startswith("log4j-slf4j-impl-") for name in names)
    assert all(jar.size_bytes > 0 and len(jar.sha256) == 64 for jar in lock.jars)


def test_lock_file_survives_writing_and_reading(tmp_path: Path) -> None:
    """What is written is what is read."""
    jars.write_lock(LOCK, tmp_path / "lock.json")
    assert jars.read_lock(tmp_path / "lock.json") == LOCK
    assert json.loads((tmp_path / "lock.json").read_text())["kafka"] == "9.9.9"


def test_lock_file_of_another_name_has_a_folder_of_its_own(environment: dict[str, str], tmp_path: Path) -> None:
    """Jars of another lock file for the same Kafka do not replace the broker's: their folder has another name."""
    other = replace(LOCK, name="more")
    jars.write_lock(other, tmp_path / "lock.json")
    assert jars.read_lock(tmp_path / "lock.json") == other
    folders = [jars.fetch(lock, report=lambda text: None, environment=environment)[0].name for lock in (LOCK, other)]
    assert folders == ["kafka-9.9.9", "more-9.9.9"]


@given(st.sampled_from(["size_bytes", "sha256", "revision"]))
def test_digest_of_the_lock_file_changes_with_any_jar(field: str) -> None:
    """No change to a jar's entry leaves the digest as it was, so an older cache is never taken for the new one."""
    changed = replace(LOCK.jars[0], **{field: 7 if field == "size_bytes" else "7"})
    assert replace(LOCK, jars=(changed, LOCK.jars[1])).digest != LOCK.digest


def test_fetch_fills_the_cache_once(environment: dict[str, str], tmp_path: Path) -> None:
    """The first call fetches with progress, the second finds everything and starts nothing."""
    said: list[str] = []
    folder, java = jars.fetch(LOCK, report=said.append, environment=environment)
    assert folder == tmp_path / "cache" / "kafka-9.9.9"
    assert java == str(tmp_path / "home" / "bin" / "java")
    assert [(folder / jar.name).read_bytes() for jar in LOCK.jars] == [CONTENT, CONTENT]
    begun, done = said
    assert_says(begun, "Kafka 9.9.9", "2 jars", ivy.MAVEN_CENTRAL)
    assert_says(done, "Kafka 9.9.9", "2 of 2 jars")
    assert jars.fetch(LOCK, report=said.append, environment=environment) == (folder, java)
    assert (runs(tmp_path), len(said)) == (1, 2)


def test_mirror_reaches_ivy(environment: dict[str, str], tmp_path: Path) -> None:
    """Ivy's settings hold the mirror's address, escaped for XML, and nothing of Maven Central."""
    mirror = environment | {"PARQUET_SINK_MAVEN_REPOSITORY": "https://mirror.example/m2?a=1&b=2"}
    jars.fetch(LOCK, report=lambda text: None, environment=mirror)
    settings = (tmp_path / "runs.settings").read_text()
    assert 'root="https://mirror.example/m2?a=1&amp;b=2"' in settings
    assert ivy.MAVEN_CENTRAL not in settings


@pytest.mark.parametrize("damage", ["shorter", "absent", "other lock file"])
def test_damaged_cache_is_fetched_anew(environment: dict[str, str], tmp_path: Path, damage: str) -> None:
    """A jar of another size, a jar that is gone, or a cache of another lock file is replaced as a whole."""
    folder, _ = jars.fetch(LOCK, report=lambda text: None, environment=environment)
    match damage:
        case "shorter":
            (folder / "alpha-1.0.jar").write_bytes(b"")
        case "absent":
            (folder / "alpha-1.0.jar").unlink()
        case _:
            (folder / jars.MARKER).write_text("another digest")
    jars.fetch(LOCK, report=lambda text: None, environment=environment)
    assert jars.is_complete(folder, LOCK)
    assert runs(tmp_path) == 2


def test_altered_jar_is_named_and_never_used(environment: dict[str, str], tmp_path: Path) -> None:
    """A jar with another SHA-256 stops the fetch by its name, and nothing of it stays in the cache."""
    expected = replace(LOCK, jars=(replace(LOCK.jars[0], sha256="0" * 64), LOCK.jars[1]))
    with pytest.raises(SetupError, match=saying("alpha-1.0.jar", DIGEST, "expected 0000", "not used", "Try again")):
        jars.fetch(expected, report=lambda text: None, environment=environment)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["kafka-9.9.9.lock"]


def test_jar_that_did_not_arrive_is_named(tmp_path: Path) -> None:
    """A jar that Ivy did not deliver is told by its name."""
    with pytest.raises(
        SetupError, match=saying("alpha-1.0.jar", "not arrive", "https://mirror.example", "Try again", "https_proxy")
    ):
        jars.verify(tmp_path, LOCK, "https://mirror.example")


def test_unreachable_repository_is_told_with_cause_and_cure(environment: dict[str, str], tmp_path: Path) -> None:
    """When Ivy fails, the message holds its cause, the address, the proxy variable and the mirror variable."""
    failing = FAKE_JAVA + "echo '\tServer access error at url https://x (java.net.ConnectException)'; exit 1\n"
    with_java(tmp_path, failing)
    with pytest.raises(SetupError) as failed:
        jars.fetch(LOCK, report=lambda text: None, environment=environment)
    told = (ivy.MAVEN_CENTRAL, "ConnectException", "https_proxy", "PARQUET_SINK_MAVEN_REPOSITORY")
    assert_says(failed.value, *told)


def test_silent_repository_is_given_up(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that hears nothing for too long ends instead of waiting for ever."""
    monkeypatch.setattr(ivy, "SILENCE_LIMIT_S", 0.2)
    with_java(tmp_path, FAKE_JAVA + "exec sleep 60\n")
    with pytest.raises(SetupError, match="no answer for"):
        jars.fetch(LOCK, report=lambda text: None, environment=environment)


def test_unusable_cache_folder_is_named(environment: dict[str, str], tmp_path: Path) -> None:
    """A cache folder that cannot be made is named, with the variable that moves it."""
    (tmp_path / "file").write_text("")
    blocked = environment | {"PARQUET_SINK_CACHE": str(tmp_path / "file" / "cache")}
    with pytest.raises(SetupError, match=saying("file/cache/kafka-9.9.9", "Not a directory", "PARQUET_SINK_CACHE")):
        jars.fetch(LOCK, report=lambda text: None, environment=blocked)


def test_two_at_once_fetch_once(environment: dict[str, str], tmp_path: Path) -> None:
    """Of several that need the jars at the same moment one fetches, and all get them."""
    folders: list[Path] = []
    threads = [
        threading.Thread(
            target=lambda: folders.append(jars.fetch(LOCK, report=lambda text: None, environment=environment)[0])
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [tmp_path / "cache" / "kafka-9.9.9"] * 4
    assert runs(tmp_path) == 1


def test_left_overs_of_a_killed_fetch_are_removed(environment: dict[str, str], tmp_path: Path) -> None:
    """What a killed process left half fetched does not pile up."""
    left_over = tmp_path / "cache" / "kafka-9.9.9.part-killed"
    left_over.mkdir(parents=True)
    jars.fetch(LOCK, report=lambda text: None, environment=environment)
    assert not left_over.exists()


def test_module_entry_prints_the_folder_or_the_error(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a program it prints the folder and ends with 0, or prints the error and ends with 2."""
    monkeypatch.setattr(jars, "fetch", lambda: find_java({"PATH": ""}))
    assert jars.main([]) == 2
    assert_says(capsys.readouterr().err, "Java 17 or newer", "needed")
    monkeypatch.setattr(jars, "fetch", lambda: (Path("/folder"), "java"))
    assert jars.main([]) == 0
    assert capsys.readouterr().out == "/folder\n"
