"""The server's TLS context."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parquet_sink.connectors.rest.settings import Pem, TlsSettings
from parquet_sink.errors import SetupError
from parquet_sink.net import pem

_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context with the server's certificate. Raises SetupError that names the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = settings.protocols
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in versions else ssl.TLSVersion.TLSv1_3
    context.maximum_version = ssl.TLSVersion.TLSv1_3 if "TLSv1.3" in versions else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _identify(context, settings)
    _trust(context, settings)
    if settings.ciphers:
        try:
            context.set_ciphers(":".join(settings.ciphers))
        except ssl.SSLError as error:
            key = settings.identity.source.partition("ssl.")[0] + "ssl.cipher.suites"
            raise SetupError(f"Invalid [{key}]. OpenSSL knows none of them; write its names, or remove it.") from error
    return context


def _identify(context: ssl.SSLContext, settings: TlsSettings) -> None:
    password = settings.key_password.reveal() if settings.key_password else ""
    with _file(settings.identity) as path:
        try:  # a password, be it empty: OpenSSL would ask for it on the terminal
            context.load_cert_chain(path, password=password)
        except (OSError, ValueError) as error:
            raise _unusable(settings.identity, error, "a certificate with its key", locked=True) from error


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    context.verify_mode = _AUTH[settings.client_auth]
    if settings.authorities is None:
        return
    try:
        if settings.authorities.text is not None:
            context.load_verify_locations(cadata=settings.authorities.text.reveal())
        else:
            context.load_verify_locations(settings.authorities.file)
    except (OSError, ValueError) as error:
        raise _unusable(settings.authorities, error, "certificates") from error


@contextmanager
def _file(source: Pem) -> Iterator[str]:
    """Where OpenSSL reads it: text only from a file, which is in memory where the system has such, and ours alone."""
    if source.file is not None:
        yield source.file
        return
    assert source.text is not None
    with _private_file() as (number, path):
        os.write(number, source.text.reveal().encode())
        yield path


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


def _unusable(source: Pem, error: Exception, holds: str, *, locked: bool = False) -> SetupError:
    cause = pem.describe(error, holds, locked=locked)
    what = f"{source.file} cannot be used" if source.file else "It cannot be used"
    return SetupError(f"Invalid [{source.source}]. {what}: {cause}. Correct it.")
