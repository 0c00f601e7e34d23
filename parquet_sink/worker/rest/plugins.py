"""`/connector-plugins`: classes that a configuration may name, their keys, and a configuration validated by them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from parquet_sink import __version__, plugins
from parquet_sink.config.key import Key, Type
from parquet_sink.config.quantity import Unit, amount
from parquet_sink.config.report import quoted
from parquet_sink.config.values import decimal
from parquet_sink.connectors.class_keys import keys_of, with_target
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, DEFAULT_CLASS, find_class
from parquet_sink.connectors.hidden import hide, restore, unknown
from parquet_sink.connectors.loading import Loaded
from parquet_sink.convert import converters
from parquet_sink.convert.keys import PREFIXES, find_setting
from parquet_sink.convert.settings import CustomConverter, Side
from parquet_sink.plugins import PluginUnusable
from parquet_sink.worker.herder.errors import HerderError
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.rest.call import (
    Call,
    Parameter,
    Reply,
    RestError,
    command,
    endpoint,
    object_of,
    read,
    texts_of,
)
from parquet_sink.worker.rest.definitions import (
    COMMON,
    CONNECT_LOOKS,
    Definition,
    class_keys,
    definitions,
    groups,
    look_of,
    steps,
)
from parquet_sink.worker.rest.renderings import type_of
from parquet_sink.worker_config.rest.roles import Role

_MISSING: Final = 'Invalid [name]. Missing required configuration "name" which has no default value.'
Validate = Callable[[Mapping[str, str]], Loaded]
"""All that is wrong with a configuration, and all that is warned about."""
_PROBLEM: Final = re.compile(r"(?:Invalid|Warning) \[(.*?)\]\. ", re.DOTALL)
NO_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({})
_SIDES: Final[tuple[Side, ...]] = ("key", "value", "header")
_OVERRIDES: Final = ("consumer.override.", "producer.override.", "admin.override.")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def config_infos(
    config: Mapping[str, str], stored: Mapping[str, str], validate: Validate, defaults: Mapping[str, str] = NO_DEFAULTS
) -> dict[str, Any]:
    """ConfigInfos. config: with a connector.class that is there. stored: what `[hidden]` stands for, by key.

    defaults: those that the worker file gives. Kafka Connect knows no warnings: where there are any they are beside its
    fields, so that they count as no error.
    """
    problems, warned = _validated(config, stored, validate)
    by_key: dict[str, list[str]] = {}
    for problem in problems:
        by_key.setdefault(_key_of(problem), []).append(problem)
    warnings = [warning for warning in warned if _key_of(warning) not in by_key]
    known = [_of_worker(one, defaults) for one in shown_keys(config)]
    listed = [_info(one, config, by_key.pop(one.name, [])) for one in known]
    others = [_other(name, reasons) for name, reasons in by_key.items()]
    return {
        "name": config["connector.class"],
        "error_count": len(problems),
        "groups": groups(known),
        "configs": [*others, *listed],
        **({"warnings": warnings} if warnings else {}),
    }


def _validated(
    config: Mapping[str, str], stored: Mapping[str, str], validate: Validate
) -> tuple[list[str], Sequence[str]]:
    keys = keys_of(config)
    whole = restore(config, stored, keys)
    loaded = validate(whole)
    return [*name_problems(config.get("name")), *unknown(whole, keys), *loaded.problems], loaded.warnings


def _key_of(text: str) -> str:
    """The key that a problem or a warning is about."""
    found = _PROBLEM.match(text)
    return "connector.class" if found is None else found[1]


def shown_keys(config: Mapping[str, str]) -> list[Definition]:
    """The keys that clients are shown: those of the class that mean something here, and those of its steps."""
    table = find_class(config["connector.class"].strip()).keys
    with suppress(PluginUnusable):  # reported for the key that names it
        table = with_target(table, config)
    return [one for one in definitions(table) if _concerns(one.key, config)] + steps(config)


def plugin_keys(table: Sequence[Key]) -> list[Definition]:
    """The keys of a class, without a configuration."""
    return [one for one in definitions(table) if _concerns(one.key, {})]


def _of_worker(one: Definition, defaults: Mapping[str, str]) -> Definition:
    """A converter with the worker's as its default, and those that there are to choose from."""
    side = one.name.removesuffix(".converter")
    if side not in _SIDES:
        return one
    default = defaults.get(one.name)
    look = one.look if default is None else replace(one.look, default=default)
    return replace(one, look=look, offered=tuple(sorted(converters.class_names(side))))


def _concerns(key: Key, config: Mapping[str, str]) -> bool:
    if key.name in config or key.name in CONNECT_LOOKS:
        return True
    if key.no_effect or key.deprecated or key.name.startswith(_OVERRIDES):
        return False
    prefix = next((one for one in PREFIXES if key.name.startswith(one)), None)
    return prefix is None or _of_converter(prefix, key, config)


def _of_converter(prefix: str, key: Key, config: Mapping[str, str]) -> bool:
    """Whether it is a setting of the converter that the configuration itself names."""
    named = config.get(prefix.removesuffix("."), "").strip()
    setting = find_setting(key.name.removeprefix(prefix))
    converter = converters.find(named) if named and "${" not in named else None
    return converter is not None and setting is not None and converter in setting.of and not setting.unused


def _info(one: Definition, config: Mapping[str, str], errors: Sequence[str]) -> dict[str, Any]:
    text = None if errors and one.look.type == "CLASS" else _text(one, config)
    return {"definition": one.as_json(), "value": _value(one.name, text, one.offered, errors)}


def _other(name: str, errors: Sequence[str]) -> dict[str, Any]:
    """What is wrong with a key that the class does not have. Defined all the same: clients look there for its name."""
    key = Key(name, COMMON, Type.STRING, "A key that is not shown among those of this class.")
    return {"definition": Definition(key, look_of(key, COMMON, 0)).as_json(), "value": _value(name, None, [], errors)}


def _value(name: str, text: str | None, choices: Sequence[str], errors: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "value": text,
        "recommended_values": list(choices),
        "errors": list(errors),
        "visible": True,
    }


def _text(one: Definition, config: Mapping[str, str]) -> str | None:
    """The value as it counts: None where it cannot be read, the default where there is none."""
    key = one.key
    if key.name not in config:
        return one.default
    text = hide({key.name: config[key.name]}, (key,))[key.name].strip()
    if "${" in text or key.type in (Type.STRING, Type.PASSWORD):
        return text
    if key.type is Type.LIST:
        return ",".join(part.strip() for part in text.split(",")) if text else ""
    if key.type is Type.BOOLEAN:
        return text.lower() if text.lower() in ("true", "false") else None
    if key.type is Type.DOUBLE:
        number = decimal(text)
        return None if number is None else str(number)
    return str(int(text)) if _NUMBER.fullmatch(text) else _quantity(text, key.unit)


def _quantity(text: str, unit: Unit | None) -> str | None:
    """As it is written, such as `30s`, where it is one."""
    try:
        return text if unit is not None and amount(text, unit) is not None else None
    except ValueError:
        return None


_SUFFIX: Final = "Connector"
_CLASS: Final = "connector.class"
_CONNECTORS: Final = ("sink", "source", "unknown")
"""Types of connectors; the last of one whose package is broken."""
_CONNECTORS_ONLY: Final = Parameter(
    "connectorsOnly", "boolean", "Whether only connectors are listed, without converters and transforms.", default=True
)
_PLUGIN: Final = "/connector-plugins/{plugin}/config"
_INFOS: Final = {200: "ConfigInfos", 400: "Error", 500: "Error"}


class Plugins:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder, validate: Validate, defaults: Mapping[str, str] = NO_DEFAULTS) -> None:
        """defaults: of keys that the worker file gives."""
        self._herder, self._validate, self._defaults = herder, validate, defaults

    @endpoint(
        "GET",
        "/connector-plugins",
        "Classes that there are",
        {200: "Plugins"},
        role=Role.VIEWER,
        query=(_CONNECTORS_ONLY,),
    )
    def all(self, call: Call) -> Reply:
        """Connectors, or with `connectorsOnly=false` all classes."""
        listed = all_plugins() if not call.flag("connectorsOnly", default=True) else _connectors()
        return Reply([{"class": name, "type": kind, "version": __version__} for name, kind in listed])

    @read(_PLUGIN, "Keys of a class", "Keys")
    def keys(self, call: Call) -> Reply:
        return Reply([one.as_json() for one in _definitions(call.path["plugin"])])

    @command(
        "PUT", f"{_PLUGIN}/validate", "Validate a configuration, key by key", _INFOS, role=Role.ADMIN, takes="Config"
    )
    def validate(self, call: Call) -> Reply:
        """Nothing is refused: what is wrong stands beside each key."""
        given = texts_of(object_of(call.body, "the configuration"), "the configuration")
        config = {name: "" if text is None else text for name, text in given.items()}
        named, asked = config.get(_CLASS, "").strip(), call.path["plugin"]
        if not named:
            raise RestError(500, _without_class())
        if not _stem(named).endswith(_stem(asked)):
            raise RestError(400, f"Included connector type {named} does not match request type {asked}")
        require_class(named, 500)
        if "${" in named:
            raise RestError(500, f"{_CLASS} is a placeholder here; write the class itself to have its keys validated.")
        literal = {**config, _CLASS: named}
        return Reply(config_infos(literal, self._stored(config), self._validate, self._defaults))

    def _stored(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """What a connector of that name has now."""
        with suppress(HerderError):
            return self._herder.info(config.get("name", "")).config
        return {}


def require_class(name: str | None, status: int = 400) -> None:
    """Refuses a configuration without a connector class that is there, in Kafka Connect's words. Raises RestError.

    status: for a class that is not there, which Kafka Connect answers otherwise where it only validates.
    """
    if name is None or not name.strip():
        raise RestError(400, _without_class())
    if "${" in name:
        return
    try:
        find_class(name.strip())
    except PluginUnusable as error:
        raise RestError(
            status, f"Failed to find any class that implements Connector and which name matches {name}: {error}"
        ) from None


def _without_class() -> str:
    return f"Connector config contains no connector type; set {_CLASS}, to {DEFAULT_CLASS} for example."


def _connectors() -> Iterator[tuple[str, str]]:
    return ((name, type_of({_CLASS: name})) for name in plugins.names(CONNECTOR_CLASSES))


def all_plugins() -> Iterator[tuple[str, str]]:
    """Full names, each with what it is, in Kafka Connect's order."""
    from parquet_sink.convert.custom import CONVERTER_CLASSES  # these load Arrow
    from parquet_sink.transform.classes import PREDICATE_CLASSES, TRANSFORM_CLASSES

    yield from _connectors()
    yield from ((name, "transformation") for name in plugins.names(TRANSFORM_CLASSES))
    yield from ((name, "predicate") for name in plugins.names(PREDICATE_CLASSES))
    yield from ((name, "converter") for name in converters.class_names("value"))
    yield from ((name, "converter") for name in sorted(plugins.installed(CONVERTER_CLASSES)))
    yield from ((name, "header_converter") for name in converters.class_names("header"))


def _definitions(asked: str) -> Sequence[Any]:
    """Keys of a plug-in by its full or short name. Raises RestError."""
    for name, kind in all_plugins():
        if asked not in (name, *_short_names(name, kind)):
            continue
        if kind in _CONNECTORS:
            return plugin_keys(find_class(name).keys)
        return definitions(_keys(name, kind), {})
    raise RestError(404, f"Unknown plugin {asked}.")


def _short_names(name: str, kind: str) -> Iterator[str]:
    """The last part, and that without the name of its kind."""
    simple = name.rpartition(".")[2]
    yield simple
    for suffix in (_SUFFIX, "$Value", "Converter", "Predicate", "Transformation"):
        if simple != suffix and simple.endswith(suffix):
            yield simple.removesuffix(suffix)


def _keys(name: str, kind: str) -> Sequence[Key]:
    if kind in ("transformation", "predicate"):
        return class_keys("predicates" if kind == "predicate" else "transforms", name) or ()
    converter = converters.find(name, "header" if kind == "header_converter" else "value")
    if converter is None:
        return ()
    if converter is CustomConverter:
        from parquet_sink.convert.custom import CONVERTER_CLASSES  # loads Arrow

        return plugins.find(CONVERTER_CLASSES, name).keys
    return [key for key in converter.keys if key not in converter.unused]


def _stem(name: str) -> str:
    return name.removesuffix(_SUFFIX) if len(name) > len(_SUFFIX) else name


def name_problems(name: str | None) -> list[str]:
    """What is wrong with a name beyond what the table of keys says; None: there is none."""
    if name is None:
        return [_MISSING]
    if not name.strip():
        return ["Invalid [name]. It is empty; name the connector."]
    if name != name.strip():
        return [f"Invalid [name]. {quoted(name)} begins or ends with a blank; remove it."]
    return [f"Invalid [name]. {quoted(name)} holds a placeholder; write the name itself."] if "${" in name else []
