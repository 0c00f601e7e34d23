"""AWS_MSK_IAM: what Java's users write becomes a token that AWS's library signs; what cannot be is refused by key."""

import base64
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from confluent_kafka import Consumer

from parquet_sink.config.secret import Secret
from parquet_sink.errors import KafkaFailed
from parquet_sink.kafka.client import check, options
from parquet_sink.kafka.client.security import msk
from parquet_sink.kafka.client.security.msk import TokenSource
from parquet_sink.kafka.client_settings import Client
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import saying

BROKERS = "b-1.orders.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"
LOGIN = "software.amazon.msk.auth.iam.IAMLoginModule required{};"
HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
TOKEN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"  # the name of a class


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No token, region or credentials of this machine."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cr3t")
    msk._kept.clear()
    yield
    msk._kept.clear()


def client(module_options: str = "", **more: str) -> Client:
    """What users of Java write; underscores for dots."""
    named: Client = {name.replace("_", "."): text for name, text in more.items()}
    return {
        "bootstrap.servers": BROKERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": Secret(LOGIN.format(module_options)),
        "sasl.client.callback.handler.class": HANDLER,
        **named,
    }


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        (client(), TokenSource("eu-west-1")),
        (client(' awsProfileName="prod"'), TokenSource("eu-west-1", profile="prod")),
        (
            client(' awsRoleArn="arn:aws:iam::1:role/r" awsRoleSessionName="sink" awsDebugCreds=true'),
            TokenSource("eu-west-1", role="arn:aws:iam::1:role/r", session="sink"),
        ),
        (
            client(bootstrap_servers="boot-x.c1.kafka-serverless.us-east-2.amazonaws.com:9098"),
            TokenSource("us-east-2"),
        ),
    ],
)
def test_what_java_users_write(settings: Client, source: TokenSource) -> None:
    """Mechanism, login module and handler become OAUTHBEARER with a callback; the region is in the brokers' names."""
    found = options.translate(settings)
    assert found["oauth_cb"] == source
    assert found["sasl.mechanism"] == "OAUTHBEARER"
    assert not [name for name in found if "jaas" in name or "handler" in name]
    assert check.problems(KafkaSettings(("orders",), None, "g", settings)) == []


def test_with_the_mechanism_of_tokens() -> None:
    """AWS's handler of OAUTHBEARER is the same."""
    settings = {
        **client(sasl_mechanism="OAUTHBEARER", sasl_login_callback_handler_class=TOKEN_HANDLER),
        "sasl.client.callback.handler.class": TOKEN_HANDLER,
        "sasl.jaas.config": Secret("org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"),
    }
    assert options.translate(settings)["oauth_cb"] == TokenSource("eu-west-1")


def test_a_region_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts where brokers have names of another kind; without it the region is asked for, with the cure."""
    own = client(bootstrap_servers="kafka.example.com:9098")
    assert [(name, "AWS_REGION" in why) for name, why in options.translation(own).problems] == [
        ("sasl.mechanism", True)
    ]
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert options.translate(own)["oauth_cb"] == TokenSource("eu-central-1")


@pytest.mark.parametrize(
    ("settings", "key", "cure"),
    [
        (client(' awsStsRegion="x"'), "sasl.jaas.config", "awsRoleArn"),
        (client(' awsProfileName="a" awsRoleArn="b"'), "sasl.jaas.config", "keep one"),
        (client(sasl_client_callback_handler_class="com.example.Own"), "sasl.client.callback.handler.class", "remove"),
        (client(sasl_login_callback_handler_class="com.example.Own"), "sasl.login.callback.handler.class", "remove"),
        (
            {**client(), "sasl.jaas.config": Secret('x.PlainLoginModule required username="a" password="b";')},
            "sasl.jaas.config",
            "IAMLoginModule",
        ),
        (
            client(sasl_mechanism="PLAIN", sasl_login_callback_handler_class=TOKEN_HANDLER),
            "sasl.login.callback.handler.class",
            "AWS_MSK_IAM",
        ),
    ],
)
def test_what_is_refused(settings: Client, key: str, cure: str) -> None:
    """By its key, with what to write."""
    assert [name for name, why in options.translation(settings).problems if cure in why] == [key]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setattr(msk, "find_spec", lambda name: None)
    ((key, why),) = options.translation(client()).problems
    assert key == "sasl.mechanism"
    assert "pip install '.[msk]'" in why


def test_the_token_is_signed_for_kafka() -> None:
    """It is the address that AWS signs: action, region and who signs; it is shared until it nearly ends."""
    source = TokenSource("eu-west-1")
    token, end = source("")
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    query = parse_qs(url.query)
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert source("") == (token, end)
    msk._kept[source] = ("old", end - 890)
    assert source("")[0] != "old"


@pytest.mark.parametrize(
    ("source", "called"),
    [
        (TokenSource("r", profile="p"), ("generate_auth_token_from_profile", ("r", "p"))),
        (TokenSource("r", role="a", session="s"), ("generate_auth_token_from_role_arn", ("r", "a", "s"))),
        (TokenSource("r", role="a"), ("generate_auth_token_from_role_arn", ("r", "a", None))),
    ],
)
def test_profiles_and_roles(
    source: TokenSource, called: tuple[str, tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is asked for by AWS's library."""
    asked: list[tuple[str, tuple[object, ...]]] = []
    for name in ("generate_auth_token_from_profile", "generate_auth_token_from_role_arn"):
        monkeypatch.setattr(
            MSKAuthTokenProvider, name, lambda *given, name=name: asked.append((name, given)) or ("token", 5_000)
        )
    assert source("") == ("token", 5.0)
    assert asked == [called]


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is not made, and says at once why: what may pass, with the cure."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    settings = options.group_options(KafkaSettings(("orders",), None, "g", client()))
    with pytest.raises(KafkaFailed, match=saying("no credentials", "AWS_MSK_IAM")):
        options.build(Consumer, settings)
