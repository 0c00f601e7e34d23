"""Keys of the worker file for its REST API."""

from collections.abc import Callable
from typing import Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import quoted
from parquet_sink.worker_config.rest import addresses, header_rules
from parquet_sink.worker_config.rest.tls_keys import REST_TLS_KEYS

REST: Final = "REST API"
BASIC_AUTH_EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
METHODS: Final = ("GET", "POST", "HEAD")
"""What other origins may send when `access.control.allow.origin` is set and nothing else."""


def _each(parse: Callable[[str], object]) -> Callable[[Value], str | None]:
    def test(value: Value) -> str | None:
        try:
            for one in value if isinstance(value, tuple) else (str(value),):
                parse(one)
        except ValueError as error:
            return str(error)
        return None

    return test


def _extension(value: Value) -> str | None:
    unknown = [name for name in value if name != BASIC_AUTH_EXTENSION] if isinstance(value, tuple) else []
    if not unknown:
        return None
    return f"{quoted(unknown[0])} is a Java class, and none can be loaded; remove it."


_ADDRESSES: Final = Check("addresses, http or https", _each(addresses.parse))
_RULES: Final = Check("rules, see there", _each(header_rules.parse))


def _key(
    name: str, type_: Type, doc: str, *, text: str = "", default: Value = None, needs: str = "", own: bool = False
) -> Key:
    origin = Origin.OWN if own else Origin.CONNECT
    check = PRINTABLE if type_ is Type.STRING else None
    return Key(name, REST, type_, doc, default=default, default_text=text, check=check, needs=needs, origin=origin)


REST_KEYS: Final = (
    Key(
        "listeners",
        REST,
        Type.LIST,
        "Addresses that the REST API listens on. A host other than this machine itself (`localhost`, `127.0.0.1`, "
        "`[::1]`) needs https, and either `rest.basic.auth.file` or `listeners.https.ssl.client.auth=required`; else "
        "the start is refused. An empty host stands for all of the machine's addresses, port 0 for any free one.",
        default_text="`http://localhost:8083` for `parquet-sink worker`, none for `run`",
        check=_ADDRESSES,
        origin=Origin.CONNECT,
    ),
    _key(
        "rest.advertised.host.name",
        Type.STRING,
        "The worker's name towards others: with the port it is `worker_id` in every status. Requests to an address of "
        "this machine alone may have it as their `Host`, as a proxy in front of the worker sends it.",
        text="the host of the listener",
    ),
    Key(
        "rest.advertised.port",
        REST,
        Type.INT,
        "The port in `worker_id`.",
        default_text="the port of the listener",
        minimum=1,
        maximum=65535,
        origin=Origin.CONNECT,
    ),
    Key(
        "rest.advertised.listener",
        REST,
        Type.STRING,
        "Which of the listeners gives host and port of `worker_id`, the first of its kind.",
        default_text="http, where there is one",
        choices=("http", "https"),
        origin=Origin.CONNECT,
    ),
    _key(
        "rest.basic.auth.file",
        Type.STRING,
        "File of users and passwords (`user: password` or `user=password`, one a line), as Kafka Connect's "
        "`PropertyFileLoginModule` reads it. When it is set, every request must sign in by basic authentication.",
        own=True,
    ),
    _key(
        "rest.health.anonymous",
        Type.BOOLEAN,
        "Whether `GET /health` is answered without signing in, for probes that cannot.",
        default=False,
        needs="rest.basic.auth.file",
        own=True,
    ),
    Key(
        "rest.extension.classes",
        REST,
        Type.LIST,
        f"Only `{BASIC_AUTH_EXTENSION}`: it needs `rest.basic.auth.file`, which says the same without it.",
        default=(),
        check=Check("only Kafka Connect's basic authentication", _extension),
        origin=Origin.CONNECT,
    ),
    _key(
        "access.control.allow.origin",
        Type.LIST,
        "Origins whose pages may use the API from a browser (CORS), `https://ops.example.com` say; `*` within one "
        "stands for anything, and alone for all of them, which then cannot send credentials.",
        text="only the API's own",
        default=(),
    ),
    _key(
        "access.control.allow.methods",
        Type.LIST,
        "What those origins may send.",
        default=METHODS,
        needs="access.control.allow.origin",
        text=f"`{','.join(METHODS)}`",
    ),
    Key(
        "response.http.headers.config",
        REST,
        Type.STRING,
        "Headers that each answer gets: `set X-Frame-Options: DENY, add Cache-Control: no-cache`, also `setDate` and "
        "`addDate` with milliseconds from now; a rule with a comma stands in double quotes.",
        check=_RULES,
        origin=Origin.CONNECT,
    ),
    Key(
        "admin.listeners",
        REST,
        Type.LIST,
        "Addresses for `/admin/loggers` alone, which the other listeners then do not have; a key with nothing behind "
        "it turns it off. The rules of `listeners` hold here, too.",
        default_text="those of `listeners`",
        check=_ADDRESSES,
        may_be_empty=True,
        origin=Origin.CONNECT,
    ),
)


ALL_REST_KEYS: Final = (*REST_KEYS, *REST_TLS_KEYS)
