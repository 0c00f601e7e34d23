"""Keys of the target: where it is, how files get there, what happens when it says no."""

from typing import Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.key import Key, NotBuilt, Origin, Type, ems, is_set
from parquet_sink.shape.settings import MOST_VARCHAR_BYTES
from parquet_sink.targets.push.value_checks import AUTHORIZATION, ENDPOINT, PROXY_USER

TARGET: Final = "The target"
ERRORS: Final = "Errors and retries"
HTTP: Final = "HTTP, TLS and proxy"

TARGET_KEYS: Final = (
    Key(
        ems("endpoint"),
        TARGET,
        Type.STRING,
        "Full URL of the push API; nothing is appended to its path. Shape: "
        "`https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items`.",
        required=True,
        missing="give the full URL of the push API, "
        "https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items.",
        check=ENDPOINT,
    ),
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
        required=True,
        missing="give AppKey <key> or Bearer <key>, best as ${env:NAME} or ${file:PATH:KEY}.",
        check=AUTHORIZATION,
    ),
    Key(
        ems("target.table"),
        TARGET,
        Type.STRING,
        "Table that the target fills; sent with every file.",
        required=True,
        missing="give the name of the table that the target fills.",
        check=PRINTABLE,
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

ERROR_KEYS: Final = (
    Key(
        ems("error.policy"),
        ERRORS,
        Type.STRING,
        "What to do when an upload fails. What may pass (no connection, no answer, 408, 429, 5xx) is tried again under "
        "both, up to `connect.ems.max.retries` attempts and `connect.ems.sink.put.timeout.ms`. What the target refuses "
        "(a wrong key, say) stops the connector at once under `THROW`, and is tried again likewise under `RETRY`.",
        default="THROW",
        choices=("THROW", "RETRY", "CONTINUE"),
        not_built=NotBuilt(
            "`CONTINUE`",
            lambda value: value == "CONTINUE",
            "it would pass over records, and there is no dead-letter store yet to keep them; use RETRY or THROW.",
        ),
    ),
    Key(
        ems("max.retries"),
        ERRORS,
        Type.INT,
        "Attempts to upload one file, the first one included.",
        default=10,
        minimum=1,
    ),
    Key(
        ems("retry.interval"),
        ERRORS,
        Type.LONG,
        "Milliseconds before the second attempt; the pause doubles with each attempt, up to 5 minutes, varied at "
        "random. A `Retry-After` of the target is honoured, up to the same bound.",
        default=60_000,
        minimum=1_000,
    ),
    Key(
        ems("sink.put.timeout.ms"),
        ERRORS,
        Type.LONG,
        "Bound on the upload of one file with all its attempts and pauses, in milliseconds.",
        default=288_000,
        minimum=1,
    ),
    Key(
        ems("stop.timeout.ms"),
        ERRORS,
        Type.LONG,
        "How long a stop waits for the flush in progress, in milliseconds; connectors of a process stop side by side. "
        "Then it is given up: what the target accepted is committed, and the rest is sent again at the next start, "
        "under the same names.",
        default=30_000,
        minimum=0,
        origin=Origin.OWN,
    ),
    Key(
        ems("error.policy.continue.on.invalid.input"),
        ERRORS,
        Type.BOOLEAN,
        "Pass over records that cannot become a row. Without it the connector stops and names the record.",
        default=False,
        not_built=NotBuilt(
            "`true`",
            is_set,
            "there is no dead-letter store yet to keep such records; set false: the connector then stops at an "
            "invalid record and names it.",
        ),
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
