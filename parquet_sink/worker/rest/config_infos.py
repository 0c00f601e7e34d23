"""A configuration judged key by key, as `/config/validate` answers it (ConfigInfos)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import decimal
from parquet_sink.connectors import loading
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.connectors.hidden import hide, restore, unknown
from parquet_sink.connectors.loading import Loaded
from parquet_sink.convert import converters
from parquet_sink.convert.keys import PREFIXES, find_setting
from parquet_sink.convert.settings import Side
from parquet_sink.worker.rest import names
from parquet_sink.worker.rest.definitions import COMMON, CONNECT_LOOKS, Definition, definitions, groups, look_of
from parquet_sink.worker.rest.steps import steps
from parquet_sink.worker_config.worker import Worker

Judge = Callable[[Mapping[str, str]], Loaded]
"""All that is wrong with a configuration, and all that is warned about."""
_PROBLEM: Final = re.compile(r"(?:Invalid|Warning) \[(.*?)\]\. ", re.DOTALL)
NO_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({})
_SIDES: Final[tuple[Side, ...]] = ("key", "value", "header")
_OVERRIDES: Final = ("consumer.override.", "producer.override.", "admin.override.")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def by_keys(worker: Worker) -> Judge:
    """Judges by the tables of keys alone, on top of the worker file."""
    return lambda config: loading.load(config, worker, source="the request")


def config_infos(
    config: Mapping[str, str], stored: Mapping[str, str], judge: Judge, defaults: Mapping[str, str] = NO_DEFAULTS
) -> dict[str, Any]:
    """ConfigInfos. config: with a connector.class that is there. stored: what `[hidden]` stands for, by key.

    defaults: those that the worker file gives. Kafka Connect knows no warnings: where there are any they are beside its
    fields, so that they count as no error.
    """
    problems, told = _judged(config, stored, judge)
    by_key: dict[str, list[str]] = {}
    for problem in problems:
        by_key.setdefault(_key_of(problem), []).append(problem)
    warnings = [warning for warning in told if _key_of(warning) not in by_key]
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


def _judged(config: Mapping[str, str], stored: Mapping[str, str], judge: Judge) -> tuple[list[str], Sequence[str]]:
    """Problems and warnings."""
    keys = keys_of(config)
    whole = restore(config, stored, keys)
    loaded = judge(whole)
    return [*names.problems(config.get("name")), *unknown(whole, keys), *loaded.problems], loaded.warnings


def _key_of(text: str) -> str:
    """The key that a problem or a warning is about."""
    found = _PROBLEM.match(text)
    return "connector.class" if found is None else found[1]


def shown_keys(config: Mapping[str, str]) -> list[Definition]:
    """The keys that clients are told of: those of the class that mean something here, and those of its steps."""
    table = find_class(config["connector.class"].strip()).keys
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
    return converter is not None and setting is not None and converter.kind in setting.kinds and not setting.unused


def _info(one: Definition, config: Mapping[str, str], errors: Sequence[str]) -> dict[str, Any]:
    text = None if errors and one.look.type == "CLASS" else _text(one, config)
    return {"definition": one.as_json(), "value": _value(one.name, text, one.offered, errors)}


def _other(name: str, errors: Sequence[str]) -> dict[str, Any]:
    """What is wrong with a key that the class does not have. Defined all the same: clients look there for its name."""
    key = Key(name, COMMON, Type.STRING, "A key that is not shown among those of this class.")
    return {"definition": Definition(key, look_of(key, COMMON, 0)).as_json(), "value": _value(name, None, [], errors)}


def _value(name: str, text: str | None, choices: Sequence[str], errors: Sequence[str]) -> dict[str, Any]:
    """ConfigValueInfo."""
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
    return next(_read(key, text), None)


def _read(key: Key, text: str) -> Iterator[str]:
    if key.type is Type.LIST:
        yield ",".join(part.strip() for part in text.split(",")) if text else ""
    elif key.type is Type.BOOLEAN:
        yield from [text.lower()] if text.lower() in ("true", "false") else []
    elif key.type is Type.DOUBLE:
        number = decimal(text)
        yield from [] if number is None else [str(number)]
    elif _NUMBER.fullmatch(text):
        yield str(int(text))
