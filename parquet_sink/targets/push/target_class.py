"""The push API as a class of targets: its address, who signs in, and that no credential travels in clear."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import keys_of, made
from parquet_sink.config.key import ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.net.settings import CLIENT_ID, CLIENT_SECRET, ENDPOINT, TOKEN_URL, ClientCredentials, has_blanks
from parquet_sink.rows.settings import RAW_ORDER
from parquet_sink.targets import http_checks
from parquet_sink.targets.push.settings import AUTHORIZATION, TARGET, PushSettings
from parquet_sink.targets.target_class import PUSH, TYPE, TargetClass

ORDER_COLUMN: Final = "__celonis_order"
_FORM: Final = "write it as https://<team>.<realm>.celonis.cloud/<path>."
_CLIENT: Final = tuple(key.name for key in keys_of(ClientCredentials))


class PushApi(TargetClass):
    """Files go to a push API over HTTP."""

    title = "a push API"
    keys = keys_of(PushSettings, TARGET)
    settings_class = PushSettings

    def check(self, values: Values, report: Report) -> None:
        signed = ("client",) if AUTHORIZATION in values.given else ()  # then half a client is one too many
        check_keys(PushSettings, values, report, *signed)
        _credential(values, report)
        http_checks.in_clear(values, ENDPOINT, report)
        http_checks.in_clear(values, TOKEN_URL, report)
        http_checks.proxy(values, report)

    def settings(self, values: Values, machine: Machine) -> PushSettings:
        return made(PushSettings, values, machine, order_column=_order_column(values))

    def wrong(self, address: str) -> str | None:
        if "<<" in address or ">>" in address:
            return "It still holds template text (<<...>>); write the URL of your own team, realm and data pool."
        try:
            url = urlsplit(address)
            port = url.port
        except ValueError:
            return f"It is no valid URL; {_FORM}"
        if "@" in url.netloc:
            return "It holds a user or password; remove them, the credential belongs in connect.ems.authorization.key."
        if url.scheme not in ("http", "https") or not url.hostname or port == 0 or has_blanks(address):
            return f"{quoted(address)} is no valid URL; {_FORM}"
        return None

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
