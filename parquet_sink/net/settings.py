"""Keys, settings and checks of HTTP: timeouts, TLS, idle connections, a proxy, access tokens."""

import ipaddress
from typing import ClassVar, Final, Literal
from urllib.parse import SplitResult, urlsplit

from parquet_sink.config.checks import PRINTABLE, printable_text
from parquet_sink.config.declared import LocalPath, Milliseconds, ShortMilliseconds, declared, filled_by, key
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values

HTTP: Final = "HTTP, TLS and proxy"
ENDPOINT: Final = ems("endpoint")
CLIENT_ID: Final = ems("oauth2.client.id")
CLIENT_SECRET: Final = ems("oauth2.client.secret")
TOKEN_URL: Final = ems("oauth2.token.url")
AUTHENTICATION: Final = ems("oauth2.client.authentication")
ALLOW_HTTP: Final = ems("endpoint.allow.http")
PROXY_SIGN_IN: Final = ems("proxy.auth.type")
PROXY_USER: Final = ems("proxy.auth.username")
PROXY_PASSWORD: Final = ems("proxy.auth.password")
_TOKEN_CURE: Final = "write it as https://<team>.<realm>.celonis.cloud/oauth2/token."

ProxyType = Literal["HTTP", "SOCKS4", "SOCKS5"]


def wrong_url(text: str, form: str, credentials: str, *, ascii_only: bool = True) -> str | None:
    """Why a text is no http or https URL of a host; None when it is one.

    form: the cure. credentials: where user and password belong, which no URL holds.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return f"It is not a valid URL; {form}"
    if "@" in url.netloc:
        return f"It holds a user or password; remove them, {credentials}"
    odd = (ascii_only and not text.isascii()) or any(char.isspace() or not char.isprintable() for char in text)
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or odd:
        return f"{quoted(text)} is not a valid URL; {form}"
    return None


def _wrong_user(value: Value) -> str | None:
    if ":" in str(value):
        return "A user of Basic authentication cannot hold a colon; correct it."
    return printable_text(value)


def _wrong_token_url(value: Value) -> str | None:
    text = str(value)
    if "<<" in text or ">>" in text:
        return "It still holds template text (<<...>>); write the URL of your own team and realm."
    if reason := wrong_url(text, _TOKEN_CURE, "they belong in connect.ems.oauth2.client.id and its secret."):
        return reason
    if urlsplit(text).fragment:
        return f"{quoted(text)} has a fragment, which no token endpoint has; remove what begins with #."
    return None


def _wrong_client_id(value: Value) -> str | None:
    if not all(" " <= char <= "~" for char in str(value)):
        return f"{quoted(str(value))} holds characters that no client id has; write printable ASCII."
    return None


def _wrong_scope(value: Value) -> str | None:
    if not all(" " <= char <= "~" and char not in '"\\' for char in str(value)):
        return f"{quoted(str(value))} is not a list of scopes; write their names in printable ASCII, blanks between."
    return None


def _token_url(values: Values, machine: Machine) -> str:
    """Where the EMS gives access tokens: at the host that files go to."""
    url = urlsplit(values.text(ENDPOINT) or "")
    return values.text(TOKEN_URL) or f"{url.scheme}://{url.netloc}/oauth2/token"


def _signs_in(values: Values) -> bool:
    """With a user and a password, or not at all."""
    there = values.text(PROXY_USER) is not None and values.secret(PROXY_PASSWORD) is not None
    return there and values.text(PROXY_SIGN_IN) == "BASIC"


@declared(group=HTTP, origin=Origin.EMS, optional=True)
class ProxySettings:
    """How to leave for the target. User and password go to the proxy alone."""

    host: str = key(
        ems("proxy.host"),
        "Proxy to reach the target through; used when `connect.ems.proxy.port` is set too.",
        check=PRINTABLE,
        needs=ems("proxy.port"),
    )
    port: int = key(ems("proxy.port"), "Port of the proxy.", minimum=1, maximum=65_535, needs=ems("proxy.host"))
    type: ProxyType = key(
        ems("proxy.type"), "Protocol of the proxy.", default="HTTP", other_choice="HTTP", needs=ems("proxy.host")
    )
    sign_in: ClassVar[Literal["BASIC"] | None] = key(
        PROXY_SIGN_IN,
        "How to sign in at the proxy. The credential goes to the proxy alone.",
        default=None,
        default_text="not at all",
        needs=ems("proxy.host"),
    )
    username: str | None = key(
        PROXY_USER,
        "User at the proxy.",
        default=None,
        check=Check("printable characters, no colon", _wrong_user),
        needs=PROXY_SIGN_IN,
        computed=lambda values, machine: values.text(PROXY_USER) if _signs_in(values) else None,
    )
    password: Secret | None = key(
        PROXY_PASSWORD,
        "Password at the proxy.",
        default=None,
        needs=PROXY_SIGN_IN,
        computed=lambda values, machine: values.secret(PROXY_PASSWORD) if _signs_in(values) else None,
    )


@declared(group="The target", origin=Origin.OWN, optional=True)
class ClientCredentials:
    """As whom an access token is asked for, and where (RFC 6749, section 4.4).

    in_body: id and secret go as fields of the form in place of a Basic header.
    """

    client_id: str = key(
        CLIENT_ID,
        "In place of `connect.ems.authorization.key`: the OAuth 2.0 client (grant `client_credentials`) that access "
        "tokens are asked for; they are renewed before they end. See [upload.md](upload.md#access-tokens).",
        check=Check("printable ASCII", _wrong_client_id),
        missing="name the client.",
    )
    client_secret: Secret = key(
        CLIENT_SECRET,
        "Secret of that client; both are needed. Never printed; best given by a config provider, see Secrets.",
        missing="give the client's secret, best as ${env:NAME} or ${file:PATH:KEY}.",
    )
    token_url: str = key(
        TOKEN_URL,
        "Where access tokens are asked for. It is reached as the target is: through the same proxy, with the same "
        "authorities.",
        default_text="`/oauth2/token` at the host of `connect.ems.endpoint`",
        check=Check("a URL: https, or http to a loopback address", _wrong_token_url),
        needs=CLIENT_ID,
        computed=_token_url,
    )
    scope: str | None = key(
        ems("oauth2.scope"),
        "Scopes to ask for, separated by blanks, such as `integration.data-pools:data_push`.",
        default=None,
        default_text="none is named",
        check=Check("names in printable ASCII, separated by blanks", _wrong_scope),
        needs=CLIENT_ID,
    )
    authentication: ClassVar[Literal["basic", "post"]] = key(
        AUTHENTICATION,
        "How the client proves who it is: `basic` (id and secret in a header), or `post` (in the form); as the client "
        "was registered (`client_secret_basic`, `client_secret_post`).",
        default="basic",
        needs=CLIENT_ID,
    )
    in_body: bool = filled_by(
        AUTHENTICATION, default=False, computed=lambda values, machine: values.text(AUTHENTICATION) == "post"
    )


@declared(group=HTTP, origin=Origin.EMS, kw_only=True)
class HttpSettings:
    """What targets over HTTP share."""

    connect_timeout_ms: ShortMilliseconds = key(
        ems("http.connect.timeout.ms"),
        "Time to reach the target, in milliseconds.",
        default=10_000,
        minimum=1,
        origin=Origin.OWN,
    )
    response_timeout_ms: ShortMilliseconds = key(
        ems("http.response.timeout.ms"),
        "Time the target may take to answer after it has the whole file, in milliseconds.",
        default=90_000,
        minimum=1,
        origin=Origin.OWN,
    )
    ca_file: LocalPath | None = key(
        ems("tls.ca.file"),
        "PEM file with the certificate authorities that may vouch for the target. A certificate is always verified.",
        default=None,
        default_text="`REQUESTS_CA_BUNDLE`, `SSL_CERT_FILE` or the system's",
        origin=Origin.OWN,
    )
    pool_max_idle: int = key(
        ems("pool.max.idle"), "Idle connections to the target that are kept.", default=5, minimum=0
    )
    pool_keepalive_ms: Milliseconds = key(
        ems("pool.keepalive"), "Time an idle connection is kept, in milliseconds.", default=300_000, minimum=1
    )
    pool_explicit_close: bool = key(
        ems("pool.explicit.close"),
        "Add `Connection: Close` to every upload, so that each has a connection of its own.",
        default=False,
    )
    proxy: ProxySettings | None = None
    allow_http: ClassVar[bool] = filled_by(ALLOW_HTTP, default=False)

    @property
    def closes(self) -> bool:
        """Whether each request has a connection of its own."""
        return self.pool_explicit_close or self.pool_max_idle <= 0


def is_loopback(url: SplitResult) -> bool:
    """True when the URL's host is this machine whatever the network says."""
    host = (url.hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_in_clear(values: Values, name: str, report: Report, what: str = "the credential") -> None:
    """An address with http must be on this machine, unless that is permitted. what: would be seen by others."""
    address = values.text(name)
    if address is None or values.flag(ALLOW_HTTP):
        return
    url = urlsplit(address)
    if url.scheme == "http" and not is_loopback(url):
        report.problem(
            name,
            f"{values.quoted(name)} would carry {what} in clear; use https, or permit http with {ALLOW_HTTP}=true.",
        )


def check_proxy(values: Values, report: Report) -> None:
    """Who signs in says as whom."""
    if values.text(PROXY_SIGN_IN) != "BASIC":
        return
    for name in (PROXY_USER, PROXY_PASSWORD):
        if name not in values.given:
            report.warn(name, "It is missing, so nobody signs in at the proxy; set it, or remove the others.")
