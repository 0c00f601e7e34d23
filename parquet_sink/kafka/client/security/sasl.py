"""Java's settings of SASL for librdkafka: mechanisms, OAUTHBEARER, login modules (`sasl.jaas.config`)."""

import logging
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import quote_plus, urlsplit

from confluent_kafka import Consumer, KafkaException

from parquet_sink.config.secret import plain
from parquet_sink.kafka.client.security import msk, stores
from parquet_sink.kafka.client.security.stores import StoreUnusable
from parquet_sink.kafka.client_settings import Client, Translation
from parquet_sink.net.tls import environment_authorities

JAAS: Final = "sasl.jaas.config"
MECHANISM: Final = "sasl.mechanism"
MECHANISMS: Final = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM"
LOGIN_CALLBACK: Final = "sasl.login.callback.handler.class"
FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
      | "(?P<double>(?:[^"\\\n]|\\.)*)"
      | '(?P<single>(?:[^'\\\n]|\\.)*)'
      | (?P<word>[^\s=;"']+)
      | (?P<mark>[=;])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
OAUTHBEARER: Final = "OAUTHBEARER"
MODULE: Final = "OAuthBearerLoginModule"
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
URL: Final = "sasl.oauthbearer.token.endpoint.url"
SCOPE: Final = "sasl.oauthbearer.scope"
ENCODE: Final = "sasl.oauthbearer.header.urlencode"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # the name of a setting
_OAUTH_SETTINGS: Final = frozenset({RETRIEVER, URL, SCOPE, ENCODE, CLIENT_ID, CLIENT_SECRET})
_OWN_ID: Final = "sasl.oauthbearer.client.id"
_OWN_SECRET: Final = "sasl.oauthbearer.client.secret"  # the name of a setting
_OTHER_WAYS: Final = (
    *("sasl.oauthbearer.config", "sasl.oauthbearer.grant.type", "sasl.oauthbearer.metadata.authentication.type"),
    "enable.sasl.oauthbearer.unsecure.jwt",
)
"""librdkafka's own settings of other ways to a token; who writes them knows what they want."""
_HANDLERS: Final = ("OAuthBearerLoginCallbackHandler",)
_RETRIEVERS: Final = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever")
_EXTENSION: Final = "extension_"
_JAVA_SAFE: Final = "*-._"
"""What Java's URLEncoder leaves as it is, beside letters and digits."""
CLASSES: Final = ("sasl.client.callback.handler.class", "sasl.login.class")
HANDLED: Final = frozenset({JAAS, LOGIN_CALLBACK, *CLASSES}) | _OAUTH_SETTINGS
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


@dataclass(frozen=True)
class LoginModule:
    """A login module by its class, and its options: passwords are among them."""

    name: str
    options: dict[str, str]

    @property
    def short(self) -> str:
        """The class's name without its package; programs that shade Kafka move the package."""
        return self.name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {sorted(self.options)})"


def translate(client: Client, to: Translation) -> None:
    """Adds librdkafka's settings, and what is wrong."""
    of_msk = plain(client, MECHANISM) == msk.MECHANISM or _is_of_msk(client, LOGIN_CALLBACK)
    for name in CLASSES:
        if plain(client, name) and not (of_msk and _is_of_msk(client, name)):
            to.problem(name, "A Java class cannot be loaded here; remove it.")
    signs_in = (plain(client, "security.protocol") or "").upper().startswith("SASL_")
    mechanism = plain(client, MECHANISM) or plain(client, "sasl.mechanisms")
    if signs_in and mechanism in (None, "GSSAPI") and not _has_kerberos():
        to.problem(MECHANISM, NO_KERBEROS if mechanism else f"It is missing, and Kafka's default, GSSAPI, {_LEFT_OUT}.")
        return
    module = _module(client, to)
    if of_msk:
        _msk(client, module, to)
        return
    if mechanism == OAUTHBEARER:
        _oauth(client, module, to)
        return
    if plain(client, LOGIN_CALLBACK):
        to.problem(LOGIN_CALLBACK, f"A Java class cannot be loaded here; remove it, and write {JAAS}.")
    if module is not None:
        _password(module, to)


def _is_of_msk(client: Client, name: str) -> bool:
    return (plain(client, name) or "").rpartition(".")[2] in msk.HANDLERS


def _msk(client: Client, module: LoginModule | None, to: Translation) -> None:
    """Of AWS_MSK_IAM, or of OAUTHBEARER with AWS's callback handler."""
    if plain(client, MECHANISM) not in (msk.MECHANISM, OAUTHBEARER):
        to.problem(LOGIN_CALLBACK, f"It belongs to {MECHANISM}={msk.MECHANISM} or {OAUTHBEARER}; set one of them.")
        return
    if module is not None and module.short not in (msk.MODULE, MODULE):
        to.problem(JAAS, f"{msk.MECHANISM} needs {msk.MODULE}; {module.name} is another login module.")
        return
    if plain(client, LOGIN_CALLBACK) and not _is_of_msk(client, LOGIN_CALLBACK):
        to.problem(LOGIN_CALLBACK, f"A Java class cannot be loaded here; remove it, or write {msk.HANDLERS[1]}.")
    msk.translate(client, {} if module is None else module.options, JAAS, to)


def _module(client: Client, to: Translation) -> LoginModule | None:
    text = plain(client, JAAS)
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        to.problem(JAAS, f"{error}. An example: {_example('plain.Plain')}")
        return None


def _password(module: LoginModule, to: Translation) -> None:
    """User and password of a login module."""
    if module.short == _KERBEROS_MODULE:
        to.problem(JAAS, "Write sasl.kerberos.principal and sasl.kerberos.keytab in place of Java's login module.")
        return
    if module.short == MODULE:
        to.problem(JAAS, f"{MODULE} signs in by {OAUTHBEARER}; set {MECHANISM} to that.")
        return
    if module.short not in _PASSWORD_MODULES:
        which = f"Of login modules {', '.join(_PASSWORD_MODULES)} and {MODULE} are understood"
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


def parse(text: str) -> LoginModule:
    """The one login module of `sasl.jaas.config`, by the rules of Kafka's Java client.

    `CLASS FLAG NAME=VALUE ... ;` with values as words or in quotation marks, `//` and `/* */` as comments. Raises
    ValueError with what is wrong, as the begin of a sentence, which shows nothing of the text.
    """
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("It names no login module")
    if len(tokens) < 2 or str(tokens[1][1]).lower() not in FLAGS:
        raise ValueError("After the login module's class comes a flag: write `required`")
    options, end = _options(tokens, 2)
    if end != len(tokens):
        raise ValueError("It has more than one login module; keep one")
    return LoginModule(tokens[0][1], options)


def _options(tokens: list[tuple[str, str]], start: int) -> tuple[dict[str, str], int]:
    """The options from a token on, and where the next module would begin."""
    options: dict[str, str] = {}
    at = start
    while at < len(tokens) and tokens[at] != ("mark", ";"):
        triple = tokens[at : at + 3]
        if len(triple) < 3 or triple[1] != ("mark", "=") or triple[2][0] == "mark":
            number = len(options) + 1
            raise ValueError(f"Option {number} is not of the form name=value; put values in quotation marks")
        options[triple[0][1]] = triple[2][1]
        at += 3
    if at == len(tokens):
        raise ValueError("It does not end with a semicolon")
    return options, at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    """Words, quoted texts without their escapes, and marks."""
    found: list[tuple[str, str]] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError("A quotation mark in it has no partner")
        at = token.end()
        if token["mark"]:
            found.append(("mark", token["mark"]))
        elif token["word"] is not None:
            found.append(("text", token["word"]))
        elif token["comment"] is None:
            quoted = token["double"] if token["double"] is not None else token["single"]
            found.append(("text", _ESCAPE.sub(_unescaped, quoted)))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _CONTROLS.get(code, code)


def _oauth(client: Client, module: LoginModule | None, to: Translation) -> None:
    """Likewise of OAUTHBEARER. module: of `sasl.jaas.config`, None where there is none."""
    options = module.options if module is not None else {}
    if module is not None and module.short != MODULE:
        to.problem(JAAS, f"{OAUTHBEARER} needs {MODULE}; {module.name} is another login module.")
        return
    _classes(client, to)
    url = plain(client, URL)
    if url is None and any(plain(client, name) for name in _OTHER_WAYS):
        return
    if url is None:
        to.problem(URL, f"It is missing; {OAUTHBEARER} gets its tokens there: write https://HOST/PATH.")
    elif urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        to.problem(
            URL, f"{url} is not an address of a token endpoint; write https://HOST/PATH. A token is read from no file."
        )
    else:
        to.settings |= {"sasl.oauthbearer.method": "oidc", URL: url}
        _authorities(url, client, options, to)
    if not any(plain(client, name) for name in _OTHER_WAYS):
        _credentials(client, options, to)
    if scope := plain(client, SCOPE) or options.get("scope"):
        to.settings[SCOPE] = scope
    _extensions(options, to)


def _credentials(client: Client, options: Mapping[str, str], to: Translation) -> None:
    """Id and secret by Java's names, librdkafka's, or the login module's options; encoded first if so asked."""
    client_id = plain(client, CLIENT_ID) or plain(client, _OWN_ID) or options.get("clientId")
    secret = plain(client, CLIENT_SECRET) or plain(client, _OWN_SECRET) or options.get("clientSecret")
    for value, name, option in ((client_id, CLIENT_ID, "clientId"), (secret, CLIENT_SECRET, "clientSecret")):
        if not value:
            to.problem(name, f"It is missing; set it, or {option} in {JAAS}.")
    if client_id and secret:
        if (plain(client, ENCODE) or "").lower() == "true":
            client_id, secret = quote_plus(client_id, safe=_JAVA_SAFE), quote_plus(secret, safe=_JAVA_SAFE)
        to.settings |= {_OWN_ID: client_id, _OWN_SECRET: secret}


def _classes(client: Client, to: Translation) -> None:
    """Kafka's own classes do what librdkafka does; others cannot be loaded."""
    for name, known in ((LOGIN_CALLBACK, _HANDLERS), (RETRIEVER, _RETRIEVERS)):
        given = plain(client, name)
        if given is not None and given.rpartition(".")[2] not in known:
            built_in = " or ".join(known)
            to.problem(name, f"A Java class cannot be loaded here, and {given} is not {built_in}; remove it.")


def _extensions(options: Mapping[str, str], to: Translation) -> None:
    """What goes to the brokers beside the token, as Confluent's cloud asks for."""
    found = [f"{name.removeprefix(_EXTENSION)}={text}" for name, text in options.items() if name.startswith(_EXTENSION)]
    if found:
        to.settings["sasl.oauthbearer.extensions"] = ",".join(found)


def _authorities(url: str, client: Client, options: Mapping[str, str], to: Translation) -> None:
    """Whom to trust at the token endpoint: by the login module, as in Java, else the environment, else the system.

    The system's must be named: the HTTP library within the client looks for them where one Linux has them.
    """
    own = [name for name in ("https.ca.location", "https.ca.pem") if plain(client, name)]
    if own or urlsplit(url).scheme != "https":
        return
    try:
        text = _trusted(options)
    except StoreUnusable as error:
        to.problem(JAAS, f"Its option ssl.truststore.{error.setting}: {error.reason}")
        return
    if text is not None:
        to.settings["https.ca.pem"] = text
    elif place := _of_system():
        to.settings["https.ca.location"] = place


def _trusted(options: Mapping[str, str]) -> str | None:
    """The certificates that the login module's options name."""
    path, kind = options.get("ssl.truststore.location"), options.get("ssl.truststore.type", "JKS").upper()
    if text := options.get("ssl.truststore.certificates"):
        return "".join(stores.certificates(text)) or None
    if path is None:
        return None
    if kind == "PEM":
        return stores.pem_certificates(path)
    return stores.trusted(path, options.get("ssl.truststore.password"))


def _of_system() -> str | None:
    named, paths = environment_authorities(os.environ), ssl.get_default_verify_paths()
    return named.place if named is not None else paths.cafile or paths.capath
