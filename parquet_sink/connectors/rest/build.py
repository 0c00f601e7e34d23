"""From the worker file's values to the settings of its REST API, and what is wrong with them together."""

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import parse_properties
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.connectors.hosting_keys import TRACKING, TRACKING_RESET
from parquet_sink.connectors.rest import addresses, header_rules
from parquet_sink.connectors.rest.addresses import Address, Scheme
from parquet_sink.connectors.rest.keys import ADMIN_TLS, TLS
from parquet_sink.connectors.rest.settings import (
    DEFAULT_LISTENERS,
    ClientAuth,
    CrossOrigin,
    RestSettings,
    Store,
    TlsSettings,
)
from parquet_sink.errors import InvalidConfiguration

_USERS = "rest.basic.auth.file"
_PEM = "-----BEGIN "


def build(values: Values, machine: Machine, report: Report) -> RestSettings:
    """The settings; what is wrong goes to the report, and has its default then."""
    listeners = _addresses(values, "listeners")
    admin = _addresses(values, "admin.listeners")
    tls = _tls(TLS, "listeners", listeners, values, machine, report)
    admin_tls = _tls(ADMIN_TLS, "admin.listeners", admin, values, machine, report)
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
        found = parse_properties(machine.read_text(_absolute(path, machine)), path).properties
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


def _tls(
    prefix: str, key: str, listeners: Sequence[Address], values: Values, machine: Machine, report: Report
) -> TlsSettings | None:
    """None where nothing is served by https, or something is wrong."""
    if not any(one.scheme == "https" for one in listeners):
        return None
    before = len(report.problems)
    identity = _identity(prefix, key, values, machine, report)
    authorities = _store(f"{prefix}ssl.truststore.", f"{prefix}ssl.truststore.certificates", values)
    auth = cast(ClientAuth, values.text(f"{prefix}ssl.client.auth"))
    if auth != "none" and authorities is None:
        report.problem(
            f"{prefix}ssl.truststore.location", "It is missing; name the authorities whose clients are let in."
        )
    if authorities is not None:
        _there(authorities, f"{prefix}ssl.truststore.type", values, machine, report)
    if identity is None or len(report.problems) > before:
        return None
    return TlsSettings(
        identity=_at(identity, machine),
        key_password=values.secret(f"{prefix}ssl.key.password"),
        authorities=None if authorities is None else _at(authorities, machine),
        client_auth=auth,
        protocols=values.names(f"{prefix}ssl.enabled.protocols"),
        ciphers=values.names(f"{prefix}ssl.cipher.suites"),
    )


def _identity(prefix: str, key: str, values: Values, machine: Machine, report: Report) -> Store | None:
    chain, own = values.text(f"{prefix}ssl.keystore.certificate.chain"), values.secret(f"{prefix}ssl.keystore.key")
    location = f"{prefix}ssl.keystore.location"
    if chain is not None and own is not None:
        return Store(f"{prefix}ssl.keystore.certificate.chain", text=Secret(f"{chain}\n{own.reveal()}\n"))
    identity = _store(f"{prefix}ssl.keystore.", "", values)
    if identity is None:
        report.problem(location, f"It is missing: {key} has an https address; name a file with certificate and key.")
    else:
        _there(identity, f"{prefix}ssl.keystore.type", values, machine, report)
    return identity


def _store(prefix: str, text_key: str, values: Values) -> Store | None:
    text = values.text(text_key) if text_key else None
    if text is not None:
        return Store(text_key, text=Secret(text))
    file = values.text(f"{prefix}location")
    return None if file is None else Store(f"{prefix}location", file=file, password=values.secret(f"{prefix}password"))


def _there(store: Store, type_key: str, values: Values, machine: Machine, report: Report) -> None:
    """What is told of a file before TLS itself tries it."""
    if store.file is None:
        return
    path, type_ = _absolute(store.file, machine), values.text(type_key)
    if not machine.is_file(path):
        report.problem(store.source, f"There is no file {quoted(store.file)}; correct the path.")
    elif type_ is not None and (type_ == "PEM") != _is_pem(path, machine):
        report.problem(type_key, f"{type_} is not what {quoted(store.file)} is; correct it, or remove the key.")


def _is_pem(path: str, machine: Machine) -> bool:
    try:
        return _PEM in machine.read_text(path)
    except (OSError, ValueError):
        return False


def _at(store: Store, machine: Machine) -> Store:
    return store if store.file is None else replace(store, file=_absolute(store.file, machine))


def _absolute(path: str, machine: Machine) -> str:
    return posixpath.normpath(posixpath.join(machine.working_dir, path))
