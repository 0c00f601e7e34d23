"""What the Kafka client would refuse, found before anything starts: all of it, by the names that operators wrote.

Nothing connects: a client connects as soon as it is made, so these clients are given no broker.
"""

import difflib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from parquet_sink.config.secret import Secret
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.options import MEMORY, NO_EFFECT, PRODUCER_NO_EFFECT, PRODUCER_RENAMED, RENAMED
from parquet_sink.kafka.client.security import sasl, tls
from parquet_sink.kafka.client_settings import Client, Problem
from parquet_sink.kafka.settings import DeadLetterSettings, KafkaSettings
from parquet_sink.net.tls import authorities_problem, readable_problem

OUR_NUMBERS: Final = ("default.api.timeout.ms",)
"""Settings that we read ourselves, in milliseconds."""
AUTHORITIES: Final = {"ssl.truststore.location": "PEM", "ssl.ca.location": ""}
READABLE: Final = ("ssl.certificate.location", "ssl.key.location", "ssl.crl.location")
"""Settings that name a file: authorities with the type of store for which they are handed on as they are."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
KNOWN: Final = (
    *NO_EFFECT, *RENAMED, *OUR_NUMBERS, *AUTHORITIES, *READABLE, *tls.HANDLED, *sasl.HANDLED,
    "allow.auto.create.topics", "check.crcs", "client.dns.lookup", "client.id", "client.rack",
    "connections.max.idle.ms", "fetch.max.bytes", "fetch.min.bytes", "max.partition.fetch.bytes", "metadata.max.age.ms",
    "queued.max.messages.kbytes", "queued.min.messages", "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    "retry.backoff.ms", "sasl.kerberos.keytab", "sasl.kerberos.principal", "sasl.kerberos.service.name",
    "sasl.mechanism", "security.protocol", "ssl.cipher.suites", "ssl.truststore.type", "ssl.truststore.certificates",
    "ssl.truststore.password", "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password",
    "ssl.keystore.key", "ssl.keystore.certificate.chain",
)  # fmt: skip
"""Names to suggest where a misspelt one stands."""
_JAVA_NAMES: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    **{theirs: java for java, theirs in RENAMED.items()},
}
_NAMED: Final = re.compile(r"\b(?:ssl|sasl|security)\.[a-z]+(?:\.[a-z]+)*")
_NUMBERS: Final = (MEMORY, "delivery.timeout.ms", "default.api.timeout.ms")
"""Of the dead-letter topic's clients."""
SILENT: Final = logging.getLogger(f"{__name__}.silent")
SILENT.disabled = True


def problems(kafka: KafkaSettings) -> list[Problem]:
    """Everything that the client would refuse; a value that is a secret is never shown."""
    return problems_one_by_one(kafka.client) or _together(kafka)


def problems_one_by_one(client: Client) -> list[Problem]:
    """What the client would refuse of single settings, and of stores and logins, whatever the others are."""
    return [*client_options.translation(client).problems, *_files(client), *_single(client)]


def _files(client: Client) -> Iterator[Problem]:
    for name, place in client.items():
        if isinstance(place, Secret) or (name not in AUTHORITIES and name not in READABLE):
            continue
        kind = AUTHORITIES.get(name)
        if kind and str(client.get(f"{name.rpartition('.')[0]}.type", "JKS")).upper() != kind:
            continue
        if name == "ssl.ca.location" and place == "probe":
            continue
        reason = authorities_problem(place) if name in AUTHORITIES else readable_problem(place)
        if reason is not None:
            what = "a PEM file of certificates" if name in AUTHORITIES else "a file that can be read"
            yield name, f"{place} cannot be used: {reason}. Name {what}."


def _single(client: Client) -> Iterator[Problem]:
    """Settings that the client does not know, or whose value it does not take, whatever the others are."""
    for name, value in client.items():
        if name in OUR_NUMBERS and not str(value).isdecimal():
            yield name, f"{value} is not a whole number of milliseconds; write digits only."
        if name in NO_EFFECT or name == "bootstrap.servers" or tls.is_handled(name) or name in sasl.HANDLED:
            continue
        text = value.reveal() if isinstance(value, Secret) else value
        refusal = _refusal({RENAMED.get(name, name): text})
        if refusal is not None and not refusal.startswith("Failed to create"):
            yield name, _in_words(name, value, refusal)


def _in_words(name: str, value: str | Secret, refusal: str) -> str:
    if refusal.startswith("No such configuration property"):
        near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.85)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"The Kafka client (librdkafka) has no setting of this name; remove it.{hint}"
    if isinstance(value, Secret):
        return "The Kafka client does not take its value; correct it."
    if name == "security.protocol":
        return f"{value} is not a protocol; write one of {', '.join(PROTOCOLS)}."
    if outside := re.search(r"allowed range (\S+)\.\.(\S+)", refusal):
        return f"{value} is out of range; give {outside[1]} to {outside[2]}."
    return f"The Kafka client does not take the value {value}; correct it."


def _together(kafka: KafkaSettings) -> list[Problem]:
    """What is wrong only when settings meet: a mechanism without a user, a store that does not open."""
    offline = replace(
        kafka, client={name: value for name, value in kafka.client.items() if name != "bootstrap.servers"}
    )
    for settings in (client_options.group_options(offline), client_options.reader_options(offline)):
        if (refusal := _refusal(settings)) is not None:
            return [of_all(kafka.client, refusal)]
    try:
        AdminClient(_quiet(client_options.admin_options(offline)))
    except KafkaException as error:
        return [of_all(kafka.client, error.args[0].str())]
    return []


def of_all(client: Client, refusal: str) -> Problem:
    """The client's words without OpenSSL's, under the setting that they are about."""
    if "SASL mechanism" in refusal:
        return (
            sasl.MECHANISM,
            f"{client.get(sasl.MECHANISM)} is not a mechanism that is built in; write {sasl.MECHANISMS}.",
        )
    if "sasl.username" in refusal:
        mechanism = client.get(sasl.MECHANISM)
        return sasl.JAAS, f"It is missing, but sasl.mechanism={mechanism} needs its username and password."
    said = refusal.removeprefix("Failed to create consumer: ").partition(": error:")[0].strip()
    if "key values mismatch" in refusal or said.startswith("Private key check failed"):
        return _own(client), "Its private key belongs to another certificate; give both of the same."
    if said.startswith(("ssl.key.pem failed", "ssl.key.location failed")):
        return _own(client), "Its private key is none, or ssl.key.password is missing or wrong; correct them."
    found = _NAMED.search(said)
    theirs = found[0] if found else ""
    name = _own(client) if theirs == "ssl.certificate.pem" else _JAVA_NAMES.get(theirs, theirs)
    return name, f"The Kafka client says: {said}. Correct it."


def _own(client: Client) -> str:
    """The setting that names our own key."""
    names = (f"{tls.KEYS}location", f"{tls.KEYS}key", "ssl.key.location")
    return next((name for name in names if name in client), names[0])


def _quiet(settings: dict[str, Any]) -> dict[str, Any]:
    """Of a client that says nothing and asks nobody for a token."""
    return {name: value for name, value in settings.items() if name != client_options.TOKENS} | {"logger": SILENT}


def _refusal(settings: dict[str, Any]) -> str | None:
    """What the client says when a consumer is made from these, in vain."""
    try:
        Consumer(_quiet({"group.id": "verify", **settings})).close()
    except KafkaException as error:
        return str(error.args[0].str()).strip()
    return None


DeadLetterProblem = tuple[str, str, str]
"""`producer` or `admin`, the name of a setting as the operator wrote it ("": no single one), and what is wrong."""


def dead_letter_problems(settings: DeadLetterSettings) -> list[DeadLetterProblem]:
    """Everything that the clients of the dead-letter topic would refuse; a value that is a secret is never shown."""
    found = []
    for client, given in (("producer", settings.producer), ("admin", settings.admin)):
        names = list(_of_dead_letters(given)) or list(_dead_letters_together(client, settings))
        found += [(client, name, reason) for name, reason in names]
    return found


def _of_dead_letters(given: Mapping[str, str | Secret]) -> Iterator[Problem]:
    """Settings one by one."""
    wrong = [name for name in _NUMBERS if name in given and not str(given[name]).isdecimal()]
    yield from ((name, f"{given[name]} is not a whole number; write digits only.") for name in wrong)
    known = {name: value for name, value in given.items() if name not in {*PRODUCER_NO_EFFECT, *_NUMBERS}}
    java = {theirs: name for name, theirs in PRODUCER_RENAMED.items()}
    renamed = {PRODUCER_RENAMED.get(name, name): value for name, value in known.items()}
    yield from ((java.get(name, name), reason) for name, reason in problems_one_by_one(renamed))


def _dead_letters_together(client: str, settings: DeadLetterSettings) -> Iterator[Problem]:
    """What is wrong only when settings meet."""
    producer, admin = (
        {name: value for name, value in given.items() if name != "bootstrap.servers"}
        for given in (settings.producer, settings.admin)
    )
    try:
        if client == "producer":
            Producer(_quiet(client_options.producer_options(replace(settings, producer=producer))))
        else:
            AdminClient(_quiet(client_options.admin_options(KafkaSettings(client=admin))))
    except KafkaException as error:
        yield of_all(producer if client == "producer" else admin, error.args[0].str())
