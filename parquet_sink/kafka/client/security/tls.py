"""Java's settings of TLS: stores of trust and keys, host names, protocols."""

from typing import Final

from parquet_sink.config.secret import plain
from parquet_sink.kafka.client.security import stores
from parquet_sink.kafka.client.security.stores import StoreUnusable
from parquet_sink.kafka.client_settings import Client, Translation

TRUST: Final = "ssl.truststore."
KEYS: Final = "ssl.keystore."
KEY_PASSWORD: Final = "ssl.key.password"  # the name of a setting
HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"
PROTOCOLS: Final = "ssl.enabled.protocols"
ENGINE: Final = "ssl.engine.factory.class"
HANDLED: Final = frozenset({KEY_PASSWORD, HOST_NAMES, PROTOCOLS, ENGINE})
JAVA_STORES: Final = ("JKS", "PKCS12", "PEM")
_LOWEST: Final = "TLSv1.2"


def is_handled(name: str) -> bool:
    """Whether a setting is translated here."""
    return name in HANDLED or name.startswith((TRUST, KEYS))


def translate(client: Client, to: Translation) -> None:
    """Adds librdkafka's settings, and what is wrong."""
    if given := [name for name in client if name.startswith(TRUST)]:
        _trust(client, to, given)
    _keys(client, to)
    _host_names(client, to)
    _protocols(client, to)
    if plain(client, ENGINE):
        to.problem(ENGINE, "A Java class cannot be loaded here; name stores in ssl.truststore.* and ssl.keystore.*.")


def _trust(client: Client, to: Translation, given: list[str]) -> None:
    """Whom to trust: a file of certificates, or certificates as text."""
    kind, path = _kind(client, TRUST), plain(client, f"{TRUST}location")
    text, password = plain(client, f"{TRUST}certificates"), plain(client, f"{TRUST}password")
    if kind not in JAVA_STORES:
        to.problem(f"{TRUST}type", _unknown_kind(kind))
    elif text is not None:
        _trusted_text(text, kind, path, to)
    elif path is None:
        _without_location(TRUST, given, to)
    elif kind == "PEM":
        to.settings["ssl.ca.location"] = path
    else:
        try:
            to.settings["ssl.ca.pem"] = stores.trusted(path, password)
        except StoreUnusable as error:
            to.problem(f"{TRUST}{error.setting}", error.reason)


def _trusted_text(text: str, kind: str, path: str | None, to: Translation) -> None:
    found = stores.certificates(text)
    if kind != "PEM":
        to.problem(f"{TRUST}certificates", f"Certificates as text need {TRUST}type=PEM; it is {kind}.")
    elif path is not None:
        to.problem(f"{TRUST}certificates", f"It and {TRUST}location are both set; keep one of them.")
    elif not found:
        to.problem(f"{TRUST}certificates", "It has no certificate in PEM form; give its lines from BEGIN to END.")
    else:
        to.settings["ssl.ca.pem"] = "".join(found)


def _keys(client: Client, to: Translation) -> None:
    """Our own certificate, with its key."""
    given = [name for name in client if name.startswith(KEYS)]
    key_password = plain(client, KEY_PASSWORD)
    if not given:
        if key_password is not None:
            to.settings[KEY_PASSWORD] = key_password  # of ssl.key.location, librdkafka's own setting
        return
    kind, path = _kind(client, KEYS), plain(client, f"{KEYS}location")
    try:
        if kind not in JAVA_STORES:
            to.problem(f"{KEYS}type", _unknown_kind(kind))
        elif plain(client, f"{KEYS}key") or plain(client, f"{KEYS}certificate.chain"):
            _own_text(client, kind, path, to)
        elif path is None:
            _without_location(KEYS, given, to)
        else:
            _own(to, _opened(client, kind, path, key_password))
    except StoreUnusable as error:
        name = KEY_PASSWORD if error.setting == "key.password" else f"{KEYS}{error.setting}"
        to.problem(name, error.reason)
    if kind == "PEM" and key_password is not None:
        to.settings[KEY_PASSWORD] = key_password


def _opened(client: Client, kind: str, path: str, key_password: str | None) -> stores.OwnKey:
    password = plain(client, f"{KEYS}password")
    if kind == "PEM":
        if password is not None:
            raise StoreUnusable("password", f"A PEM file has none; that of the private key is {KEY_PASSWORD}.")
        return stores.pem_key_store(path)
    if password is None:
        raise StoreUnusable("password", f"It is missing; {path} opens with it.")
    return stores.own_key(path, password, key_password)


def _own_text(client: Client, kind: str, path: str | None, to: Translation) -> None:
    key, chain = plain(client, f"{KEYS}key"), plain(client, f"{KEYS}certificate.chain")
    if kind != "PEM":
        to.problem(f"{KEYS}key", f"Key and certificate as text need {KEYS}type=PEM; it is {kind}.")
    elif path is not None:
        to.problem(f"{KEYS}key", f"It and {KEYS}location are both set; keep one of them.")
    elif key is None or not stores.private_keys(key):
        to.problem(f"{KEYS}key", "It has no private key in PEM form; give its lines from BEGIN to END.")
    elif chain is None or not stores.certificates(chain):
        to.problem(f"{KEYS}certificate.chain", "It has no certificate in PEM form; give those of the key.")
    else:
        _own(to, stores.OwnKey(stores.private_keys(key)[0], "".join(stores.certificates(chain))))


def _own(to: Translation, found: stores.OwnKey) -> None:
    to.settings["ssl.key.pem"], to.settings["ssl.certificate.pem"] = found.key, found.chain


def _host_names(client: Client, to: Translation) -> None:
    if HOST_NAMES not in client:
        return
    given = (plain(client, HOST_NAMES) or "none").lower()  # blank: Java's way to say so
    if given not in ("https", "none"):
        to.problem(HOST_NAMES, f"{given} does not check a host name; write https, or nothing to check none.")
    to.settings[HOST_NAMES] = given


def _protocols(client: Client, to: Translation) -> None:
    text = plain(client, PROTOCOLS)
    if text is None or _LOWEST in [one.strip() for one in text.split(",")]:
        return
    reason = f"The Kafka client speaks TLS 1.2 and 1.3, whichever the broker prefers; {text} alone cannot be asked for."
    to.problem(PROTOCOLS, f"{reason} Remove it, and set ssl.enabled.protocols of the brokers.")


def _without_location(prefix: str, given: list[str], to: Translation) -> None:
    """A type alone is no mistake; a password without a store is."""
    if f"{prefix}password" in given:
        to.problem(f"{prefix}password", f"No store is named that it opens; set {prefix}location.")


def _kind(client: Client, prefix: str) -> str:
    return (plain(client, f"{prefix}type") or "JKS").upper()


def _unknown_kind(kind: str) -> str:
    return f"Stores of type {kind} cannot be read here; write {', '.join(JAVA_STORES[:-1])} or {JAVA_STORES[-1]}."
