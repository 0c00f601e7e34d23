"""The push API as a class of targets: its keys, their checks, and settings. Durations are milliseconds."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import declared, filled_by, key, keys_of, made
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.net.settings import (
    ALLOW_HTTP,
    CLIENT_ID,
    CLIENT_SECRET,
    ENDPOINT,
    TOKEN_URL,
    ClientCredentials,
    HttpSettings,
    check_in_clear,
    check_proxy,
    wrong_url,
)
from parquet_sink.plugins import named
from parquet_sink.rows.settings import MOST_VARCHAR_BYTES, RAW_ORDER
from parquet_sink.targets.settings import Target
from parquet_sink.targets.target_class import PUSH, TYPE, TargetClass

TARGET: Final = "The target"
TABLE: Final = ems("target.table")
AUTHORIZATION: Final = ems("authorization.key")
MISSING_TABLE: Final = "give the name of the table that the target fills."
ORDER_COLUMN: Final = "__celonis_order"
_FORM: Final = "write it as https://<team>.<realm>.celonis.cloud/<path>."
_CLIENT: Final = tuple(key.name for key in keys_of(ClientCredentials))


def clean_authorization(text: str) -> str:
    """The header's value as the reference connector sends it: trimmed, every double quote removed."""
    return text.strip().replace('"', "").strip()


def _wrong_authorization(value: Value) -> str | None:
    text = clean_authorization(value.reveal()) if isinstance(value, Secret) else ""
    if "<<" in text:
        return "It still holds template text (<<...>>); write the key that your team administrator issued."
    if not text.startswith(("AppKey", "Bearer")):
        return 'It must begin with "AppKey" or "Bearer" (case counts); write AppKey <key> or Bearer <key>.'
    if not (text.isascii() and text.isprintable()):
        return "It holds characters that no HTTP header can carry; write printable ASCII on one line."
    return None


def _authorization(values: Values, machine: Machine) -> Secret | ClientCredentials | None:
    if values.text(CLIENT_ID) is not None and values.secret(CLIENT_SECRET) is not None:
        return made(ClientCredentials, values, machine)
    found = values.secret(AUTHORIZATION)
    return None if found is None else Secret(clean_authorization(found.reveal()))


@declared(group=TARGET, origin=Origin.EMS, optional=True)
class PushSettings(HttpSettings):
    """Where files are sent, as whom, with which parameters, and over which connections.

    authorization: the header's value, or what access tokens are asked for with. read_outs: names what asks a target of
    this kind what it has.
    """

    read_outs: ClassVar[str] = "parquet_sink.addons.replay.read_outs:ReadOuts"

    allow_http: ClassVar[bool] = key(
        ALLOW_HTTP,
        "Permit an endpoint with http that is not on this machine. Credential and data then travel in clear.",
        default=False,
        origin=Origin.OWN,
    )
    endpoint: str = filled_by(
        ENDPOINT,
        missing="give the full URL of the push API, "
        "https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items.",
    )
    authorization: Secret | ClientCredentials = key(
        AUTHORIZATION,
        'Value of the `Authorization` header: `AppKey <key>` or `Bearer <key>`. Blanks around it and every `"` in it '
        "are removed. Never printed; best given by a config provider, see Secrets.",
        default_text="required for a push API, unless access tokens are used",
        check=Check("begins with `AppKey` or `Bearer`", _wrong_authorization),
        type_=Secret,
        computed=_authorization,
    )
    client: ClassVar[ClientCredentials | None]
    target_table: str = filled_by(TABLE, missing=MISSING_TABLE)
    connection_id: str | None = key(
        ems("connection.id"),
        "Data connection at the target; sent with every file when set.",
        default=None,
        check=PRINTABLE,
    )
    fallback_varchar_length: int | None = key(
        ems("data.fallback.varchar.length"),
        "Length in bytes that the target gives to its text columns; sent with every file when set.",
        default=None,
        default_text="the target's",
        minimum=1,
        maximum=MOST_VARCHAR_BYTES,
    )
    primary_keys: tuple[str, ...] = filled_by(ems("data.primary.key"), default=())
    order_column: str | None = None

    @property
    def address(self) -> str:
        """The configured address."""
        return self.endpoint

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """Of certificate authorities, also when the address is http now: what is named is meant to be used."""
        problems: Iterator[str] = named("parquet_sink.net.tls:problems")(self.ca_file, environment)
        return problems

    def open(self) -> Target:
        target: Target = named("parquet_sink.targets.push.target:PushTarget")(self)
        return target


class PushApi(TargetClass):
    """Files go to a push API over HTTP."""

    title = "a push API"
    keys = keys_of(PushSettings, TARGET)
    settings_class = PushSettings

    def check(self, values: Values, report: Report) -> None:
        signed = ("client",) if AUTHORIZATION in values.given else ()  # then half a client is one too many
        check_keys(PushSettings, values, report, *signed)
        _credential(values, report)
        check_in_clear(values, ENDPOINT, report)
        check_in_clear(values, TOKEN_URL, report)
        check_proxy(values, report)

    def settings(self, values: Values, machine: Machine) -> PushSettings:
        return made(PushSettings, values, machine, order_column=_order_column(values))

    def wrong(self, address: str) -> str | None:
        if "<<" in address or ">>" in address:
            return "It still holds template text (<<...>>); write the URL of your own team, realm and data pool."
        belongs = "the credential belongs in connect.ems.authorization.key."
        return wrong_url(address, _FORM, belongs, ascii_only=False)

    def at(self, address: str, below: str = "") -> Mapping[str, str]:
        """No credential crosses to another address."""
        return {TYPE: PUSH, ENDPOINT: address, **dict.fromkeys(_CLIENT, ""), AUTHORIZATION: ""}


def _credential(values: Values, report: Report) -> None:
    """One of the two ways; that the second is whole is checked with the settings."""
    client = [name for name in (CLIENT_ID, CLIENT_SECRET) if name in values.given]
    if AUTHORIZATION in values.given and client:
        report.problem(AUTHORIZATION, f"Both it and {client[0]} are set; keep the key, or the OAuth 2.0 client.")
    elif AUTHORIZATION not in values.given and not client:
        report.problem(
            AUTHORIZATION,
            "It is missing; give AppKey <key> or Bearer <key>, best as ${env:NAME} or ${file:PATH:KEY}. Or give an "
            f"OAuth 2.0 client, with {CLIENT_ID} and {CLIENT_SECRET}.",
        )


def _order_column(values: Values) -> str | None:
    """That which is named, or that which the sink adds, or that of raw files."""
    if not values.names(ems("data.primary.key")):
        return None
    return values.text(ems("order.field.name")) or (RAW_ORDER if values.text(ems("mode")) == "raw" else ORDER_COLUMN)
