"""Settings of the Kafka client under Java's names: the worker's and the connector's together, secrets marked."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret

ClientSetting = str | Secret
Client = Mapping[str, ClientSetting]
"""Settings of a client under Java's names, without the prefix."""

Problem = tuple[str, str]
"""Name of a setting as the operator wrote it, without its prefix, and what is wrong with it; "" is not a single one."""

_SECRET = re.compile(
    r"password|passphrase|jaas|secret|credential|token|oauthbearer\.config|user\.info|\.key$|\.pem$", re.IGNORECASE
)
_PLAIN = re.compile(r"\.(?:url|id|location|type|alias|class|algorithm)$", re.IGNORECASE)
# Read into fields of their own, or fixed by the way the sink works.
_NOT_PASSED_ON = (
    "bootstrap.servers",
    "group.id",
    "isolation.level",
    "auto.offset.reset",
    "enable.auto.commit",
    "key.deserializer",
    "value.deserializer",
)
_SHARED = ("bootstrap.servers", "client.dns.lookup", "broker.address.family")
_SIGNING_IN = ("security.", "sasl.", "ssl.", "https.", "enable.ssl.", "enable.sasl.")
_MAY_BE_BLANK = ("ssl.endpoint.identification.algorithm",)
"""Blank, it switches the check of host names off."""
_PRINCIPAL = ("security.protocol", "sasl.jaas.config", "sasl.mechanism")


@dataclass
class Translation:
    """Of Java's settings. settings: librdkafka's, secrets revealed. problems: no value of a secret is in them.

    tokens: what the client calls for a token and when it ends, in epoch seconds; None: it gets tokens itself, or none.
    """

    settings: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    tokens: Callable[[str], tuple[str, float]] | None = None

    def problem(self, name: str, reason: str) -> None:
        """Adds one, once."""
        if (name, reason) not in self.problems:
            self.problems.append((name, reason))


def is_secret_name(name: str) -> bool:
    """True for a client setting whose value may not be shown, judged by its name."""
    return _SECRET.search(name) is not None and _PLAIN.search(name) is None


def under(prefix: str, values: Mapping[str, str]) -> dict[str, ClientSetting]:
    """Settings of the keys with that prefix, trimmed, the prefix removed; blank ones that say nothing are absent."""
    found = {name[len(prefix) :]: text.strip() for name, text in values.items() if name.startswith(prefix)}
    return {name: _marked(name, text) for name, text in found.items() if name and (text or name in _MAY_BE_BLANK)}


def _marked(name: str, text: str) -> ClientSetting:
    return Secret(text) if is_secret_name(name) else text


def merge(
    bootstrap: str, worker: Mapping[str, ClientSetting], override: Mapping[str, ClientSetting]
) -> dict[str, ClientSetting]:
    """What every client of the connector is made with, under Java's names; the override wins."""
    both = {**worker, **override}
    passed_on = {name: setting for name, setting in both.items() if name not in _NOT_PASSED_ON}
    return {"bootstrap.servers": bootstrap, **passed_on}


def shared_with_consumer(consumer: Mapping[str, ClientSetting]) -> dict[str, ClientSetting]:
    """What other clients of a connector take from its consumer's settings: the brokers, and how to sign in."""
    return {name: setting for name, setting in consumer.items() if name in _SHARED or name.startswith(_SIGNING_IN)}


def check_policy(
    policy: str, override: Mapping[str, ClientSetting], report: Report, prefix: str = "consumer.override."
) -> None:
    """Kafka Connect's connector.client.config.override.policy."""
    allowed = {"None": (), "Principal": _PRINCIPAL}.get(policy)
    for name in override if allowed is not None else ():
        if name not in (allowed or ()):
            report.problem(
                f"{prefix}{name}",
                f"The worker file's connector.client.config.override.policy={policy} forbids it; remove the key, or "
                "set the policy to All.",
            )
