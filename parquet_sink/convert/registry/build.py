"""From a converter's checked settings to those of its registry."""

import posixpath
from typing import Literal

from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.convert.chosen import Chosen
from parquet_sink.convert.registry.addresses import Address, confluent_url, is_version_2, parse
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.registry.value_checks import ID_BYTES, simple_name

_TLS = "schema.registry.ssl."


def build_registry(chosen: Chosen, machine: Machine) -> RegistrySettings:
    """chosen: a converter that needs a registry, and about which there was no problem."""
    signed_in = credentials(chosen)
    certificate = _path(chosen, f"{_TLS}keystore.location", machine)
    return RegistrySettings(
        urls=tuple(one.url for one in addresses(chosen)),
        username=signed_in[0] if signed_in else None,
        password=signed_in[1] if signed_in else None,
        bearer_token=chosen.secret("bearer.auth.token"),
        ca_file=_path(chosen, f"{_TLS}truststore.location", machine),
        certificate_file=certificate,
        key_password=chosen.secret(f"{_TLS}key.password") if certificate else None,
        id_bytes=_id_bytes(chosen),
        cache_size=chosen.number("max.schemas.per.subject"),
        timeout_ms=chosen.number("http.read.timeout.ms"),
        max_retries=chosen.number("max.retries"),
    )


def addresses(chosen: Chosen) -> tuple[Address, ...]:
    """Where the registry speaks Confluent's protocol, with the user and password of each address."""
    urls = chosen.names("schema.registry.url")
    if urls or not chosen.converter.apicurio:
        return tuple(parse(url) for url in urls)
    address = parse(chosen.text("apicurio.registry.url") or "")
    url = confluent_url(address.url)
    assert url is not None
    return (Address(url, address.username, address.password),)


def credentials(chosen: Chosen) -> tuple[str, Secret] | None:
    """User and password: of the settings or of the address, as `basic.auth.credentials.source` says."""
    source = (chosen.text("basic.auth.credentials.source") or "").upper()
    in_url = next((one.credentials for one in addresses(chosen) if one.credentials), None)
    if source == "URL":
        return in_url
    if source == "USER_INFO":
        return _user_info(chosen)
    return in_url or _user_info(chosen) or _apicurio_user(chosen)


def _user_info(chosen: Chosen) -> tuple[str, Secret] | None:
    """The older name wins, as in Confluent's client."""
    info = chosen.secret("schema.registry.basic.auth.user.info") or chosen.secret("basic.auth.user.info")
    if info is None:
        return None
    user, _, password = info.reveal().partition(":")
    return user, Secret(password)


def _apicurio_user(chosen: Chosen) -> tuple[str, Secret] | None:
    for part in ("apicurio.registry.auth.", "apicurio.auth.") if chosen.converter.apicurio else ():
        user, password = chosen.text(f"{part}username"), chosen.secret(f"{part}password")
        if user is not None and password is not None:
            return user, password
    return None


def _path(chosen: Chosen, name: str, machine: Machine) -> str | None:
    """Worker processes of Spark may have another working directory."""
    path = chosen.text(name)
    return None if path is None else posixpath.normpath(posixpath.join(machine.working_dir, path))


def _id_bytes(chosen: Chosen) -> Literal[4, 8]:
    """How long ids are: Apicurio's version 2 writes 8 bytes, unless told to write as Confluent does."""
    if chosen.given("schema.id.bytes"):
        return 4 if chosen.number("schema.id.bytes") == 4 else 8
    if not chosen.converter.apicurio or chosen.flag("apicurio.registry.as-confluent"):
        return 4
    handler = chosen.text("apicurio.registry.id-handler")
    if handler is not None:
        return 4 if ID_BYTES[simple_name(handler)] == 4 else 8
    return 8 if is_version_2(chosen.text("apicurio.registry.url") or "") else 4
