"""Settings of converters that concern the schema registry, under the names of Apicurio's converters."""

from typing import Final

from parquet_sink.config.checks import only
from parquet_sink.config.key import Type
from parquet_sink.convert.registry import addresses
from parquet_sink.convert.registry.keys import AVRO_ENCODING, ID_HANDLER, NO_HEADERS, NO_OAUTH, TLS
from parquet_sink.convert.settings import refused_key, setting_key, without_meaning

_TLS_NAMES = f"Settings of TLS have Confluent's names; write {TLS}truststore.location and the like, with the type PEM."


APICURIO_KEYS: Final = (
    setting_key(
        "apicurio.registry.url",
        Type.STRING,
        f"Address of a registry of Apicurio's. It is asked where it speaks Confluent's protocol: "
        f"`/apis/registry/v2` and `v3` are read as `{addresses.CCOMPAT}`.",
        check=addresses.APICURIO_URL,
    ),
    setting_key(
        "apicurio.registry.as-confluent",
        Type.BOOLEAN,
        "`true`: ids have 4 bytes, as Confluent's.",
        default=False,
    ),
    setting_key(
        "apicurio.registry.id-handler",
        Type.STRING,
        "Class that wrote the ids, which tells their length.",
        default_text="by the address",
        check=ID_HANDLER,
    ),
    setting_key(
        "apicurio.registry.use-id",
        Type.STRING,
        "Which id is in a record. Confluent's protocol knows `contentId`; with `globalId` (the default of version "
        "2) the registry must run with `registry.ccompat.legacy-id-mode.enabled=true`, of which a warning reminds.",
        default_text="globalId when the address is that of version 2, else contentId",
        choices=("contentId", "globalId"),
    ),
    setting_key(
        "apicurio.registry.headers.enabled",
        Type.BOOLEAN,
        "Whether ids stand in headers.",
        default=False,
        check=only(False, "a schema's id is read from the record itself, never from headers"),
    ),
    setting_key(
        "apicurio.registry.avro.encoding",
        Type.STRING,
        "Form of Avro.",
        default="BINARY",
        check=AVRO_ENCODING,
    ),
    *(
        setting_key(f"apicurio.{part}auth.{name}", type_, doc)
        for part in ("", "registry.")
        for name, type_, doc in (
            ("username", Type.STRING, "User at the registry, as in `basic.auth.user.info`."),
            ("password", Type.PASSWORD, "Password at the registry, as in `basic.auth.user.info`."),
        )
    ),
    *(
        refused_key(f"apicurio.{part}auth.{name}", type_, NO_OAUTH)
        for part in ("", "registry.")
        for name, type_ in (
            ("service.token.endpoint", Type.STRING),
            ("service.url", Type.STRING),
            ("client.secret", Type.PASSWORD),
        )
    ),
    refused_key("apicurio.registry.request.headers.*", Type.PASSWORD, NO_HEADERS),
    *(refused_key(f"apicurio.registry.{name}.*", Type.PASSWORD, _TLS_NAMES) for name in ("request.ssl", "tls")),
)
APICURIO_UNUSED: Final = without_meaning(
    "What is left of Apicurio's settings concerns the writing of records, Java classes and its own client.",
    "apicurio.*",
)
