"""From the worker file's values to the settings of its REST API, and what is wrong with them together.

Certificates and keys are looked at before TLS itself tries them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from parquet_sink.config.declared import made
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import parse_properties
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker_config.rest.roles import Role, password_and_role
from parquet_sink.worker_config.rest.settings import (
    ADMIN_LISTENERS,
    ADMIN_TLS,
    ADVERTISED,
    CERTIFICATE_ROLES,
    DEFAULT_LISTENERS,
    EXTENSIONS,
    LISTENERS,
    TLS,
    USERS,
    ClientAuth,
    RestSettings,
    Store,
    TlsSettings,
    addresses,
)
from parquet_sink.worker_config.rest.values import Address

_PEM: Final = "-----BEGIN "


def build(values: Values, machine: Machine, report: Report) -> RestSettings:
    """The settings; what is wrong goes to the report, and has its default then."""
    listeners = addresses(values, LISTENERS)
    admin = addresses(values, ADMIN_LISTENERS)
    tls = _tls_settings(TLS, LISTENERS, listeners, values, machine, report)
    admin_tls = _tls_settings(ADMIN_TLS, ADMIN_LISTENERS, admin, values, machine, report)
    users, roles = _users(values, machine, report)
    certified = any(one is not None and one.client_auth != "none" for one in (tls, admin_tls))
    if values.names(CERTIFICATE_ROLES) and not certified:
        report.problem(
            CERTIFICATE_ROLES,
            f"No client shows a certificate; set {TLS}ssl.client.auth on an https listener, or remove the key.",
        )
    _safe(LISTENERS, listeners, users, tls, report)
    _safe(ADMIN_LISTENERS, admin, users, admin_tls, report)
    _distinct((*listeners, *admin), report)
    _advertised(values, listeners or DEFAULT_LISTENERS, report)
    return made(
        RestSettings,
        values,
        machine,
        tls=tls,
        admin_tls=admin_tls,
        users=users,
        roles=roles,
        host_name=machine.host_name,
    )


def _distinct(listeners: Sequence[Address], report: Report) -> None:
    places = Counter((one.host, one.port) for one in listeners if one.port)
    for (host, port), count in places.items():
        if count > 1:
            report.problem(
                "listeners",
                f"{quoted(f'{host}:{port}')} is listed {count} times; give each listener its own port.",
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
    prefix = TLS if key == LISTENERS else ADMIN_TLS
    for one in listeners:
        if one.is_loopback:
            continue
        cure = f"write {one.scheme}://localhost:{one.port}"
        if one.scheme == "http":
            report.problem(
                key,
                f"{quoted(str(one))} is open to other machines without TLS; {cure}, or https with {USERS} or "
                f"{prefix}ssl.client.auth=required.",
            )
        elif not users and not certified:
            report.problem(
                key,
                f"{quoted(str(one))} is open to other machines, and nobody has to sign in; set {USERS} or "
                f"{prefix}ssl.client.auth=required, or {cure}.",
            )


def _advertised(values: Values, listeners: Sequence[Address], report: Report) -> None:
    requested = values.text(ADVERTISED)
    if requested is not None and requested not in {one.scheme for one in listeners}:
        report.problem(ADVERTISED, f"There is no {requested} listener; name one in listeners.")


def _users(
    values: Values, machine: Machine, report: Report
) -> tuple[tuple[tuple[str, Secret], ...], tuple[tuple[str, Role], ...]]:
    """Passwords by name, and roles of those that have one."""
    path = values.text(USERS)
    if path is None:
        if values.names(EXTENSIONS):
            report.problem(USERS, "It is missing: rest.extension.classes names basic authentication; name its file.")
        return (), ()
    shown = values.quoted(USERS)
    try:
        found = parse_properties(machine.read_text(machine.absolute(path)), path).properties
    except OSError as error:
        reason = error.strerror or type(error).__name__
        report.problem(USERS, f"{shown} cannot be read ({reason}); name a file of users and passwords.")
        return (), ()
    except (InvalidConfiguration, ValueError):
        report.problem(USERS, f"{shown} cannot be understood; write user: password, one a line.")
        return (), ()
    if not found or not all(name and ":" not in name and password for name, password in found.items()):
        report.problem(
            USERS,
            f"{shown} has no user, or one without a password, or with a colon; write user: password, one a line.",
        )
        return (), ()
    users, roles = [], []
    for name, text in found.items():
        password, role, is_odd = password_and_role(text)
        if not password:
            report.problem(USERS, f"{shown} has a user with a role and no password; write user: password,role.")
        if is_odd:
            report.warn(
                USERS,
                f"User {quoted(name)} in {shown} has a comma in the password and a word behind it that is not a role "
                "(viewer, operator, admin): it is part of the password, and the user is an admin.",
            )
        users.append((name, Secret(password)))
        roles += [] if role is None else [(name, role)]
    return tuple(users), tuple(roles)


def _tls_settings(
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
    """Reports what is wrong with a file before TLS itself tries it."""
    if store.file is None:
        return
    path, type_ = machine.absolute(store.file), values.text(type_key)
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
    return store if store.file is None else replace(store, file=machine.absolute(store.file))
