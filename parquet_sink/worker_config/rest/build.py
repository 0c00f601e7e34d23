"""From the worker file's values to the settings of its REST API, and what is wrong with them together."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import parse_properties
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker_config.hosting_keys import TRACKING, TRACKING_RESET
from parquet_sink.worker_config.rest import addresses, header_rules
from parquet_sink.worker_config.rest.addresses import Address, Scheme
from parquet_sink.worker_config.rest.settings import DEFAULT_LISTENERS, CrossOrigin, RestSettings, TlsSettings
from parquet_sink.worker_config.rest.tls import tls_settings
from parquet_sink.worker_config.rest.tls_keys import ADMIN_TLS, TLS

_USERS = "rest.basic.auth.file"


def build(values: Values, machine: Machine, report: Report) -> RestSettings:
    """The settings; what is wrong goes to the report, and has its default then."""
    listeners = _addresses(values, "listeners")
    admin = _addresses(values, "admin.listeners")
    tls = tls_settings(TLS, "listeners", listeners, values, machine, report)
    admin_tls = tls_settings(ADMIN_TLS, "admin.listeners", admin, values, machine, report)
    users = _users(values, machine, report)
    _safe("listeners", listeners, users, tls, report)
    _safe("admin.listeners", admin, users, admin_tls, report)
    _distinct((*listeners, *admin), report)
    _advertised(values, listeners or DEFAULT_LISTENERS, report)
    rules = values.text("response.http.headers.config")
    return RestSettings(
        listeners=listeners or DEFAULT_LISTENERS,
        given="listeners" in values.given,
        admin=admin if "admin.listeners" in values.given else None,
        tls=tls,
        admin_tls=admin_tls,
        users=users,
        anonymous_health=values.flag("rest.health.anonymous"),
        advertised_host=values.text("rest.advertised.host.name"),
        advertised_port=values.number("rest.advertised.port"),
        advertised_scheme=cast(Scheme | None, values.text("rest.advertised.listener")),
        cross_origin=_cross_origin(values),
        headers=() if rules is None else header_rules.parse(rules),
        topic_tracking=values.flag(TRACKING),
        topic_reset=values.flag(TRACKING_RESET),
        host_name=machine.host_name,
    )


def _addresses(values: Values, key: str) -> tuple[Address, ...]:
    return tuple(map(addresses.parse, values.names(key)))


def _cross_origin(values: Values) -> CrossOrigin:
    methods = tuple(method.upper() for method in values.names("access.control.allow.methods"))
    return CrossOrigin(values.names("access.control.allow.origin"), methods)


def _distinct(listeners: Sequence[Address], report: Report) -> None:
    places = Counter((one.host, one.port) for one in listeners if one.port)
    for (host, port), count in places.items():
        if count > 1:
            report.problem(
                "listeners", f"{quoted(f'{host}:{port}')} is there {count} times; give each listener a port of its own."
            )


def _safe(
    key: str,
    listeners: Sequence[Address],
    users: Sequence[tuple[str, Secret]],
    tls: TlsSettings | None,
    report: Report,
) -> None:
    """Who reaches the API can read what comes and send it elsewhere: from another machine only by name, and unread."""
    certified = tls is not None and tls.client_auth == "required"
    prefix = TLS if key == "listeners" else ADMIN_TLS
    for one in listeners:
        if one.is_loopback:
            continue
        cure = f"write {one.scheme}://localhost:{one.port}"
        if one.scheme == "http":
            report.problem(
                key,
                f"{quoted(str(one))} is open to other machines without TLS; {cure}, or https with {_USERS} or "
                f"{prefix}ssl.client.auth=required.",
            )
        elif not users and not certified:
            report.problem(
                key,
                f"{quoted(str(one))} is open to other machines, and nobody has to sign in; set {_USERS} or "
                f"{prefix}ssl.client.auth=required, or {cure}.",
            )


def _advertised(values: Values, listeners: Sequence[Address], report: Report) -> None:
    wished = values.text("rest.advertised.listener")
    if wished is not None and wished not in {one.scheme for one in listeners}:
        report.problem("rest.advertised.listener", f"There is no {wished} listener; name one in listeners.")


def _users(values: Values, machine: Machine, report: Report) -> tuple[tuple[str, Secret], ...]:
    path = values.text(_USERS)
    if path is None:
        if values.names("rest.extension.classes"):
            report.problem(_USERS, "It is missing: rest.extension.classes names basic authentication; name its file.")
        return ()
    shown = values.quoted(_USERS)
    try:
        found = parse_properties(machine.read_text(machine.absolute(path)), path).properties
    except OSError as error:
        reason = error.strerror or type(error).__name__
        report.problem(_USERS, f"{shown} cannot be read ({reason}); name a file of users and passwords.")
        return ()
    except (InvalidConfiguration, ValueError):
        report.problem(_USERS, f"{shown} cannot be understood; write user: password, one a line.")
        return ()
    if not found or not all(name and ":" not in name and password for name, password in found.items()):
        report.problem(
            _USERS,
            f"{shown} has no user, or one without a password, or with a colon; write user: password, one a line.",
        )
        return ()
    return tuple((name, Secret(password)) for name, password in found.items())
