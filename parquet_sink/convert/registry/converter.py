"""What converters with a schema registry share: its settings, their checks, and a decoder for each schema.

`values` are by the names behind `value.converter.`. `apicurio`: the converter has Apicurio's names, too.
"""

from typing import ClassVar, Final, Literal

from parquet_sink.config.checks import only
from parquet_sink.config.declared import declared, filled_by
from parquet_sink.config.key import Key, Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import PrefixedReport
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.convert.json.settings import CACHE
from parquet_sink.convert.registry.addresses import Address, confluent_url, is_version_2, parse
from parquet_sink.convert.registry.keys import ID_BYTES, REGISTRY_KEYS, TLS, simple_name
from parquet_sink.convert.registry.settings import RegistrySettings, SchemaKind
from parquet_sink.convert.settings import CONVERT_SETTINGS, Converter, setting_key, without_meaning
from parquet_sink.net.settings import is_loopback

_URL: Final = "schema.registry.url"
_APICURIO_URL: Final = "apicurio.registry.url"
_BASIC: Final = "basic.auth.credentials.source"
_INFO: Final = "basic.auth.user.info"
_TOKEN: Final = "bearer.auth.token"


def registry_settings(values: Values, machine: Machine, *, apicurio: bool = False) -> RegistrySettings:
    """Of values about which there was no problem."""
    signed_in = _credentials(values, apicurio=apicurio)
    certificate = _path(values, f"{TLS}keystore.location", machine)
    return RegistrySettings(
        urls=tuple(one.url for one in _addresses(values, apicurio=apicurio)),
        username=signed_in[0] if signed_in else None,
        password=signed_in[1] if signed_in else None,
        bearer_token=values.secret(_TOKEN),
        ca_file=_path(values, f"{TLS}truststore.location", machine),
        certificate_file=certificate,
        key_password=values.secret(f"{TLS}key.password") if certificate else None,
        id_bytes=_id_bytes(values, apicurio=apicurio),
        cache_size=values.number("max.schemas.per.subject") or 0,
        timeout_ms=values.number("http.read.timeout.ms") or 0,
        max_retries=values.number("max.retries") or 0,
    )


def _addresses(values: Values, *, apicurio: bool) -> tuple[Address, ...]:
    """Where the registry speaks Confluent's protocol, with the user and password of each address."""
    urls = values.names(_URL)
    if urls or not apicurio:
        return tuple(parse(url) for url in urls)
    address = parse(values.text(_APICURIO_URL) or "")
    url = confluent_url(address.url)
    assert url is not None
    return (Address(url, address.username, address.password),)


def _credentials(values: Values, *, apicurio: bool) -> tuple[str, Secret] | None:
    """User and password: of the settings or of the address, as `basic.auth.credentials.source` says."""
    source = (values.text(_BASIC) or "").upper()
    in_url = next((one.credentials for one in _addresses(values, apicurio=apicurio) if one.credentials), None)
    if source == "URL":
        return in_url
    if source == "USER_INFO":
        return _user_info(values)
    return in_url or _user_info(values) or (_apicurio_user(values) if apicurio else None)


def _user_info(values: Values) -> tuple[str, Secret] | None:
    """The older name wins, as in Confluent's client."""
    info = values.secret(f"schema.registry.{_INFO}") or values.secret(_INFO)
    if info is None:
        return None
    user, _, password = info.reveal().partition(":")
    return user, Secret(password)


def _apicurio_user(values: Values) -> tuple[str, Secret] | None:
    for part in ("apicurio.registry.auth.", "apicurio.auth."):
        user, password = values.text(f"{part}username"), values.secret(f"{part}password")
        if user is not None and password is not None:
            return user, password
    return None


def _path(values: Values, name: str, machine: Machine) -> str | None:
    """Worker processes of Spark may have another working directory."""
    path = values.text(name)
    return None if path is None else machine.absolute(path)


def _id_bytes(values: Values, *, apicurio: bool) -> Literal[4, 8]:
    """How long ids are: Apicurio's version 2 writes 8 bytes, unless it is set to write as Confluent does."""
    if "schema.id.bytes" in values.given:
        return 4 if values.number("schema.id.bytes") == 4 else 8
    if not apicurio or values.flag("apicurio.registry.as-confluent"):
        return 4
    handler = values.text("apicurio.registry.id-handler")
    if handler is not None:
        return 4 if ID_BYTES[simple_name(handler)] == 4 else 8
    return 8 if is_version_2(values.text(_APICURIO_URL) or "") else 4


def _has_url(values: Values, report: PrefixedReport, class_name: str, *, apicurio: bool) -> bool:
    """A key that is given and has no value was reported already."""
    if values.names(_URL) or (apicurio and values.text(_APICURIO_URL)):
        return True
    name, example = _URL, "https://registry:8081"
    if apicurio:
        name, example = _APICURIO_URL, "https://registry:8080/apis/registry/v3"
    if _URL not in values.given and name not in values.given:
        report.problem(
            name, f"It is missing; {class_name} needs the address of the schema registry, for example {example}."
        )
    return False


def _check_basic(values: Values, report: PrefixedReport) -> None:
    source, older = (values.text(_BASIC) or "").upper(), f"schema.registry.{_INFO}"
    has_info = _INFO in values.given or older in values.given
    if source == "USER_INFO" and not has_info:
        report.problem(_INFO, f"It is missing, but {report.prefix}{_BASIC} is USER_INFO; give user:password.")
    if source == "URL" and has_info:
        name = _INFO if _INFO in values.given else older
        report.warn(name, f"It has no effect, because {report.prefix}{_BASIC} is URL; write USER_INFO there.")


def _check_token(values: Values, report: PrefixedReport, *, signs_in: bool) -> None:
    source = "bearer.auth.credentials.source"
    if source in values.given and _TOKEN not in values.given:
        report.problem(_TOKEN, f"It is missing, but {report.prefix}{source} needs it; give the token.")
    if _TOKEN in values.given and signs_in:
        report.problem(_TOKEN, "Both a token and a user with a password are set; keep one of them.")


def _check_apicurio_user(values: Values, report: PrefixedReport) -> None:
    for part in ("apicurio.auth.", "apicurio.registry.auth."):
        for name, other in (("username", "password"), ("password", "username")):
            if part + name in values.given and part + other not in values.given:
                report.problem(part + other, f"It is missing, but {report.prefix}{part}{name} is set; give both.")


def _check_global_ids(values: Values, report: PrefixedReport) -> None:
    """A global id asked for as a content id would find another schema, or none."""
    url, use_id = values.text(_APICURIO_URL) or "", "apicurio.registry.use-id"
    if values.names(_URL):
        return
    if (values.text(use_id) or ("globalId" if is_version_2(url) else "")) == "globalId":
        report.warn(
            use_id,
            "Records with global ids (the default of version 2) are read rightly only from a registry with "
            "registry.ccompat.legacy-id-mode.enabled=true; set it there, or let producers write content ids and set "
            "contentId here.",
        )


def _check_store(store: str, values: Values, machine: Machine, report: PrefixedReport) -> None:
    location, kind, password = f"{TLS}{store}.location", f"{TLS}{store}.type", f"{TLS}key.password"
    path = values.text(location)
    if path is None:
        if password in values.given and store == "keystore":
            report.warn(password, f"It has no effect unless {report.prefix}{location} is set.")
    elif kind not in values.given:
        report.problem(
            kind,
            "It is missing, and a Java key store (JKS) is Kafka's default, which is not read; convert it to PEM "
            "(keytool, openssl) and set PEM.",
        )
    elif not machine.is_file(machine.absolute(path)):
        report.problem(location, f"There is no file {values.quoted(location)}; name an existing PEM file.")


WRITING: Final = "They concern the writing of records."
JAVA: Final = "They concern Java classes, and there are none here."
GENERALIZED: Final = "Name the members of a union by their position, alike for all formats."


def never(name: str, doc: str, why: str) -> Key:
    """A flag whose other value would change what is read, and is refused."""
    return setting_key(name, Type.BOOLEAN, doc, default=False, check=only(False, why))


@declared(group=CONVERT_SETTINGS)
class RegistryConverter(Converter):
    """Records that name a schema in the registry.

    schemas: of which kind it is registered. payloads: `module:function` that makes, of such a schema and these
    settings, what decodes the records behind it. apicurio: it talks to a registry of Apicurio's under names of its own.
    """

    schemas: ClassVar[SchemaKind]
    payloads: ClassVar[str]
    apicurio: ClassVar[bool] = False
    opens = "parquet_sink.convert.registry.client:decoder"
    more = REGISTRY_KEYS
    unused = (
        *Converter.unused,
        *without_meaning(CACHE, "schemas.cache.config", "latest.cache.size", "latest.cache.ttl.sec"),
        *without_meaning(
            WRITING,
            "auto.register.schemas",
            "use.latest.version",
            "latest.compatibility.strict",
            "normalize.schemas",
            "propagate.schema.tags",
            "use.schema.id",
            "id.compatibility.strict",
            "schema.format",
            "key.subject.name.strategy",
            "value.subject.name.strategy",
            "reference.subject.name.strategy",
            "key.schema.id.serializer",
            "value.schema.id.serializer",
            "schema.reflection",
            "scrub.invalid.names",
            "connect.meta.data",
            "ignore.default.for.nullables",
        ),
    )

    registry: RegistrySettings = filled_by(
        "schema.registry.url", default=RegistrySettings(()), computed=registry_settings
    )

    @classmethod
    def check(cls, values: Values, machine: Machine, report: PrefixedReport) -> None:
        apicurio = cls.apicurio
        if not _has_url(values, report, cls.class_name, apicurio=apicurio):
            return
        signs_in = _credentials(values, apicurio=apicurio) is not None
        _check_basic(values, report)
        _check_token(values, report, signs_in=signs_in)
        if apicurio:
            _check_apicurio_user(values, report)
        if (signs_in or _TOKEN in values.given) and any(
            not one.secure and not is_loopback(one.split) for one in _addresses(values, apicurio=apicurio)
        ):  # a registry without TLS inside a cluster is common, so this is no error as it is for the target
            name = _URL if values.names(_URL) else _APICURIO_URL
            report.warn(name, "The credential travels in clear, because an address is http; use https.")
        if apicurio:
            _check_global_ids(values, report)
        for store in ("truststore", "keystore"):
            _check_store(store, values, machine, report)

    @property
    def schema_registry(self) -> RegistrySettings:
        return self.registry
