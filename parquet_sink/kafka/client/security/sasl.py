"""Java's settings of SASL: mechanisms, login modules, callback classes."""

import logging
from functools import cache
from typing import Final

from confluent_kafka import Consumer, KafkaException

from parquet_sink.kafka.client.security import oauth
from parquet_sink.kafka.client.security.translation import Client, Translation, plain

JAAS: Final = "sasl.jaas.config"
MECHANISM: Final = "sasl.mechanism"
MECHANISMS: Final = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
LOGIN_CALLBACK: Final = "sasl.login.callback.handler.class"
CLASSES: Final = ("sasl.client.callback.handler.class", "sasl.login.class")
HANDLED: Final = frozenset({JAAS, LOGIN_CALLBACK, *CLASSES}) | oauth.HANDLED
_LEFT_OUT: Final = f"is not in this build of the Kafka client; write {MECHANISMS}"
NO_KERBEROS: Final = (
    "Kerberos (GSSAPI) is not in this build of the Kafka client (librdkafka): confluent-kafka's packages leave it out, "
    "because it needs the machine's own libsasl2. Let the brokers offer another mechanism and write "
    f"{MECHANISMS}, or install libsasl2 and build it: pip install --no-binary confluent-kafka confluent-kafka."
)
_PASSWORD_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
_KERBEROS_MODULE: Final = "Krb5LoginModule"
_NOT_BUILT_IN: Final = "No provider for SASL mechanism"
_SILENT: Final = logging.getLogger(f"{__name__}.silent")
_SILENT.disabled = True


def translate(client: Client, to: Translation) -> None:
    """Adds librdkafka's settings, and what is wrong."""
    for name in CLASSES:
        if plain(client, name):
            to.problem(name, "A Java class cannot be loaded here; remove it.")
    signs_in = (plain(client, "security.protocol") or "").upper().startswith("SASL_")
    mechanism = plain(client, MECHANISM) or plain(client, "sasl.mechanisms")
    if signs_in and mechanism in (None, "GSSAPI") and not _has_kerberos():
        to.problem(MECHANISM, NO_KERBEROS if mechanism else f"It is missing, and Kafka's default, GSSAPI, {_LEFT_OUT}.")
        return
    module = _module(client, to)
    if mechanism == oauth.MECHANISM:
        oauth.translate(client, module, to)
        return
    if plain(client, LOGIN_CALLBACK):
        to.problem(LOGIN_CALLBACK, f"A Java class cannot be loaded here; remove it, and write {JAAS}.")
    if module is not None:
        _password(module, to)


def _module(client: Client, to: Translation) -> oauth.LoginModule | None:
    text = plain(client, JAAS)
    if text is None:
        return None
    try:
        return oauth.parse(text)
    except ValueError as error:
        to.problem(JAAS, f"{error}. An example: {_example('plain.Plain')}")
        return None


def _password(module: oauth.LoginModule, to: Translation) -> None:
    """User and password of a login module."""
    if module.short == _KERBEROS_MODULE:
        to.problem(JAAS, "Write sasl.kerberos.principal and sasl.kerberos.keytab in place of Java's login module.")
        return
    if module.short == oauth.MODULE:
        to.problem(JAAS, f"{oauth.MODULE} signs in by {oauth.MECHANISM}; set {MECHANISM} to that.")
        return
    if module.short not in _PASSWORD_MODULES:
        which = f"Of login modules {', '.join(_PASSWORD_MODULES)} and {oauth.MODULE} are understood"
        to.problem(JAAS, f"{which}; {module.name} is another. An example: {_example('scram.Scram')}")
        return
    if module.options.get("tokenauth", "").lower() == "true":
        to.problem(
            JAAS, "The Kafka client does not sign in with delegation tokens (tokenauth); give a user of its own."
        )
        return
    missing = [name for name in ("username", "password") if not module.options.get(name)]
    if missing:
        to.problem(JAAS, f'No {" and no ".join(missing)} in it; write them as username="..." password="...".')
        return
    to.settings |= {"sasl.username": module.options["username"], "sasl.password": module.options["password"]}


def _example(module: str) -> str:
    package = "org.apache.kafka.common.security"
    return f'{package}.{module}LoginModule required username="sink" password="${{env:KAFKA_PASSWORD}}";'


@cache
def _has_kerberos() -> bool:
    """Whether librdkafka was built with it: it says so when a client is made, which has no broker to connect to."""
    asked = {"security.protocol": "SASL_PLAINTEXT", MECHANISM: "GSSAPI", "sasl.kerberos.kinit.cmd": ""}
    try:
        Consumer({"group.id": "kerberos", **asked, "logger": _SILENT}).close()
    except KafkaException as error:
        return _NOT_BUILT_IN not in error.args[0].str()
    return True
