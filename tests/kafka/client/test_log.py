"""What Kafka clients say is taken when they are polled: causes for operators, and lines of the log now and then."""

import logging
import socket
import time
from collections.abc import Sequence

import pytest
from confluent_kafka import Consumer, KafkaError

from parquet_sink.kafka.client import log as client_log
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.causes import Cause, ClientProblem, explain
from parquet_sink.kafka.client.doorstep import Doorstep
from parquet_sink.kafka.client.log import RECENT_S, SAME_LINE_S, ClientLog
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.dead_letter_topic import DeadLetterTopic
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.producer_cache import ProducerCache
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings
from parquet_sink.model.instance import Instance
from parquet_sink.net.settings import HttpSettings
from parquet_sink.notify.settings import NotifySettings
from tests.factories import Clock
from tests.messages import assert_says

REFUSED = "[thrd:b:9092/bootstrap]: b:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock(1_000.0)


def say(to: ClientLog, words: str, level: int = logging.ERROR, client: str = "rdkafka#consumer-1") -> None:
    """As the client hands its lines over."""
    to.log(level, "%s [%s] %s", "FAIL", client, words)


class Door(Doorstep):
    """Puts down what it is asked. wrong: addresses whose listener wants another protocol."""

    def __init__(self, asked: list[str], addresses: str = "b:9093,c:9093", wrong: Sequence[str] = ()) -> None:
        super().__init__({"bootstrap.servers": addresses})
        self._asked, self._wrong = asked, wrong

    def why_unverified(self, address: str) -> str | None:
        self._asked.append(address)
        return "certificate has expired"

    def wrong_protocol(self, address: str) -> ClientProblem | None:
        self._asked.append(address)
        return ClientProblem("it speaks SSL", "Set it", lasting=True) if address in self._wrong else None


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def kafka(servers: str, **client: str) -> KafkaSettings:
    """Settings of a connector with these brokers, underscores for dots."""
    more = {name.replace("_", "."): value for name, value in client.items()}
    return KafkaSettings(("orders",), None, "connect-orders", {"bootstrap.servers": servers, **more})


def test_a_line_passes_now_and_then(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A broker that is away is told at the first attempt, not at each, whichever thread and client says it."""
    caplog.set_level(logging.INFO)
    one = ClientLog("group connect-orders", clock)
    for number in range(50):
        say(one, f"{REFUSED} (after {number}ms in state CONNECT)", client=f"rdkafka#consumer-{number}")
    say(one, "[thrd:main]: something else", logging.INFO)
    clock.seconds += SAME_LINE_S
    say(one, f"{REFUSED} (after 1ms in state CONNECT, 29 identical error(s) suppressed)")
    refused = "b:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused"
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", f"group connect-orders: Kafka client: {refused}"),
        ("INFO", "group connect-orders: Kafka client: something else"),
        ("WARNING", f"group connect-orders: Kafka client: {refused}"),
    ]


def test_what_is_remembered_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that says something new each time does not fill the memory."""
    monkeypatch.setattr(client_log, "MOST_LINES", 10)
    one = ClientLog("g", clock)
    for number in range(1_000):
        say(one, f"[thrd:x]: b{number}:9092/bootstrap: no {number}")
    assert len(one._logged_at_s) <= 10
    assert len(one._problems) <= 10


@pytest.mark.parametrize(
    ("words", "expected", "cure"),
    [
        (
            "Connect to ipv4#127.0.0.1:1 failed: Connection refused",
            ("connection refused", "127.0.0.1:1"),
            "that the broker runs",
        ),
        (
            "Failed to resolve 'nohost:9092': Name or service not known",
            ("name is unknown", "Name or service not known"),
            "Check the names",
        ),
        (
            "SSL handshake failed: certificate verify failed",
            ("TLS failed", "the broker's certificate"),
            "truststore",
        ),
        ("Receive failed: x tlsv13 alert: SSL alert number 116", ("TLS failed", "broker wants"), "ssl.keystore"),
        ("SSL handshake failed: SSL alert number 45", ("TLS failed", "our certificate", "expired"), "ssl.keystore.*"),
        ("error:0A00010B:SSL routines::wrong version number", ("TLS failed",), "security.protocol"),
        ("SASL authentication error: Authentication failed", ("authentication failed", "SASL "), "credentials"),
        ("Disconnected: connection reset by peer", ("not answer as a", "reset by peer"), "security.protocol"),
        ("Receive failed: Invalid response size 12", ("not answer as a", "size 12"), "[bootstrap.servers]"),
        ("something new", ("something new",), "Check [bootstrap.servers]"),
    ],
)
def test_a_cause_is_told_with_its_cure(words: str, expected: tuple[str, ...], cure: str) -> None:
    """Refused, unknown name, TLS, authentication and strangers at the address are told apart."""
    found = explain(words)
    assert_says(found.words, *expected)
    assert cure in found.cure


def test_problems_are_named_by_address(clock: Clock) -> None:
    """Each address has its last trouble; addresses with the same cure share it."""
    one = ClientLog("g", clock)
    assert one.cause() == Cause()
    say(one, REFUSED)
    say(one, "[thrd:c]: ssl://c:9093/2: Failed to resolve 'c:9093': no such name (after 3ms in state CONNECT)")
    one.error(
        KafkaError(KafkaError._TRANSPORT, "d:1/3: Connect to ipv6#[::1]:1 failed: Connection refused (after 0ms in x)")
    )
    at_b, at_c, at_d = one.cause().words.split("; ")
    assert_says(at_b, "b:9092: ", "connection refused", "10.0.0.1:9092")
    assert_says(at_c, "c:9093: ", "name is unknown", "no such name")
    assert_says(at_d, "d:1: ", "connection refused", "[::1]:1")
    cure = one.cause().cure
    assert cure.count("that the broker runs") == 1
    assert_says(cure, "Check [bootstrap.servers]", "the names in [bootstrap.servers]")


def test_an_error_event_is_told_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG, and not at all where the same words were a line; a client that is polled late has hundreds."""
    caplog.set_level(logging.DEBUG)
    one, words = ClientLog("g", clock), "d:1/3: Connect to ipv6#[::1]:1 failed: Connection refused (after {}ms in x)"
    say(one, REFUSED)
    for took_ms in range(200):
        one.error(KafkaError(KafkaError._TRANSPORT, words.format(took_ms)))
        one.error(KafkaError(KafkaError._TRANSPORT, REFUSED.removeprefix("[thrd:b:9092/bootstrap]: ")))
    assert [(one.levelname, one.args[1][:6]) for one in caplog.records if isinstance(one.args, tuple)] == [
        ("WARNING", "b:9092"),
        ("DEBUG", "d:1/3:"),
    ]
    assert set(one.cause().words.split("; ")) >= {"d:1: connection refused ([::1]:1)"}


def test_problems_pass(clock: Clock) -> None:
    """What was wrong is no cause any more when a broker answered since, or nothing was said for long."""
    one = ClientLog("g", clock)
    say(one, REFUSED)
    one.clear()
    assert one.cause() == Cause()
    say(one, REFUSED)
    clock.seconds += RECENT_S + 1
    assert one.cause() == Cause()


def test_many_addresses_are_counted() -> None:
    """Of a large cluster some addresses are named, and the rest counted."""
    one = ClientLog("g")
    for number in range(9):
        say(one, f"b{number}:9092/bootstrap: Failed to resolve 'b': no")
    assert one.cause().words.endswith("; and 6 more")


def test_a_real_client_says_why_when_it_is_polled(caplog: pytest.LogCaptureFixture) -> None:
    """Both clients of a planner hand over what they hoarded: nothing is left, and the cause is known."""
    address, one = closed_port(), ClientLog("group connect-orders")
    cluster = KafkaCluster(kafka(address), one)
    group = GroupOffsets(kafka(address), Instance.new(), client_log=one)
    deadline = time.monotonic() + 20
    while not one.cause().words and time.monotonic() < deadline:
        cluster.poll()
        group.poll()
    group.close()
    why, cure = one.cause().words, one.cause().cure
    assert why == f"{address}: connection refused ({address})"
    assert "that the broker runs" in cure
    assert f"{address}/bootstrap: Connect to ipv4#{address} failed" in caplog.text


def test_a_request_that_waits_is_told_with_its_cause() -> None:
    """While a request waits for a broker that refuses connections, who waits is told why before it fails."""
    address, told = closed_port(), []
    cluster = KafkaCluster(kafka(address, default_api_timeout_ms="3000"), None, told.append)
    with pytest.raises(Exception, match=f"{address}: connection refused") as found:
        cluster.topic_partitions()
    assert type(found.value).__name__ == "BrokerAway"
    assert_says(told[0], f"No answer from {address}", f"{address}: connection refused", "Check [bootstrap.servers]")


def test_a_client_made_for_a_moment_says_by_its_group() -> None:
    """Clients that nobody gave an ear have one of their own."""
    consumer = client_options.build(Consumer, client_options.group_options(kafka(closed_port())))
    assert consumer.poll(0) is None
    consumer.close()


def test_producers_say_what_they_write(caplog: pytest.LogCaptureFixture) -> None:
    """Those of dead letters and notices, and who looks after the topic of dead letters, are no group."""
    servers = {"bootstrap.servers": closed_port()}
    letters = DeadLetterSettings("dlq", producer=servers, admin=servers)
    notices = NotifySettings("orders", "T", "/waiting", HttpSettings(), "told", producer=servers)
    cache = ProducerCache()
    for settings in (letters, notices):
        one = cache.make(settings)
        say(one.client_log, REFUSED)
        cache.discard(one)
    DeadLetterTopic(letters).poll()
    whose = {message.partition(": Kafka client: ")[0] for message in caplog.messages}
    assert whose - {"dead-letter topic dlq"} == {"producer of dead letters to dlq", "producer of notices to told"}


def heard(*lines: str) -> ClientLog:
    """What a log knows after these lines about addresses."""
    one = ClientLog("g")
    for number, words in enumerate(lines):
        say(one, f"[thrd:x]: ssl://b{number}:9093/bootstrap: {words} (after 1ms in state SSL_HANDSHAKE)")
    return one


@pytest.mark.parametrize(
    ("lines", "lasting"),
    [
        (("SASL authentication error: Authentication failed",), True),
        (("SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism",), True),
        (("SSL handshake failed: error:0A000086:SSL routines::certificate verify failed",), True),
        (("Receive failed: error:0A00045C: certificate required: SSL alert number 116",), True),
        (("SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure",), False),
        (("Failed to initialize SASL authentication: there is no token available",), False),
        (("Disconnected: verify that security.protocol is right, broker might require SASL authentication",), False),
        (("SASL authentication error: no", "Connect to ipv4#1.2.3.4:1 failed: Connection refused"), False),
        (("SASL authentication error: no", "SSL handshake failed: certificate verify failed"), True),
        ((), False),
    ],
)
def test_what_waiting_does_not_cure_is_told_apart(lines: tuple[str, ...], lasting: bool) -> None:
    """Everybody who answers must refuse us; one that is away, or broke off, may come back and let us in."""
    assert heard(*lines).cause().lasting is lasting


def test_a_certificate_that_is_not_accepted_is_looked_at(clock: Clock) -> None:
    """The client gives no reason; it is looked for when somebody asks, once in a while, at that address alone."""
    one, asked = ClientLog("g", clock), []
    one.look_with(Door(asked))
    say(one, "[thrd:x]: ssl://b:9093/1: SSL handshake failed: certificate verify failed: broker (after 1ms in x)")
    say(one, "[thrd:x]: ssl://c:9093/2: Disconnected (after 1ms in x)")
    assert asked == []
    for _ in range(3):
        assert_says(one.cause().words, "b:9093: TLS failed", "not accepted", "certificate has expired")
    assert asked == ["b:9093"]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Disconnected: verify that security.protocol is right",
        "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
        "SASL SCRAM-SHA-256 mechanism handshake failed: Broker: Request not valid in current SASL state: ",
    ],
)
def test_brokers_are_looked_at_when_the_client_has_no_word_of_use(clock: Clock, words: str) -> None:
    """Once in a while, and some of them; waiting is no cure when all that are looked at want another protocol."""
    one, asked = ClientLog("g", clock), []
    one.look_with(Door(asked, "a:1, b:1,c:1,d:1", wrong=("a:1", "b:1", "c:1")))
    if words:
        say(one, f"[thrd:x]: a:1/1: {words} (after 1ms in x)")
    found = [one.cause_of_silence() for _ in range(3)][-1]
    assert asked == ["a:1", "b:1", "c:1"]
    assert found.words.split("; ") == [f"{address}: it speaks SSL" for address in asked]
    assert (found.cure, found.lasting) == ("Set it", True)
    clock.seconds += RECENT_S + 1
    one.look_with(Door(asked, "a:1,b:1", wrong=("b:1",)))
    assert one.cause_of_silence() == Cause("b:1: it speaks SSL", "Set it", lasting=False, vague=False)


def test_brokers_are_not_looked_at_where_the_client_says_why(clock: Clock) -> None:
    """Nor is anything made up where looking tells nothing."""
    one, asked = ClientLog("g", clock), []
    one.look_with(Door(asked))
    say(one, REFUSED)
    assert one.cause_of_silence() == one.cause()
    assert asked == []
    one.clear()
    assert one.cause_of_silence() == Cause()
    assert asked == ["b:9093", "c:9093"]


@pytest.mark.parametrize(
    ("line", "words", "lasting"),
    [
        ('{"error":"invalid_client"} (401)', 'answered 401: {"error":"invalid_client"}', True),
        (f"a\n\x1b[31m{'x' * 999} (400)", "answered 400: a [31mxxx", True),
        ("busy (503)", "answered 503: busy", False),
        ("slower (429)", "answered 429: slower", False),
        ("Failed to connect to h (-1)", "Failed to connect to h", False),
        ("SSL certificate OpenSSL verify result: certificate has expired (10) (-1)", "SSL certificate", True),
    ],
)
def test_a_token_that_is_not_given_is_told(line: str, words: str, lasting: bool) -> None:
    """By the address of its endpoint, with what that said, on one bounded line; its trouble passes, its no lasts."""
    one = ClientLog("g")
    say(one, f'[thrd:background]: Failed to retrieve OIDC token from "https://h/token": {line}')
    one.error(KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: x"))
    cause = one.cause()
    assert_says(cause.words, "https://h/token: ", "no token for OAUTHBEARER", words)
    assert (cause.lasting, len(cause.words) < 400, cause.words.isprintable()) == (lasting, True, True)
