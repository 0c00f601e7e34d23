"""What a converter is: a class that a connector file names, whose fields are its settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from parquet_sink import plugins
from parquet_sink.config.checks import refused
from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.config.declared import by_key, keys_of
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import PrefixedReport
from parquet_sink.config.values import Values
from parquet_sink.convert.registry.settings import RegistrySettings

if TYPE_CHECKING:  # it loads Arrow, and settings are loaded where that is not
    from parquet_sink.convert.decoded import Decoder

Side = Literal["value", "key", "header"]
"""What of a record is converted."""
SIDES: Final[tuple[Side, ...]] = ("value", "key", "header")

Encoder = Callable[[object, Any], bytes | None]
"""What writes a value, of which its Arrow type stands for the schema; None: without one. Raises NotEncodable."""

CONVERT_SETTINGS: Final = "Settings of converters"


def setting_key(name: str, type_: Type, doc: str, *, origin: Origin = Origin.CONNECT, **more: Any) -> Key:
    """A setting that fills no field of its own. more: fields of `Key`."""
    return Key(name, CONVERT_SETTINGS, type_, doc, origin=origin, **more)


def refused_keys(reason: str, *names: str, type_: Type = Type.STRING) -> tuple[Key, ...]:
    """Settings that would change what we do, and cannot be honored. reason: with the cure."""
    return tuple(setting_key(name, type_, "Refused.", check=refused(reason)) for name in names)


def without_meaning(doc: str, *names: str) -> tuple[Key, ...]:
    """Settings that are accepted, and that change nothing here. doc: the reason."""
    return tuple(setting_key(name, Type.STRING, doc) for name in names)


class _Keys:
    """All settings of a class: those of its fields, then the others."""

    def __get__(self, instance: object, cls: "type[Converter]") -> tuple[Key, ...]:
        return (*keys_of(cls), *cls.more, *cls.unused)


class Converter:
    """Bytes of records to records, and back where a source writes: what `value.converter` names.

    A class is one converter, and an object of it its settings, which cross to other processes by value: it is declared
    by `config.declared.declared`, its fields by `key`, named as behind `value.converter.`. It has `title` and `open`.

    title: what records are, for `check` and for the documentation. class_name: in connector files, and in dead letters
    unless `reported` is another. word: a short name beside those that Kafka Connect derives from the class. label:
    begins the documentation of its settings. sides: what of a record it may convert.
    opens: `module:function` that makes the decoder of these settings, where `open` is not defined. more: settings
    beside those of its fields. unused: those that are accepted, and that change nothing.
    """

    title: ClassVar[str]
    class_name: ClassVar[str] = ""
    word: ClassVar[str] = ""
    label: ClassVar[str] = ""
    reported: ClassVar[str] = ""
    sides: ClassVar[Sequence[Side]] = ("value", "key")
    opens: ClassVar[str] = ""
    more: ClassVar[tuple[Key, ...]] = ()
    unused: ClassVar[tuple[Key, ...]] = (
        *without_meaning("It is known from the key's own name.", "converter.type"),
        *without_meaning("There is one version of each class here.", "plugin.version"),
    )
    keys: ClassVar[Sequence[Key]] = _Keys()  # type: ignore[assignment]

    @classmethod
    def check(cls, values: Values, machine: Machine, report: PrefixedReport) -> None:
        """Report what is wrong between settings, each of which is right by itself. values: by the names of `keys`."""

    @classmethod
    def has_bytes(cls, values: Values) -> bool:
        """Whether a field of its records may be bytes."""
        return True

    @property
    def what(self) -> str:
        """What records are, with these settings."""
        return self.title

    @property
    def schema_registry(self) -> RegistrySettings | None:
        """Where schemas come from that its records name."""
        return None

    @property
    def in_reports(self) -> str:
        """The class in dead letters and log lines."""
        return self.reported or self.class_name

    def open(self) -> "Decoder":
        """What decodes; made once in a process. Its module is loaded here, and not with the settings."""
        if not self.can_open():
            raise NotImplementedError(f"{type(self).__qualname__} has no method open")
        made: Decoder = plugins.named(self.opens)(self)
        return made

    @classmethod
    def can_open(cls) -> bool:
        """Whether it says what decodes."""
        return bool(cls.opens) or cls.open is not Converter.open

    @classmethod
    def writes(cls) -> bool:
        """Whether sources may use it: it has an encoder of its own, or one is registered for it."""
        return cls.encoder is not Converter.encoder or cls.class_name in plugins.ENCODERS

    def encoder(self) -> Encoder:
        """What encodes, for sources. Only of a converter that `writes`."""
        made: Encoder = plugins.named(plugins.ENCODERS[self.class_name])(self)
        return made

    def recorded(self) -> object:
        """The class and what its keys say, for digests of settings, without secrets: no other value changes records."""
        return self.class_name, repr(by_key(self))

    @classmethod
    def simple_name(cls) -> str:
        """The last part of the class's name."""
        return cls.class_name.rpartition(".")[2]

    @classmethod
    def short_names(cls) -> tuple[str, ...]:
        """Kafka Connect's aliases (the simple name, and that without `Converter`), then our own word."""
        simple = cls.simple_name()
        return tuple(dict.fromkeys((simple, simple.removesuffix("Converter"), cls.word)))


@dataclass(frozen=True)
class CustomConverter(Converter):
    """One of another package, under its name in the file. whole: its settings, where its class is a `Converter`."""

    title = "by a class of your own"
    sides = SIDES
    opens = "parquet_sink.convert.custom:decoder"

    settings: ClassSettings
    whole: Converter | None = None

    @property
    def in_reports(self) -> str:
        return self.settings.type

    def recorded(self) -> object:
        """With secrets, of which nobody here knows what they change."""
        return self.settings

    def encoder(self) -> Encoder:
        made: Encoder = plugins.named("parquet_sink.convert.custom:encoder")(self)
        return made


def _by_word(kind: str = "json", *registry: object, **options: object) -> Converter:
    """Settings of a built-in converter by its short name, for tests of plug-ins: JSON without a schema by default."""
    made: Converter = plugins.named("parquet_sink.convert.converters:made")(kind, *registry, **options)
    return made


ConverterSettings: Final = _by_word
