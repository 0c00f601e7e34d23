"""Configurations without their passwords, and back."""

import pytest

from parquet_sink.config.key import Key, Type
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.hidden import HIDDEN, hide, hide_more, in_clear, restore, unknown
from tests.messages import assert_says

KEYS = (
    Key("pin", "", Type.PASSWORD, ""),
    Key("data.primary.key", "", Type.STRING, ""),
    Key("sign.in.as", "", Type.PASSWORD, ""),
    Key("token.*", "", Type.PASSWORD, ""),
    Key("consumer.override.*", "", Type.STRING, ""),
)


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("pin", "1234", HIDDEN),
        ("pin", "", ""),
        ("pin", "${file:/run/secrets:pin}", "${file:/run/secrets:pin}"),
        ("pin", "AppKey ${env:KEY}", "AppKey ${env:KEY}"),
        ("pin", "salt${env:KEY}", HIDDEN),
        ("pin", "${KEY}", HIDDEN),
        ("data.primary.key", "id", "id"),
        ("token.anything", "x", HIDDEN),
        ("consumer.override.sasl.jaas.config", 'x required password="p";', HIDDEN),
        ("consumer.override.ssl.truststore.location", "/a.jks", "/a.jks"),
        ("nobody.knows.password", "p", HIDDEN),
        ("nobody.knows", "p", "p"),
        ("sign.in.sa", "p", HIDDEN),
        ("Sign.In.As", "p", HIDDEN),
        ("sign.out.of", "p", "p"),
        (
            "schema.registry.url",
            "http://me:p@one:1,http://you:q@two:2/x",
            f"http://me:{HIDDEN}@one:1,http://you:{HIDDEN}@two:2/x",
        ),
        ("schema.registry.url", "http://one:1/a:b@c", "http://one:1/a:b@c"),
    ],
)
def test_passwords_are_hidden(name: str, text: str, shown: str) -> None:
    """By the type of a key, the name of one that nobody knows or a slip in it, and in a URL; placeholders are shown."""
    assert hide({name: text}, KEYS) == {name: shown}


def test_what_was_hidden_comes_back() -> None:
    """A configuration that was read and put back, with another key changed, keeps its passwords."""
    stored = {"pin": "1234", "url": "http://me:p@one", "name": "x", "token.a": "[hidden]"}
    changed = {**hide(stored, KEYS), "name": "y"}
    assert "1234" not in str(changed)
    assert restore(changed, stored, KEYS) == {**stored, "name": "y"}


def test_a_new_password_is_taken() -> None:
    """Only the hidden text stands for what is stored."""
    assert restore({"pin": "5678"}, {"pin": "1234"}, KEYS) == {"pin": "5678"}


def test_hidden_text_elsewhere_is_a_text() -> None:
    """In a regular expression it is a class of characters."""
    config = {"topics.regex": HIDDEN}
    assert restore(config, {"topics.regex": "a"}, KEYS) == config
    assert unknown(config, KEYS) == []


@pytest.mark.parametrize("config", [{"pin": HIDDEN}, {"url": f"http://other:{HIDDEN}@one"}])
def test_a_hidden_password_that_is_not_stored_is_a_problem(config: dict[str, str]) -> None:
    """It names the key; nothing would be gained by sending `[hidden]` to a target."""
    left = unknown(restore(config, {"url": "http://me:p@one"}, KEYS), KEYS)
    (problem,) = left
    assert_says(problem, f"[{next(iter(config))}]", HIDDEN, "stands for")


@pytest.mark.parametrize("connector", [{}, {"connector.class": "Nobody"}, {"connector.class": "EmsSink"}])
def test_keys_of_a_file(connector: dict[str, str]) -> None:
    """Those of its class, of the default one if that cannot be found, and of its transforms behind their names."""
    type_ = "org.apache.kafka.connect.transforms.MaskField$Value"
    keys = keys_of({**connector, "transforms": "m, gone", "transforms.m.type": type_, "transforms.gone.type": "Gone"})
    assert {"name", "connect.ems.authorization.key", "transforms.m.fields"} <= {key.name for key in keys}
    config = {"connect.ems.authorization.key": "AppKey k", "connect.ems.obfuscation.sha512.salt": "s"}
    assert set(hide(config, keys).values()) == {HIDDEN}


@pytest.mark.parametrize(
    "name", ["connect.ems.authorization.kye", "connect.ems.authorisation", "value.converter.basic.auth.user.inf"]
)
def test_a_slip_in_a_key_of_ours_shows_no_password(name: str) -> None:
    """What was meant is a password's key, so its value comes back to nobody."""
    assert hide({name: "AppKey x"}, keys_of({})) == {name: HIDDEN}


@pytest.mark.parametrize(
    ("name", "text", "clear"),
    [
        ("pin", "1234", True),
        ("pin", " ", False),
        ("pin", "${env:PIN}", False),
        ("pin", "${env:A}${env:B}", False),
        ("pin", "salt${env:PIN}", True),
        ("pin", "AppKey ${env:PIN}", False),
        ("pin", "AppKey 1234", True),
        ("pin", "user:${env:PIN}", False),
        ("pin", "${env:USER}:1234", True),
        ("pin", "${PIN}", True),
        ("data.primary.key", "id", False),
        ("consumer.override.sasl.jaas.config", 'x required username="u" password="${file:/run/x:pin}";', False),
        ("consumer.override.sasl.jaas.config", 'x required username="u" password="p\\"${env:A}";', True),
        ("consumer.override.sasl.jaas.config", "x required username=${env:U} password=p;", True),
        ("consumer.override.sasl.jaas.config", 'x required clientId="c" clientSecret="s";', True),
        ("consumer.override.sasl.jaas.config", "x required;", False),
        ("consumer.override.sasl.jaas.config", "p", True),
        ("consumer.override.sasl.jaas.config", "${env:JAAS}", False),
        ("nobody.knows.password", "p", True),
        ("nobody.knows", "p", False),
        ("schema.registry.url", "http://me:p@one:1", True),
        ("schema.registry.url", "http://me:${file:/a/b:c}@one:1", False),
        ("schema.registry.url", "http://me:${env:A}@one:1,http://me:p@two:1", True),
        ("schema.registry.url", "http://one:1/a:b@c", False),
    ],
)
def test_passwords_in_the_clear_are_found(name: str, text: str, clear: bool) -> None:
    """Where no config provider gives them; a user, a scheme and the rest of a JAAS configuration may stand around."""
    assert in_clear({name: text}, KEYS) == ((name,) if clear else ())


@pytest.mark.parametrize("name", ["FileStreamSinkConnector", "FileStreamSourceConnector", "nowhere.Sink", "S3Sink"])
def test_a_secret_of_an_earlier_class_stays_hidden(name: str) -> None:
    """After a change of connector.class the salt of the old class is in no answer, and is a password for the topic."""
    config = {"connector.class": name, "connect.ems.obfuscation.sha512.salt": "canary"}
    for hiding in (hide, hide_more):
        assert hiding(config, keys_of(config))["connect.ems.obfuscation.sha512.salt"] == HIDDEN
    assert in_clear(config, keys_of(config)) == ("connect.ems.obfuscation.sha512.salt",)


def test_a_class_cannot_show_what_is_a_secret_of_another() -> None:
    """A key that one class declares as a text and another one as a secret is a secret."""
    keys = (Key("connect.ems.salt", "", Type.STRING, ""), Key("connect.ems.salt", "", Type.PASSWORD, ""))
    for hiding in (hide, hide_more):
        assert hiding({"connect.ems.salt": "canary"}, keys) == {"connect.ems.salt": HIDDEN}
