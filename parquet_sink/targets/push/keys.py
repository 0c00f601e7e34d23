"""Keys of the push API: as whom files are sent, with what, and over which connections."""

from typing import Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.shape.settings import MOST_VARCHAR_BYTES
from parquet_sink.targets.push.value_checks import AUTHORIZATION, PROXY_USER

TARGET: Final = "The target"
HTTP: Final = "HTTP, TLS and proxy"

PUSH_KEYS: Final = (
    Key(
        ems("endpoint.allow.http"),
        TARGET,
        Type.BOOLEAN,
        "Permit an endpoint with http that is not on this machine. Credential and data then travel in clear.",
        default=False,
        origin=Origin.OWN,
    ),
    Key(
        ems("authorization.key"),
        TARGET,
        Type.PASSWORD,
        'Value of the `Authorization` header: `AppKey <key>` or `Bearer <key>`. Blanks around it and every `"` in it '
        "are removed. Never printed; best given by a config provider, see Secrets.",
        default_text="required for a push API, unless access tokens are used",
        check=AUTHORIZATION,
    ),
    Key(
        ems("connection.id"),
        TARGET,
        Type.STRING,
        "Data connection at the target; sent with every file when set.",
        check=PRINTABLE,
    ),
    Key(
        ems("data.fallback.varchar.length"),
        TARGET,
        Type.INT,
        "Length in bytes that the target gives to its text columns; sent with every file when set.",
        default_text="the target's",
        minimum=1,
        maximum=MOST_VARCHAR_BYTES,
    ),
)

HTTP_KEYS: Final = (
    Key(
        ems("http.connect.timeout.ms"),
        HTTP,
        Type.INT,
        "Time to reach the target, in milliseconds.",
        default=10_000,
        minimum=1,
        origin=Origin.OWN,
    ),
    Key(
        ems("http.response.timeout.ms"),
        HTTP,
        Type.INT,
        "Time the target may take to answer after it has the whole file, in milliseconds.",
        default=90_000,
        minimum=1,
        origin=Origin.OWN,
    ),
    Key(
        ems("tls.ca.file"),
        HTTP,
        Type.STRING,
        "PEM file with the certificate authorities that may vouch for the target. A certificate is always verified.",
        default_text="`REQUESTS_CA_BUNDLE`, `SSL_CERT_FILE` or the system's",
        origin=Origin.OWN,
    ),
    Key(
        ems("pool.max.idle"),
        HTTP,
        Type.INT,
        "Idle connections to the target that are kept.",
        default=5,
        minimum=0,
    ),
    Key(
        ems("pool.keepalive"),
        HTTP,
        Type.LONG,
        "Time an idle connection is kept, in milliseconds.",
        default=300_000,
        minimum=1,
    ),
    Key(
        ems("pool.explicit.close"),
        HTTP,
        Type.BOOLEAN,
        "Add `Connection: Close` to every upload, so that each has a connection of its own.",
        default=False,
    ),
    Key(
        ems("proxy.host"),
        HTTP,
        Type.STRING,
        "Proxy to reach the target through; used when `connect.ems.proxy.port` is set too.",
        check=PRINTABLE,
        needs=ems("proxy.port"),
    ),
    Key(
        ems("proxy.port"),
        HTTP,
        Type.INT,
        "Port of the proxy.",
        minimum=1,
        maximum=65_535,
        needs=ems("proxy.host"),
    ),
    Key(
        ems("proxy.type"),
        HTTP,
        Type.STRING,
        "Protocol of the proxy.",
        default="HTTP",
        choices=("HTTP", "SOCKS4", "SOCKS5"),
        other_choice="HTTP",
        needs=ems("proxy.host"),
    ),
    Key(
        ems("proxy.auth.type"),
        HTTP,
        Type.STRING,
        "How to sign in at the proxy. The credential goes to the proxy alone.",
        default_text="not at all",
        choices=("BASIC",),
        needs=ems("proxy.host"),
    ),
    Key(
        ems("proxy.auth.username"),
        HTTP,
        Type.STRING,
        "User at the proxy.",
        check=PROXY_USER,
        needs=ems("proxy.auth.type"),
    ),
    Key(
        ems("proxy.auth.password"),
        HTTP,
        Type.PASSWORD,
        "Password at the proxy.",
        needs=ems("proxy.auth.type"),
    ),
)
