"""TLS contexts of the server, and of its requests to other workers."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parquet_sink.config.secret import Secret
from parquet_sink.errors import SetupError
from parquet_sink.kafka.client.security import stores
from parquet_sink.kafka.client.security.stores import StoreUnusable
from parquet_sink.net import tls
from parquet_sink.worker_config.rest.settings import Store, TlsSettings

_PEM: Final = b"-----BEGIN "
_FIRST_BYTES: Final = 65536
"""Text may stand before what a PEM file holds."""
_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context with the server's certificate. Raises SetupError that names the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = settings.protocols
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in versions else ssl.TLSVersion.TLSv1_3
    context.maximum_version = ssl.TLSVersion.TLSv1_3 if "TLSv1.3" in versions else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _identify(context, settings)
    context.verify_mode = _AUTH[settings.client_auth]
    if settings.authorities is not None:
        _trust(context, settings.authorities)
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(settings.ciphers))
        except ssl.SSLError as error:
            key = settings.identity.source.partition("ssl.")[0] + "ssl.cipher.suites"
            raise SetupError(f"Invalid [{key}]. OpenSSL knows none of them; write its names, or remove it.") from error
    return context


def client_context(settings: TlsSettings | None) -> ssl.SSLContext:
    """For requests to other workers: with the server's own certificate, and the authorities that it believes.

    Raises SetupError that names the key.
    """
    context = ssl.create_default_context()
    if settings is not None:
        _identify(context, settings)
        if settings.authorities is not None:
            _trust(context, settings.authorities)
    return context


def _identify(context: ssl.SSLContext, settings: TlsSettings) -> None:
    password = settings.key_password.reveal() if settings.key_password else ""
    with _identity_file(settings) as path:
        try:  # a password, be it empty: OpenSSL would ask for it on the terminal
            context.load_cert_chain(path, password=password)
        except (OSError, ValueError) as error:
            raise _unusable(settings.identity, error, "a certificate with its key", locked=True) from error


def _trust(context: ssl.SSLContext, store: Store) -> None:
    try:
        if store.text is not None:
            context.load_verify_locations(cadata=store.text.reveal())
        elif _is_pem(store):
            context.load_verify_locations(store.file)
        else:
            assert store.file is not None
            context.load_verify_locations(cadata=stores.trusted(store.file, _password(store)))
    except StoreUnusable as error:
        raise _unusable_store(store, error) from error
    except (OSError, ValueError) as error:
        raise _unusable(store, error, "certificates") from error


@contextmanager
def _identity_file(settings: TlsSettings) -> Iterator[str]:
    """Where OpenSSL reads certificate and key: from a file alone, in memory where there is such."""
    store = settings.identity
    if store.file is not None and _is_pem(store):
        yield store.file
        return
    text = store.text.reveal() if store.text is not None else _java_identity(store, settings.key_password)
    with _private_file() as (number, path):
        os.write(number, text.encode())
        yield path


def _java_identity(store: Store, key_password: Secret | None) -> str:
    """Certificate and key of a PKCS#12 or JKS store in PEM form."""
    assert store.file is not None
    try:
        own = stores.own_key(store.file, _password(store) or "", key_password.reveal() if key_password else None)
    except StoreUnusable as error:
        raise _unusable_store(store, error) from error
    return f"{own.chain}\n{own.key}"


def _password(store: Store) -> str | None:
    return store.password.reveal() if store.password else None


def _is_pem(store: Store) -> bool:
    assert store.file is not None
    try:
        with open(store.file, "rb") as file:
            return _PEM in file.read(_FIRST_BYTES)
    except OSError as error:
        raise _unusable(store, error, "anything") from error


@contextmanager
def _private_file() -> Iterator[tuple[int, str]]:
    in_memory = hasattr(os, "memfd_create")
    if in_memory:
        number = os.memfd_create("parquet-sink")
        path = f"/proc/self/fd/{number}"
    else:
        number, path = tempfile.mkstemp(prefix="parquet-sink-", suffix=".pem")
    try:
        yield number, path
    finally:
        os.close(number)
        if not in_memory:
            os.unlink(path)


def _unusable(source: Store, error: Exception, holds: str, *, locked: bool = False) -> SetupError:
    cause = tls.describe(error, holds, locked=locked)
    what = f"{source.file} cannot be used" if source.file else "It cannot be used"
    return SetupError(f"Invalid [{source.source}]. {what}: {cause}. Correct it.")


def _unusable_store(source: Store, error: StoreUnusable) -> SetupError:
    """With the setting that is to blame: of the store, or of its key."""
    whose = source.source.removesuffix("location")
    base = whose.rpartition("keystore.")[0] if error.setting.startswith("key.") else whose
    return SetupError(f"Invalid [{base}{error.setting}]. {error.reason}")
