"""The checks of single values: each returns why the value is wrong and what to write instead, or None."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]@]+):(\d{1,5})")
_LONGEST_NAME = 200
SHORTEST_HMAC_KEY = 16


def _endpoint(value: Value) -> str | None:
    text = str(value)
    if "<<" in text or ">>" in text:
        return "It still holds template text (<<...>>); write the URL of your own team, realm and data pool."
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return "It is no valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>."
    if "@" in url.netloc:
        return "It holds a user or password; remove them, the credential belongs in connect.ems.authorization.key."
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or _has_blanks(text):
        return f"{quoted(text)} is no valid URL; write it as https://<team>.<realm>.celonis.cloud/<path>."
    return None


def _has_blanks(text: str) -> bool:
    return any(char.isspace() or not char.isprintable() for char in text)


def is_loopback(url: SplitResult) -> bool:
    """True when the URL's host is this machine whatever the network says."""
    host = (url.hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def clean_authorization(text: str) -> str:
    """The header's value as the reference connector sends it: trimmed, every double quote removed."""
    return text.strip().replace('"', "").strip()


def _authorization(value: Value) -> str | None:
    text = clean_authorization(value.reveal()) if isinstance(value, Secret) else ""
    if "<<" in text:
        return "It still holds template text (<<...>>); write the key that your team administrator issued."
    if not text.startswith(("AppKey", "Bearer")):
        return 'It must begin with "AppKey" or "Bearer" (case counts); write AppKey <key> or Bearer <key>.'
    if not (text.isascii() and text.isprintable()):
        return "It holds characters that no HTTP header can carry; write printable ASCII on one line."
    return None


def _name(value: Value) -> str | None:
    text = str(value)
    if not text.isprintable():
        return f"{quoted(text)} holds control characters; remove them."
    if len(text) > _LONGEST_NAME:
        return f"It has {len(text)} characters; the name of a folder and a group may have {_LONGEST_NAME}."
    return None


def _topics(value: Value) -> str | None:
    if value == ():
        return "It names no topic; name the topics to read."
    for topic in value if isinstance(value, tuple) else ():
        if topic in (".", "..") or not _TOPIC.fullmatch(topic):
            return (
                f"{quoted(topic)} is no legal topic name; a topic has 1 to 249 letters, digits, dots, underscores and "
                "hyphens (for a pattern use topics.regex)."
            )
    return None


def _regex(value: Value) -> str | None:
    try:
        re.compile(str(value))
    except (re.error, OverflowError, RecursionError) as error:
        return f"{quoted(str(value))} is no valid regular expression ({error}); correct it."
    return None


def _column_names(value: Value) -> str | None:
    for name in value if isinstance(value, tuple) else ():
        plain = name.replace("_", "a")
        if not (plain[0].isalpha() and plain.isalnum()):
            return (
                f"{quoted(name)} cannot be a primary key's name; it must begin with a letter or _ and go on with "
                "letters, digits and _ (names are those after flattening)."
            )
    return None


def _servers(value: Value) -> str | None:
    for server in value if isinstance(value, tuple) else ():
        found = _SERVER.fullmatch(server)
        if found is None or not 1 <= int(found.group(1)) <= 65535:
            return f"{quoted(server)} is no broker address; write host:port, several separated by commas."
    return None


def _header_text(value: Value) -> str | None:
    if not str(value).isprintable():
        return f"{quoted(str(value))} holds control characters; remove them."
    return None


def _user(value: Value) -> str | None:
    if ":" in str(value):
        return "A user of Basic authentication cannot hold a colon; correct it."
    return _header_text(value)


def _paths(value: Value) -> str | None:
    names = value if isinstance(value, tuple) else ()
    if not names:
        return "It names no field; name the fields to obfuscate, or remove the key."
    split = {name: tuple(name.split(".")) for name in names}
    for name, steps in split.items():
        if not all(steps):
            return f"{quoted(name)} has a step without a name; write names with single full stops between."
    for name, steps in split.items():
        for other, more in split.items():
            if name != other and more[: len(steps)] == steps:
                return f"{quoted(name)} and {quoted(other)} overlap; keep one of them."
    return None


def _hmac_key(value: Value) -> str | None:
    size = len(value.reveal().encode()) if isinstance(value, Secret) else 0
    if size >= SHORTEST_HMAC_KEY:
        return None
    return f"It has {size} bytes, which is too short to be safe; give a secret of {SHORTEST_HMAC_KEY} bytes or more."


def must_be(wanted: bool, why: str) -> Check:
    """A flag that has one possible value here."""
    word = str(wanted).lower()
    return Check(f"only {word}", lambda value: None if value is wanted else f"{why}; set {word} or remove the key.")


ENDPOINT = Check("a URL: https, or http to a loopback address", _endpoint)
AUTHORIZATION = Check("begins with `AppKey` or `Bearer`", _authorization)
NAME = Check(f"1 to {_LONGEST_NAME} printable characters", _name)
TOPICS = Check("legal topic names", _topics)
REGEX = Check("a regular expression", _regex)
COLUMN_NAMES = Check("each a letter or `_`, then letters, digits, `_`", _column_names)
SERVERS = Check("host:port each", _servers)
PRINTABLE = Check("printable characters", _header_text)
PROXY_USER = Check("printable characters, no colon", _user)
PATHS = Check("paths that do not overlap", _paths)
HMAC_KEY = Check(f"{SHORTEST_HMAC_KEY} bytes or more", _hmac_key)
