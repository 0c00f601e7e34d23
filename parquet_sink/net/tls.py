"""Verifying TLS contexts: authorities, the client's certificate, and why a PEM file cannot be used."""

import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process.per_process import PerProcess

CA_KEY: Final = "connect.ems.tls.ca.file"
ENVIRONMENT_CA: Final = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that name a file or folder of authorities, for the whole machine; the first that is set counts."""


def describe(error: Exception, holds: str, *, locked: bool = False) -> str:
    """Why a file could not be used. holds: what it should hold. locked: whether a password may be the reason."""
    if isinstance(error, ssl.SSLError):
        if error.reason == "KEY_VALUES_MISMATCH":
            return "its key belongs to another certificate"
        return f"it does not hold {holds} in PEM form{', or its password is wrong' if locked else ''}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower() if error.strerror[1:2].islower() else error.strerror
    return f"it does not hold {holds} in PEM form"


def authorities_problem(place: str) -> str | None:
    """Why a file, or a folder of hashed certificates, names no authorities; None when it does."""
    if os.path.isdir(place):
        return None if os.access(place, os.R_OK | os.X_OK) else "the folder may not be read"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(place)
    except (OSError, ValueError) as error:
        return describe(error, "certificates")
    return None


def readable_problem(place: str) -> str | None:
    """Why a file cannot be read; None when it can."""
    try:
        with open(place, "rb") as file:
            file.read(1)
    except OSError as error:
        return describe(error, "anything")
    return None


@dataclass(frozen=True)
class Authorities:
    """A file of certificates in PEM form, or a folder of hashed ones. source: the key or variable that names it."""

    place: str
    source: str


@dataclass(frozen=True)
class OwnCertificate:
    """The client's certificate; its key may be in the same file. source: the key that names it."""

    certificate_file: str
    source: str
    key_file: str | None = None
    password: Secret | None = None


def environment_authorities(environment: Mapping[str, str]) -> Authorities | None:
    """What the environment names; None when it names nothing."""
    return next((Authorities(environment[name], name) for name in ENVIRONMENT_CA if environment.get(name)), None)


def target_authorities(ca_file: str | None, environment: Mapping[str, str]) -> Authorities | None:
    """Those of a connector's key, else those that the environment names; None for the system's."""
    return Authorities(ca_file, CA_KEY) if ca_file else environment_authorities(environment)


def problems(ca_file: str | None, environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with those of a target, each as `Invalid [key]. reason; cure`; nothing with the system's."""
    authorities = target_authorities(ca_file, environment)
    if authorities is None:
        return
    try:
        tls_context(authorities)
    except InvalidConfiguration as error:
        yield from error.problems


def tls_context(authorities: Authorities | None, own: OwnCertificate | None = None) -> ssl.SSLContext:
    """A context that verifies certificate and host name, by these authorities alone or else by the system's.

    Without a certificate of one's own it is shared in this process: to read all authorities of a machine takes 40 ms of
    CPU, at each start of a connector. Raises InvalidConfiguration, naming the source, when a file cannot be used.
    """
    if own is None:
        return _shared.get((authorities, tuple(_version(authorities))))
    context = _trusting(authorities)
    password = own.password.reveal() if own.password else ""
    try:  # a password, be it empty: OpenSSL would ask for it on the terminal
        context.load_cert_chain(own.certificate_file, own.key_file, password)
    except (OSError, ValueError) as error:
        files = " and ".join(filter(None, (own.certificate_file, own.key_file)))
        cause = describe(error, "a certificate with its key", locked=True)
        raise _unusable(own.source, files, cause, "Correct it") from error
    return context


def _version(authorities: Authorities | None) -> Sequence[object]:
    """Another one when the file changed, or what is in the folder: a new context is made then."""
    usual = ssl.get_default_verify_paths()
    places = (usual.cafile, usual.capath) if authorities is None else (authorities.place,)
    found = list[object]()
    for place in filter(None, places):
        with suppress(OSError):  # it is not there: who reads it says so
            one = os.stat(place)
            found.append((one.st_mtime_ns, one.st_size, one.st_ino))
    return found


def _trusting(authorities: Authorities | None) -> ssl.SSLContext:
    if authorities is None:
        return ssl.create_default_context()
    place = authorities.place
    try:
        if os.path.isdir(place):
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except (OSError, ValueError) as error:
        cause = authorities_problem(place) or describe(error, "certificates")
        raise _unusable(authorities.source, place, cause, "Name a file of certificates in PEM form") from error


def _unusable(source: str, files: str, cause: str, cure: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid [{source}]. {files} cannot be used: {cause}. {cure}."])


_shared: Final[PerProcess[tuple[Authorities | None, object], ssl.SSLContext]] = PerProcess(
    lambda key: _trusting(key[0])
)
