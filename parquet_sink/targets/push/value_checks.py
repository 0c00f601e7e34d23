"""The checks of single values of the push API's keys: each says why a value is wrong and the cure, or None."""

from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.checks import printable_text
from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret


def wrong_url(text: str) -> str | None:
    """Why an address is none of a push API, with the cure; None when it may be one."""
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


def _user(value: Value) -> str | None:
    if ":" in str(value):
        return "A user of Basic authentication cannot hold a colon; correct it."
    return printable_text(value)


AUTHORIZATION: Final = Check("begins with `AppKey` or `Bearer`", _authorization)
PROXY_USER: Final = Check("printable characters, no colon", _user)
