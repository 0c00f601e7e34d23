"""The checks of single values of the push API's keys: each says why a value is wrong and the cure, or None."""

from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.checks import printable_text
from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret

_TOKEN_CURE: Final = "write it as https://<team>.<realm>.celonis.cloud/oauth2/token."


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


def _token_url(value: Value) -> str | None:
    text = str(value)
    if "<<" in text or ">>" in text:
        return "It still holds template text (<<...>>); write the URL of your own team and realm."
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return f"It is no valid URL; {_TOKEN_CURE}"
    if "@" in url.netloc:
        return "It holds a user or password; remove them, they belong in connect.ems.oauth2.client.id and its secret."
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or _has_blanks(text) or not text.isascii():
        return f"{quoted(text)} is no valid URL; {_TOKEN_CURE}"
    if url.fragment:
        return f"{quoted(text)} has a fragment, which no token endpoint has; remove what begins with #."
    return None


def _client_id(value: Value) -> str | None:
    if not all(" " <= char <= "~" for char in str(value)):
        return f"{quoted(str(value))} holds characters that no client id has; write printable ASCII."
    return None


def _scope(value: Value) -> str | None:
    if not all(" " <= char <= "~" and char not in '"\\' for char in str(value)):
        return f"{quoted(str(value))} is no list of scopes; write their names in printable ASCII, blanks between."
    return None


def default_token_url(endpoint: str) -> str:
    """Where the EMS gives access tokens: at the host that files go to."""
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.netloc}/oauth2/token"


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
TOKEN_URL: Final = Check("a URL: https, or http to a loopback address", _token_url)
CLIENT_ID: Final = Check("printable ASCII", _client_id)
SCOPE: Final = Check("names in printable ASCII, separated by blanks", _scope)
PROXY_USER: Final = Check("printable characters, no colon", _user)
