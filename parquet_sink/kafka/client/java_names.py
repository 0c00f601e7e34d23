"""Names of Java's client settings that differ from librdkafka's, and those that have no meaning here."""

from collections.abc import Mapping
from typing import Final

RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
}
"""Where the two differ by name only."""

MEMBERSHIP: Final = frozenset(
    {
        *("max.poll.records", "max.poll.interval.ms", "partition.assignment.strategy", "group.id", "group.instance.id"),
        *("session.timeout.ms", "heartbeat.interval.ms", "rebalance.timeout.ms", "enable.auto.commit"),
        *("isolation.level", "auto.offset.reset", "key.deserializer", "value.deserializer", "exclude.internal.topics"),
        *("default.api.timeout.ms", "interceptor.classes", "metric.reporters", "metrics.num.samples"),
        *("metrics.recording.level", "metrics.sample.window.ms", "auto.include.jmx.reporter", "enable.metrics.push"),
        "socket.connection.setup.timeout.max.ms",
    }
)
"""Settings that this program sets or reads itself, or that have no meaning without group membership and Java."""

SIGNING_IN: Final = frozenset(
    {
        *("ssl.protocol", "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
        *("ssl.secure.random.implementation", "security.providers"),
        *("sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds"),
        *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor"),
        *("sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
        *("sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience"),
        *("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        *("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        *("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwt.validator.class"),
        "sasl.oauthbearer.scope.claim.name",
    }
)
"""Settings of Java's own libraries of TLS and SASL, and of brokers."""

NO_EFFECT: Final = MEMBERSHIP | SIGNING_IN
