"""Every way to sign in at a real broker works for reading, committing and dead letters; every refusal is explained."""

import base64
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
import requests as requests_library
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from integration import certificates
from integration.harness import Sink
from integration.letters import letters
from integration.secured import PASSWORD, Client, Secured, jaas, oauth, secured
from integration.tokens import CLIENT, SECRET, TokenEndpoint, token_endpoint
from parquet_sink.addons.devkit.broker_files import TOOLS
from parquet_sink.cli.main import main
from parquet_sink.config.secret import Secret
from parquet_sink.errors import KafkaFailed, KafkaRefused
from parquet_sink.kafka import dead_letters, native
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.cluster import cluster, requests
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.dead_letters import DeadLetters, HeaderWriter
from parquet_sink.kafka.group import client as group_client
from parquet_sink.kafka.group.fence import try_fence
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.producer_cache import ProducerCache
from parquet_sink.kafka.range_reader import RangeReader
from parquet_sink.kafka.settings import DeadLetterSettings, FlushSettings, KafkaSettings, Ownership
from parquet_sink.model.instance import Instance
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.planner import learned_topic
from parquet_sink.planner.planner import kafka_planner
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.worker.loop.status import Status
from tests import factories
from tests.kafka.client.security.java_stores import Pair, jks, key_entry, pair, pkcs12_trust, trusted_entry
from tests.messages import assert_line_says, assert_says, saying

DEAD = "dead-letters"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker; `sink`, and whoever has the certificate `good`, may do what a connector needs."""
    with secured(tmp_path_factory.mktemp("secured")) as made:
        for user in ("sink", "CN=good"):
            made.allow(user, everything("orders", "connect-orders", DEAD))
        made.broker.create_topic("orders")
        made.broker.produce("orders", [(None, b'{"n": %d}' % n) for n in range(3)])
        made.broker.create_topic(DEAD)
        _stores(made.folder)
        yield made


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker of this machine has said all that it will say after half a second, however busy the machine is."""
    for name in ("SOON_S", "LATE_S"):
        monkeypatch.setattr(requests, name, 0.5)
    monkeypatch.setattr(dead_letters, "REFUSED_S", 0.5)
    monkeypatch.setattr(group_client, "SOON_S", 1.0)


@pytest.fixture(scope="module")
def tokens(door: Secured) -> Iterator[dict[str, TokenEndpoint]]:
    """Token endpoints over HTTP and over TLS, whose certificate is of the test's authority."""
    with ExitStack() as stack:
        context = certificates.server_context(door.folder, "good")
        yield {
            "http": stack.enter_context(token_endpoint()),
            "https": stack.enter_context(token_endpoint(context)),
        }


def everything(topic: str, group: str, dead: str) -> list[tuple[str, str, str]]:
    """What a connector with dead letters needs."""
    return [("Read", "topic", topic), ("Read", "group", group), ("Write", "topic", dead), ("Read", "topic", dead)]


def _own(folder: Path, name: str) -> Pair:
    key = load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
    return Pair(x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes()), key)  # type: ignore[arg-type]


def _stores(folder: Path) -> None:
    """The authority, and the certificate `good`, in each of Java's forms; all have the password `secret`."""
    authority = Pair(x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()), pair("none").key)
    own = _own(folder, "good")
    stores = {
        "trust.jks": jks("secret", trusted_entry("ca", authority)),
        "trust.p12": pkcs12_trust("secret", authority),
        "key.jks": jks("secret", key_entry("me", "mine", own, authority)),
        "key.p12": own.pkcs12("secret", authority),
        "key.pem": (own.key_pem("mine") + own.pem).encode(),
        "stranger.pem": (pair("stranger").key_pem() + pair("stranger").pem).encode(),
    }
    for name, content in stores.items():
        (folder / name).write_bytes(content)


def trusting(door: Secured, name: str, kind: str) -> Client:
    """A trust store of Java's."""
    place = str(door.folder / name)
    return door.client(
        "TLS", ssl_truststore_type=kind, ssl_truststore_location=place, ssl_truststore_password=Secret("secret")
    )


def showing(door: Secured, name: str, kind: str, listener: str = "MUTUAL", **more: str | Secret) -> Client:
    """A key store."""
    password: Client = {} if kind == "PEM" else {"ssl.keystore.password": Secret("secret")}
    place = str(door.folder / name)
    return door.client(listener, ssl_keystore_type=kind, ssl_keystore_location=place, **more) | password


def with_tokens(door: Secured, url: str, secret: str = SECRET, **more: str | Secret) -> Client:
    """Client credentials."""
    own = door.client("LOGIN", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=oauth(CLIENT, secret), **more)
    return {**own, "sasl.oauthbearer.token.endpoint.url": url, "sasl.oauthbearer.scope": "kafka"}


def kafka(client: Client, topic: str = "orders", group: str = "connect-orders") -> KafkaSettings:
    """A connector's settings."""
    return KafkaSettings((topic,), None, group, {"default.api.timeout.ms": "8000", **client})


def go_through(settings: KafkaSettings, dead: str = DEAD) -> list[bytes]:
    """What a connector does: topics, offsets, records, commits, a dead letter. The values."""
    topic = settings.topics[0]
    cluster, group = KafkaCluster(settings), GroupOffsets(settings, Instance.new())
    try:
        assert cluster.topic_partitions() == [(topic, 0)]
        ends = cluster.end_offsets([(topic, 0)])
        group.read([(topic, 0)])
        group.claim({(topic, 0): 0})
        batches = list(RangeReader(settings, topic, 0, 0, ends[topic, 0]).batches())
        group.commit({(topic, 0): ends[topic, 0]})
    finally:
        group.close()
    dead_letter(DeadLetterSettings(dead, 1, producer=settings.client, admin=settings.client))
    return [value for batch in batches for value in batch.values.to_pylist()]


def dead_letter(settings: DeadLetterSettings) -> None:
    """Writes one."""
    cache = ProducerCache()
    store = DeadLetters(settings, HeaderWriter("sink", context=False), cache=cache)
    try:
        store.put(Rejected("orders", 0, 0, Stage.VALUE_CONVERTER, "bad", b"k", b"v", (), int(time.time() * 1000)))
        store.flush(PlannedRange("orders", 0, 0, 1, "records"))
    finally:
        store.close()
        cache.sweep(10**12)


def of_msk(door: Secured) -> Client:
    """What users of Java write for Amazon's brokers."""
    package = "software.amazon.msk.auth.iam"
    return door.client(
        "LOGIN",
        sasl_mechanism="AWS_MSK_IAM",
        sasl_jaas_config=Secret(f"{package}.IAMLoginModule required;"),
        sasl_client_callback_handler_class=f"{package}.IAMClientCallbackHandler",
    )


@pytest.fixture(autouse=True)
def signer(monkeypatch: pytest.MonkeyPatch, tokens: dict[str, TokenEndpoint]) -> None:
    """In place of AWS's, one that asks the token endpoint: this broker knows no tokens of AWS."""

    def asked(region: str) -> tuple[str, int]:
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        answer = requests_library.post(
            tokens["http"].url,
            data={"grant_type": "client_credentials", "scope": region},
            headers={"Authorization": f"Basic {basic}"},
            timeout=10,
        ).json()
        return answer["access_token"], int(time.time() + answer["expires_in"]) * 1000

    monkeypatch.setattr(MSKAuthTokenProvider, "generate_auth_token", asked)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


WAYS: dict[str, Callable[[Secured, dict[str, TokenEndpoint]], Client]] = {
    "PEM": lambda door, _: showing(door, "key.pem", "PEM", ssl_key_password=Secret("mine")),
    "JKS": lambda door, _: showing(door, "key.jks", "JKS", ssl_key_password=Secret("mine")),
    "PKCS12": lambda door, _: showing(door, "key.p12", "PKCS12"),
    "text": lambda door, _: door.client(
        "MUTUAL",
        ssl_truststore_location="",
        ssl_truststore_certificates=(door.folder / "ca.pem").read_text().replace("\n", " "),
        ssl_keystore_type="PEM",
        ssl_keystore_key=Secret((door.folder / "good.key").read_text().replace("\n", " ")),
        ssl_keystore_certificate_chain=(door.folder / "good.crt").read_text(),
    ),
    "PLAIN": lambda door, _: door.login("sink", "PLAIN"),
    "SCRAM-SHA-256": lambda door, _: door.login(door.user((), "sink"), "SCRAM-SHA-256"),
    "SCRAM-SHA-512": lambda door, _: door.login(door.user((), "sink")),
    "SCRAM without TLS": lambda door, _: door.client(
        "PLAINLOGIN", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas("SCRAM", door.user((), "sink"))
    ),
    "OAUTHBEARER": lambda door, tokens: with_tokens(door, tokens["http"].url),
    "OAUTHBEARER over TLS": lambda door, tokens: with_tokens(
        door, tokens["https"].url, https_ca_location=str(door.folder / "ca.pem")
    ),
    "AWS_MSK_IAM": lambda door, _: of_msk(door),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_signs_in_may_work(door: Secured, tokens: dict[str, TokenEndpoint], way: str) -> None:
    """Consumer, admin and producer take the same settings; records are read, offsets committed, letters written."""
    before = len(letters(door.broker, DEAD))
    client = WAYS[way](door, tokens)
    assert go_through(kafka(client)) == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}']
    assert len(letters(door.broker, DEAD)) == before + 1


@pytest.mark.parametrize(("name", "kind"), [("trust.jks", "JKS"), ("trust.p12", "PKCS12"), ("trust.p12", "JKS")])
def test_java_s_trust_stores_are_trusted(door: Secured, name: str, kind: str) -> None:
    """The broker's certificate is verified by what is in them."""
    assert KafkaCluster(kafka(trusting(door, name, kind))).topic_partitions() == [("orders", 0)]


def test_host_names_are_checked_unless_that_is_switched_off(door: Secured) -> None:
    """A blank value is Java's way to switch it off."""
    client = door.client("OTHER", ssl_endpoint_identification_algorithm="")
    assert KafkaCluster(kafka(client)).topic_partitions() == [("orders", 0)]


OPENSSL_NO_AUTHORITY = "unable to get local issuer certificate|self-signed certificate in certificate chain"
"""Its version decides which."""

REFUSALS: dict[str, tuple[Callable[[Secured, dict[str, TokenEndpoint]], Client], tuple[str, ...]]] = {
    "expired": (
        lambda door, _: door.client("EXPIRED"),
        ("broker's certificate", "not accepted", "has expired", "ssl.truststore"),
    ),
    "other host": (lambda door, _: door.client("OTHER"), ("broker's certificate", "not accepted", "address mismatch")),
    "unknown authority": (
        lambda door, _: {k: v for k, v in door.client("TLS").items() if "truststore" not in k},
        ("broker's certificate", "not accepted", "ssl.truststore"),
    ),
    "no certificate": (
        lambda door, _: door.client("MUTUAL"),
        ("TLS failed", "certificate", "ssl.keystore"),
    ),
    "expired certificate of ours": (
        lambda door, _: showing(door, "expired.pem", "PEM"),
        ("TLS failed", "our certificate", "ssl.keystore"),
    ),
    "certificate of a stranger": (
        lambda door, _: showing(door, "stranger.pem", "PEM"),
        ("TLS failed", "our certificate", "ssl.keystore"),
    ),
    "wrong password by PLAIN": (
        lambda door, _: door.login("sink", "PLAIN", "canary"),
        ("authentication failed", "security.protocol", "sasl.mechanism", "credentials"),
    ),
    "wrong password by SCRAM": (
        lambda door, _: door.login("sink", password="canary"),
        ("authentication failed", "sasl.mechanism", "credentials"),
    ),
    "unknown user": (
        lambda door, _: door.login("canary-user"),
        ("authentication failed", "sasl.mechanism", "credentials"),
    ),
    "mechanism that is not offered": (
        lambda door, _: door.client("PLAINLOGIN", sasl_mechanism="PLAIN", sasl_jaas_config=jaas("PLAIN", "sink")),
        ("authentication failed", "supported mechanisms", "SCRAM-SHA-256", "sasl.mechanism"),
    ),
    "wrong secret": (
        lambda door, tokens: with_tokens(door, tokens["http"].url, "canary"),
        ("/token", "no token for OAUTHBEARER", "401", "The secret is wrong", "id and secret"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_who_is_not_let_in_is_told_why(door: Secured, tokens: dict[str, TokenEndpoint], case: str) -> None:
    """With the address, the reason and the settings to correct; it ends the connector, as waiting cures nothing."""
    door.user((), "sink")
    make, words = REFUSALS[case]
    with pytest.raises(KafkaRefused, match=saying("does not let us in", *words)) as found:
        KafkaCluster(kafka(make(door, tokens))).topic_partitions()
    assert case != "unknown authority" or re.search(OPENSSL_NO_AUTHORITY, str(found.value))
    assert "canary" not in str(found.value).replace("canary-user", "")
    assert PASSWORD not in str(found.value)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """One topic-partition counts as many, of which brokers are asked in C."""
    if missing := native.not_there():
        pytest.skip(missing)
    monkeypatch.setattr(cluster, "MANY", 1)


@pytest.mark.in_turn(seconds=1)
@pytest.mark.parametrize("way", WAYS)
def test_who_signs_in_is_answered_in_c(door: Secured, tokens: dict[str, TokenEndpoint], many: None, way: str) -> None:
    """As to the client: topics are described and offsets listed, again and again."""
    asked = KafkaCluster(kafka(WAYS[way](door, tokens)))
    for _ in range(3):
        assert asked.topic_partitions() == [("orders", 0)]
        assert asked.end_offsets([("orders", 0)]) == {("orders", 0): 3}


@pytest.mark.in_turn(seconds=1)
@pytest.mark.parametrize("case", REFUSALS)
def test_who_is_not_let_in_is_told_why_in_c(
    door: Secured, tokens: dict[str, TokenEndpoint], many: None, case: str
) -> None:
    """In the words that the client's own requests give."""
    door.user((), "sink")
    make, words = REFUSALS[case]
    with pytest.raises(KafkaRefused, match=saying("does not let us in", *words)):
        KafkaCluster(kafka(make(door, tokens))).end_offsets([("orders", 0)])


PROTOCOLS = {"PLAINTEXT": "", "SSL": "TLS", "SASL_PLAINTEXT": "PLAINLOGIN", "SASL_SSL": "LOGIN"}


@pytest.mark.parametrize(("ours", "theirs"), [*permutations(PROTOCOLS, 2)])
def test_a_wrong_protocol_is_told(door: Secured, ours: str, theirs: str) -> None:
    """Whichever is set, and whichever is right: the message names both, and what to set."""
    door.user((), "sink")
    own = door.client(PROTOCOLS[ours], sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas("SCRAM", "sink"))
    address = door.client(PROTOCOLS[theirs])["bootstrap.servers"]
    ways = ("SCRAM-SHA-256",) if theirs.startswith("SASL") else ()
    words = (f"speaks {theirs}", f"security.protocol={ours}", f"Set security.protocol to {theirs}", *ways)
    with pytest.raises(KafkaRefused, match=saying("does not let us in", *words)):
        KafkaCluster(kafka({**own, "bootstrap.servers": address})).topic_partitions()


def test_a_token_is_asked_for_with_its_scope(door: Secured, tokens: dict[str, TokenEndpoint]) -> None:
    """The endpoint's certificate is verified, by the login module's store if it names one."""
    endpoint = tokens["https"]
    line = (
        oauth(CLIENT, SECRET)
        .reveal()
        .replace(";", f' ssl.truststore.location="{door.folder}/trust.jks" ssl.truststore.password="secret";', 1)
    )
    client = with_tokens(door, endpoint.url) | {"sasl.jaas.config": Secret(line)}
    endpoint.asked.clear()
    assert KafkaCluster(kafka(client)).topic_partitions() == [("orders", 0)]
    assert set(endpoint.asked) == {"kafka"}
    with pytest.raises(KafkaFailed, match="no token for OAUTHBEARER: .*certificate"):
        KafkaCluster(kafka(with_tokens(door, endpoint.url))).topic_partitions()


RIGHTS = {
    "describing": ([("Read", "group", "{group}")], ("Describe on topic {topic}", "comes with Read")),
    "seeing the group": ([("Read", "topic", "{topic}")], ("Describe on group {group}", "comes with Read")),
    "committing": ([("Read", "topic", "{topic}"), ("Describe", "group", "{group}")], ("Read on group {group}",)),
    "committing of a topic": (
        [("Describe", "topic", "{topic}"), ("Read", "group", "{group}")],
        ("Read on topic {topic}",),
    ),
    "describing dead letters": (
        [("Read", "topic", "{topic}"), ("Read", "group", "{group}")],
        (f"Describe on topic {DEAD}", "comes with Write"),
    ),
    "writing dead letters": (
        [("Read", "topic", "{topic}"), ("Read", "group", "{group}"), ("Describe", "topic", DEAD)],
        ("user of [producer.override.*]", f"Write on topic {DEAD}"),
    ),
    "writing there, of who may write elsewhere": (
        [*everything("{topic}", "{group}", "elsewhere"), ("Describe", "topic", DEAD)],
        ("user of [producer.override.*]", f"Write on topic {DEAD}"),
    ),
}


@pytest.mark.parametrize("case", RIGHTS)
def test_a_right_that_is_missing_is_named(door: Secured, case: str) -> None:
    """By its operation and its resource, with the command that gives it; then the same user may do it."""
    rules, words = RIGHTS[case]
    group = f"connect-{uuid.uuid4().hex[:8]}"
    user = door.user([(operation, kind, name.format(topic="orders", group=group)) for operation, kind, name in rules])
    settings = kafka(door.login(user), group=group)
    with pytest.raises(KafkaRefused) as found:
        go_through(settings)
    assert_says(found.value, "right (ACL)", *(part.format(topic="orders", group=group) for part in words))
    assert_says(found.value, "`kafka-acls --bootstrap-server HOST:PORT", "--add", "--allow-principal", "--operation")
    door.allow(user, everything("orders", group, DEAD))
    assert len(go_through(settings)) == 3


def test_reading_needs_a_right_of_its_own(door: Secured) -> None:
    """Of a user who sees the topic only."""
    user = door.user([("Describe", "topic", "orders"), ("Read", "group", "connect-orders")])
    parts = ("Topic orders", "topic-partition 0", "offset 0", "(ACL) Read on topic orders", "`kafka-acls")
    with pytest.raises(KafkaRefused, match=saying(*parts)):
        list(RangeReader(kafka(door.login(user)), "orders", 0, 0, 3).batches())


def test_a_connector_that_moves_needs_a_right_of_its_own(door: Secured) -> None:
    """Its commits are transactions, of an id that it must be let to use; which is named at once, with the command."""
    group, fence = f"group-{uuid.uuid4().hex[:8]}", f"fence-{uuid.uuid4().hex[:8]}"
    user = door.user(everything("orders", group, DEAD))
    kafka = KafkaSettings(("orders",), None, group, door.login(user), owned=Ownership(fence))
    offsets, began = GroupOffsets(kafka, Instance.new()), time.monotonic()
    with pytest.raises(
        KafkaRefused, match=saying(f"Write on transactional-id {fence}", f"--transactional-id {fence}`")
    ):
        offsets.take_over()
    assert time.monotonic() - began < 10
    door.allow(user, [("Write", "transactional-id", fence)])
    offsets.take_over()
    offsets.read([("orders", 0)])
    offsets.claim({("orders", 0): 1})
    assert offsets.read([("orders", 0)])["orders", 0].offset == 1
    offsets.close()


def test_the_state_topic_needs_rights_of_its_own(
    door: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A connector without them goes on, and a warning names each right with its command; with them it keeps state."""
    group, topic = f"group-{uuid.uuid4().hex[:8]}", f"state-{uuid.uuid4().hex[:8]}"
    fence = f"parquet-sink-{group}"
    user = door.user([*everything("orders", group, DEAD), ("Write", "transactional-id", fence)])
    settings = replace(
        factories.settings(tmp_path, "orders"),
        kafka=KafkaSettings(("orders",), None, group, door.login(user), owned=Ownership(fence, state_topic=topic)),
        flush=FlushSettings(1_000_000, 1, 600_000),
    )

    def plan() -> str:
        """Return the warnings of a planner that commits a range."""
        caplog.clear()
        with (
            closing(SqliteStore(tmp_path / f"{time.time_ns()}.db")) as state,
            closing(kafka_planner(settings, state, Instance.new(), reported=True)) as planner,
        ):
            planner.begin()
            while not planner.tick({}):
                time.sleep(0.1)
        return caplog.text

    for operation in ("Describe", "Create", "Read", "Write"):
        parts = ("repeats rows in other files", f"Topic {topic}", f"{operation} on topic {topic}", "`kafka-acls")
        assert_line_says(plan(), *parts, f"--topic {topic}")
        door.allow(user, [(operation, "topic", topic)])
    assert "repeats rows" not in plan()
    assert learned_topic.LearnedTopic(settings.name, settings.kafka, KafkaCluster(settings.kafka), ClientLog())._read()


def test_making_the_dead_letter_topic_needs_a_right_of_its_own(door: Secured) -> None:
    """Of a user who may write to it."""
    dead = f"dead-{uuid.uuid4().hex[:8]}"
    user = door.user([("Write", "topic", dead)])
    client = door.login(user)
    settings = DeadLetterSettings(dead, 1, producer=client, admin=client)
    with pytest.raises(KafkaRefused, match=saying("[admin.override.*]", "right (ACL)", f"Create on topic {dead}")):
        dead_letter(settings)
    door.allow(user, [("Create", "topic", dead)])
    dead_letter(settings)
    assert len(letters(door.broker, dead)) == 1


@pytest.mark.slow
def test_the_commands_of_the_documentation_give_what_is_needed(door: Secured) -> None:
    """By Kafka's own tool, to a user who had no right before."""
    text = (Path(__file__).parents[1] / "docs" / "how-to" / "kafka-security.md").read_text()
    commands = [line.split()[3:] for line in text.splitlines() if line.startswith("    kafka-acls --bootstrap-server ")]
    user, number = door.user(()), uuid.uuid4().hex[:8]
    names = {"User:sink": f"User:{user}", "connect-orders": f"connect-{number}", "orders-dead": f"dead-{number}"}
    settings = kafka(door.login(user), group=f"connect-{number}")
    with pytest.raises(KafkaRefused):
        go_through(settings, f"dead-{number}")
    assert len(commands) == 4
    for words in commands:
        door.broker.run_tool(TOOLS["acls"], *(names.get(word, word) for word in words), timeout_s=120)
    assert len(go_through(settings, f"dead-{number}")) == 3
    assert KafkaCluster(settings).compacted(["orders"]) == {"orders": False}


def test_a_connector_works_over_tls_with_a_login(door: Secured, sink: Sink) -> None:
    """From the worker's settings, in all its processes; without the right to commit it fails before it reads."""
    group = f"connect-{sink.name}"
    trust: Client = {"ssl.truststore.location": str(door.folder / "trust.jks"), "ssl.truststore.password": "secret"}
    trust |= {"ssl.truststore.type": "JKS"}
    user = door.user([("Read", "topic", "orders"), ("Describe", "group", group)])
    client = {**door.login(user), **trust}
    given = {name: text.reveal() if isinstance(text, Secret) else text for name, text in client.items()}
    worker = {f"consumer.{name}": text for name, text in given.items() if name != "bootstrap.servers"}
    override = {"consumer.override.bootstrap.servers": given["bootstrap.servers"]}
    properties = {**sink.properties("orders"), **override}

    def run() -> object:
        return sink.make(properties, until_caught_up=True, worker=worker, broker=door.broker).start().until_ended()

    failed = run()
    assert failed.status is Status.FAILED  # type: ignore[attr-defined]
    assert f"(ACL) Read on group {group} by" in failed.failure.message  # type: ignore[attr-defined]
    assert sink.rows() == []
    door.allow(user, [("Read", "group", group)])
    assert run().status is Status.DONE  # type: ignore[attr-defined]
    assert [row["n"] for row in sink.rows()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("protocol", "words"),
    [("SASL_SSL", ("authentication failed",)), ("PLAINTEXT", ("speaks SASL_SSL", " PLAIN"))],
)
def test_a_producer_that_is_not_let_in_is_told_soon(door: Secured, protocol: str, words: tuple[str, ...]) -> None:
    """Long before the time that a dead letter may take is over."""
    wrong = {**door.login("sink", "PLAIN", "canary"), "security.protocol": protocol}
    settings = DeadLetterSettings(DEAD, 1, producer=wrong, admin=door.login("sink", "PLAIN"))
    with pytest.raises(KafkaRefused, match=saying(f"Dead-letter topic {DEAD}", "does not let us in", *words)):
        dead_letter(settings)


class CheckRun:
    """`parquet-sink check --connect` of a connector that signs in, in this process.

    worker: further keys of the worker file. said: all that was printed last.
    """

    def __init__(self, folder: Path, out: pytest.CaptureFixture[str]) -> None:
        self._folder, self._out = folder, out
        self.worker: dict[str, str] = {}
        self.said = ""

    def __call__(self, client: Client, **more: str) -> list[str]:
        """The lines that it printed about rights and the dead-letter topic."""
        given = {
            f"consumer.{name}": text.reveal() if isinstance(text, Secret) else text for name, text in client.items()
        }
        plain = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
        worker = {**plain, **given, **self.worker}
        connector = {
            "name": "orders",
            "topics": "orders",
            "connect.ems.endpoint": f"directory:{self._folder / 'out'}",
            "connect.ems.target.table": "t",
            "connect.ems.commit.size.bytes": "1000000",
            "connect.ems.commit.records": "1000",
            "connect.ems.commit.interval.ms": "1000",
            "connect.ems.tmp.dir": str(self._folder / "tmp"),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": DEAD,
            **more,
        }
        (self._folder / "out").mkdir(exist_ok=True)
        paths = self._folder / "worker.json", self._folder / "orders.json"
        for path, keys in zip(paths, (worker, connector), strict=True):
            path.write_text(json.dumps(keys))
        main(["check", "--connect", "--worker", str(paths[0]), str(paths[1])])
        said = self._out.readouterr().out
        assert PASSWORD not in said
        self.said = said
        return [line.strip() for line in said.splitlines() if " rights: " in line or " dead-letter topic " in line]


def test_check_tells_which_rights_are_missing(
    door: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read, committed or written, and not any more once they are given."""
    check, group = CheckRun(tmp_path, capsys), f"connect-{uuid.uuid4().hex[:8]}"
    user = door.user(())
    more = {"consumer.override.group.id": group}
    topic, members, letter = check(door.login(user), **more)
    assert_says(topic, "FAILED  rights", "Describe on topic orders", "is missing")
    assert_says(members, "FAILED  rights", f"Describe on group {group}", "is missing")
    assert_says(letter, f"FAILED  dead-letter topic {DEAD}", "cannot be looked up")
    door.allow(user, [("Describe", "topic", "orders"), ("Describe", "topic", DEAD), ("Read", "group", group)])
    reading, letter = check(door.login(user), **more)
    assert_says(reading, "FAILED  rights", "Read on topic orders", "is missing", "user that signs in")
    assert_says(letter, f"FAILED  dead-letter topic {DEAD}", "user of [producer.override.*]", "right (ACL)")
    door.allow(user, everything("orders", group, DEAD))
    reading, letter = check(door.login(user), **more)
    assert_says(reading, "OK      rights", "read 1 topic", f"commit offsets of group {group}")
    assert_says(letter, f"OK      dead-letter topic {DEAD}", "it is there")


def test_check_tries_what_a_worker_of_a_group_needs(
    door: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The internal topics, the group, and the transactional ids of leader and connector: each with its right."""
    check, name = CheckRun(tmp_path, capsys), uuid.uuid4().hex[:8]
    group, workers = f"connect-{name}", f"workers-{name}"
    user = door.user(everything("orders", group, DEAD))
    client = {key: one.reveal() if isinstance(one, Secret) else one for key, one in door.login(user).items()}
    topics = {what: f"{workers}-{what}" for what in ("config", "status", "offset", "state")}
    named = {f"{what}.storage.topic": topic for what, topic in topics.items() if what != "state"}
    factors = {f"{what}.storage.replication.factor": "1" for what in ("config", "status", "offset")}
    check.worker = {**client, "group.id": workers, **named, **factors}

    def told() -> list[str]:
        check(door.login(user), **{"consumer.override.group.id": group})
        lines = check.said.splitlines()
        return [one.strip() for one in lines if workers in one and not one.startswith(("worker", "connector"))]

    found = told()
    assert [one.partition(" ")[0] for one in found] == ["FAILED"] * 7
    assert f"(ACL) Describe on topic {topics['config']}" in found[0]
    assert_says(found[4], f"Describe on group {workers}", "comes with Read")
    assert f"Write on transactional-id connect-cluster-{workers}" in found[5]
    assert f"FAILED  transactional id parquet-sink-{group}: " in check.said
    assert_says(check.said, f"(ACL) Write on transactional-id parquet-sink-{group}", "`kafka-acls")

    door.allow(user, [("Create", "topic", topics["config"]), ("Describe", "topic", topics["config"])])
    assert_says(told()[0], "not there", "made at the start")
    for what, topic in topics.items():
        door.broker.create_topic(topic, 1, {"cleanup.policy": "delete" if what == "offset" else "compact"})
    door.allow(user, [("Read", "topic", topics[what]) for what in ("config", "status", "offset", "state")])
    door.allow(user, [("Write", "topic", topics[what]) for what in ("config", "status")])
    door.allow(user, [("Describe_Configs", "topic", topics["offset"])])
    ids = (f"connect-cluster-{workers}", f"parquet-sink-{group}")
    door.allow(user, [("Read", "group", workers), *(("Write", "transactional-id", one) for one in ids)])
    config, status, state, offset, *rest, own_state = told()
    assert [one.partition(" ")[0] for one in (config, status, state, offset)] == ["OK", "OK", "OK", "FAILED"]
    assert "cleanup.policy=delete" in offset
    assert [one.partition(" ")[0] for one in rest] == ["OK"] * 2
    assert_says(check.said, f"OK      transactional id parquet-sink-{group}: ", "commit in transactions")
    assert_says(own_state, f"FAILED  topic {topics['state']}", "[parquet-sink.state.storage.topic]", "Write on topic")


def test_to_try_a_transactional_id_takes_it_from_nobody(door: Secured) -> None:
    """Who has it goes on committing by it."""
    group = f"group-{uuid.uuid4().hex[:8]}"
    client = {"bootstrap.servers": door.broker.bootstrap_servers}
    kafka = KafkaSettings(("orders",), None, group, client, owned=Ownership(f"fence-{group}"))
    offsets = GroupOffsets(kafka, Instance.new())
    offsets.take_over()
    offsets.read([("orders", 0)])
    offsets.claim({("orders", 0): 1})
    try_fence(kafka, f"fence-{group}")
    offsets.read([("orders", 0)])
    offsets.claim({("orders", 0): 2})
    assert offsets.read([("orders", 0)])["orders", 0].offset == 2
    offsets.close()
