"""The server's TLS among the worker file's keys, and what is wrong with its files before TLS itself tries them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.worker_config.rest.addresses import Address
from parquet_sink.worker_config.rest.settings import ClientAuth, Store, TlsSettings

_PEM = "-----BEGIN "


def tls_settings(
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
