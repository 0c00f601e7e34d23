"""What converters with a schema registry share: its settings, their checks, and a decoder for each schema."""

from typing import TYPE_CHECKING, ClassVar, Final

from parquet_sink.config.checks import only
from parquet_sink.config.declared import declared, filled_by
from parquet_sink.config.key import Key, Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import PrefixedReport
from parquet_sink.config.values import Values
from parquet_sink.convert.json.settings import CACHE
from parquet_sink.convert.registry import configuration
from parquet_sink.convert.registry.keys import REGISTRY_KEYS
from parquet_sink.convert.registry.settings import RegistrySettings, SchemaKind
from parquet_sink.convert.settings import CONVERT_SETTINGS, Converter, loaded, opened, setting_key, without_meaning

if TYPE_CHECKING:
    from parquet_sink.convert.decoded import Decoder

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
        "schema.registry.url", default=RegistrySettings(()), computed=configuration.confluent_registry
    )

    @classmethod
    def check(cls, values: Values, machine: Machine, report: PrefixedReport) -> None:
        configuration.check(values, machine, report, cls.class_name, apicurio=cls.apicurio)

    @property
    def schema_registry(self) -> RegistrySettings:
        return self.registry

    def open(self) -> "Decoder":
        """Raises InvalidConfiguration when the registry's settings name files that cannot be read."""
        return opened("parquet_sink.convert.registry.client:decoder", self, loaded(self.payloads))
