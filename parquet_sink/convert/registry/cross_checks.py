"""Checks of a registry's settings that look at more than one of them."""

import posixpath

from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report
from parquet_sink.convert.chosen import Chosen
from parquet_sink.convert.registry.addresses import is_version_2
from parquet_sink.convert.registry.build import addresses, credentials
from parquet_sink.net.loopback import is_loopback

_URL, _APICURIO_URL = "schema.registry.url", "apicurio.registry.url"
_BASIC, _INFO = "basic.auth.credentials.source", "basic.auth.user.info"
_TLS = "schema.registry.ssl."


def check(chosen: Chosen, machine: Machine, report: Report) -> None:
    """chosen: a converter that needs a registry, whose settings are right one by one."""
    if not _has_url(chosen, report):
        return
    _basic(chosen, report)
    _bearer(chosen, report)
    _apicurio_user(chosen, report)
    _clear(chosen, report)
    _global_ids(chosen, report)
    _store("truststore", chosen, machine, report)
    _store("keystore", chosen, machine, report)


def _has_url(chosen: Chosen, report: Report) -> bool:
    """A key that is given and has no value was told already."""
    if chosen.names(_URL) or (chosen.converter.apicurio and chosen.text(_APICURIO_URL)):
        return True
    name, example = _URL, "https://registry:8081"
    if chosen.converter.apicurio:
        name, example = _APICURIO_URL, "https://registry:8080/apis/registry/v3"
    if not (chosen.given(_URL) or chosen.given(name)):
        report.problem(
            chosen.prefix + name,
            f"It is missing; {chosen.converter.class_name} needs the address of the schema registry, for example "
            f"{example}.",
        )
    return False


def _basic(chosen: Chosen, report: Report) -> None:
    source = (chosen.text(_BASIC) or "").upper()
    has_info = chosen.given(_INFO) or chosen.given(f"schema.registry.{_INFO}")
    if source == "USER_INFO" and not has_info:
        report.problem(
            chosen.prefix + _INFO, f"It is missing, but {chosen.prefix}{_BASIC} is USER_INFO; give user:password."
        )
    if source == "URL" and has_info:
        name = _INFO if chosen.given(_INFO) else f"schema.registry.{_INFO}"
        report.warn(
            chosen.prefix + name, f"It has no effect, because {chosen.prefix}{_BASIC} is URL; write USER_INFO there."
        )


def _bearer(chosen: Chosen, report: Report) -> None:
    token = "bearer.auth.token"
    if chosen.given("bearer.auth.credentials.source") and not chosen.given(token):
        report.problem(
            chosen.prefix + token,
            f"It is missing, but {chosen.prefix}bearer.auth.credentials.source needs it; give the token.",
        )
    if chosen.given(token) and credentials(chosen) is not None:
        report.problem(chosen.prefix + token, "Both a token and a user with a password are set; keep one of them.")


def _apicurio_user(chosen: Chosen, report: Report) -> None:
    if not chosen.converter.apicurio:
        return
    for part in ("apicurio.auth.", "apicurio.registry.auth."):
        for name, other in (("username", "password"), ("password", "username")):
            if chosen.given(part + name) and not chosen.given(part + other):
                report.problem(
                    chosen.prefix + part + other, f"It is missing, but {chosen.prefix}{part}{name} is set; give both."
                )


def _clear(chosen: Chosen, report: Report) -> None:
    """A registry without TLS inside a cluster is common, so this is no error as it is for the target."""
    if credentials(chosen) is None and not chosen.given("bearer.auth.token"):
        return
    if any(not one.secure and not is_loopback(one.split) for one in addresses(chosen)):
        name = _URL if chosen.names(_URL) else _APICURIO_URL
        report.warn(chosen.prefix + name, "The credential travels in clear, because an address is http; use https.")


def _global_ids(chosen: Chosen, report: Report) -> None:
    """A global id asked for as a content id would find another schema, or none."""
    url, use_id = chosen.text(_APICURIO_URL) or "", "apicurio.registry.use-id"
    if not chosen.converter.apicurio or chosen.names(_URL):
        return
    if (chosen.text(use_id) or ("globalId" if is_version_2(url) else "")) == "globalId":
        report.warn(
            chosen.prefix + use_id,
            "Records with global ids (the default of version 2) are read rightly only from a registry with "
            "registry.ccompat.legacy-id-mode.enabled=true; set it there, or let producers write content ids and set "
            "contentId here.",
        )


def _store(store: str, chosen: Chosen, machine: Machine, report: Report) -> None:
    location, kind = f"{_TLS}{store}.location", f"{_TLS}{store}.type"
    path = chosen.text(location)
    if path is None:
        if chosen.given(f"{_TLS}key.password") and store == "keystore":
            report.warn(
                f"{chosen.prefix}{_TLS}key.password", f"It has no effect unless {chosen.prefix}{location} is set."
            )
    elif not chosen.given(kind):
        report.problem(
            chosen.prefix + kind,
            "It is missing, and a Java key store (JKS) is Kafka's default, which is not read; convert it to PEM "
            "(keytool, openssl) and set PEM.",
        )
    elif not machine.is_file(posixpath.join(machine.working_dir, path)):
        shown = chosen.values.quoted(chosen.prefix + location)
        report.problem(chosen.prefix + location, f"There is no file {shown}; name an existing PEM file.")
