"""All tables of keys as plain values, field by field: what `keys.json` holds.

What a check or a refusal does is kept as those of some texts that it refuses, an `x` in the place of each; how it
words that is left out.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest import mock

from parquet_sink import plugins
from parquet_sink.config.key import Check, Key, NotBuilt
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.keys import SETTINGS
from parquet_sink.transform.classes import find_predicate, find_transform
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS, TRANSFORM_KEYS
from parquet_sink.worker.rest.definitions import definitions
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

FILE: Final = Path(__file__).with_name("keys.json")
PROBES: Final = (
    *("", ",", "!", "\a", "a", "a b", "a_b,c", "a.b,a", "a:b", "a:int32", "int32", ":", "(", "{", "..", "A/b", "a#b"),
    *("é", "x" * 300),
    *("0", "1", "4", "8", "-1", "true", "any", "all", "None", "UTF-8", "BINARY", "PEM", "JKS", "URL", "USER_INFO"),
    *("AppKey k", "Bearer t", "user:password", "STATIC_TOKEN", "TLSv1.3", "TLSv1.1", "yyyy-MM-dd", "GET,POST", "x;y"),
    *("localhost:9092", "http://localhost:8083", "http://example.com", "https://example.com", "https://example.com/a"),
    *("https://example.com/apis/registry/v2", "s3://bucket/prefix", "s3://B", "directory:/a", "directory:a", "/a"),
    *("bucket", "Bucket_", "eu-central-1", "{topic}/{partition}", "{nothing}", "add X: y", "org.example.Unknown"),
    "org.apache.kafka.common.serialization.ByteArrayDeserializer",
)
"""Texts, of which each check accepts some and refuses others."""

Table = dict[str, dict[str, Any]]


def tables() -> dict[str, Table]:
    """By title of a table and name of a key what it says; no table that is empty."""
    found = {_last(name): table(find_class(name).keys) for name in _once(plugins.CONNECTORS)}
    found["worker file"] = table(WORKER_KEYS)
    found["settings of converters"] = _settings()
    found["transforms and predicates"] = table(TRANSFORM_KEYS)
    found["every transform"], found["every predicate"] = table(STEP_KEYS), table(PREDICATE_KEYS)
    for name in _once(plugins.TRANSFORMS):
        found[f"transform {_last(name)}"] = table(find_transform(name)[0].keys)
    for name in _once(plugins.PREDICATES):
        found[f"predicate {_last(name)}"] = table(find_predicate(name).keys)
    return {title: keys for title, keys in found.items() if keys}


def _once(group: str) -> Iterator[str]:
    """Of the names of each class the first."""
    paths: set[str] = set()
    for name, path in plugins.BUILT_IN[group].items():
        if path not in paths:
            yield name
        paths.add(path)


def _last(name: str) -> str:
    return name.rpartition(".")[2].partition("$")[0]


def table(keys: Sequence[Key]) -> Table:
    """By name of a key what it says."""
    found = {key.name: _said(key) for key in keys}
    for one in definitions(keys):
        found[one.name]["importance"] = one.look.importance
    return found


def _settings() -> Table:
    """With the converters that each setting concerns."""
    found = table([one.key for one in SETTINGS])
    for one in SETTINGS:
        concerned = [of.class_name for of in CONVERTERS if of in one.of]
        found[one.key.name] |= {"concerns": concerned, "unused": one.unused}
    return found


def _said(key: Key) -> dict[str, Any]:
    """All fields that do not have their default."""
    some = {one.name: (getattr(key, one.name), one.default) for one in fields(key) if one.name != "name"}
    said = {name: _plain(value) for name, (value, default) in some.items() if value != default}
    if key.check is not None or key.not_built is not None:
        said["refused"] = _refused(replace(key, name="key", group="", doc=""))
    return said


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Check):
        return value.rule
    if isinstance(value, NotBuilt):
        return {"values": value.values, "cure": value.cure}
    return list(value) if isinstance(value, tuple) else value


@cache
def _refused(key: Key) -> str:
    """For each of the texts whether it is refused."""
    return "".join("x" if _refuses(key, text) else "." for text in PROBES)


def _refuses(key: Key, text: str) -> bool:
    report = Report()
    with mock.patch.object(plugins, "installed", return_value={}):  # looked through anew for each name
        read([key], Resolved({key.name: text}, {key.name: text}), report)
    return bool(report.problems)


def differences(before: Mapping[str, Table], now: Mapping[str, Table]) -> list[str]:
    """A line for each field of a key that is another one, and for each key that came or went; order is nothing."""
    told = []
    for title in dict.fromkeys([*before, *now]):
        old, new = before.get(title, {}), now.get(title, {})
        if (title in before) != (title in now):
            told.append(f"{title} {'came' if title in now else 'went'}")
        for name in dict.fromkeys([*old, *new]):
            if name in old and name in new:
                told += [f"{title}: {name}: {one}" for one in _changes(old[name], new[name])]
            else:
                told.append(f"{title}: {name} {'came' if name in new else 'went'}")
    return told


def _changes(was: Mapping[str, Any], is_: Mapping[str, Any]) -> Iterator[str]:
    for field in dict.fromkeys([*was, *is_]):
        if was.get(field) != is_.get(field):
            yield f"{field} was {_told(field, was)}, is {_told(field, is_)}"


def _told(field: str, said: Mapping[str, Any]) -> str:
    if field != "refused" or field not in said:
        return repr(said.get(field))
    return repr([text for text, mark in zip(PROBES, said[field], strict=True) if mark == "x"])


def written(found: Mapping[str, Table]) -> str:
    """As JSON, a line for all keys that say the same in the same tables."""
    says, where = {}, defaultdict(list)
    for title, keys in found.items():
        for name, said in keys.items():
            text = json.dumps(said, ensure_ascii=False)
            says[text] = said
            where[name, text].append(title)
    names = defaultdict(list)
    for (name, text), titles in where.items():
        names[text, tuple(titles)].append(name)
    lines = [{"keys": some, "in": titles, **says[text]} for (text, titles), some in names.items()]
    return "[\n" + ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n]\n"


def kept(text: str) -> dict[str, Table]:
    """What `written` wrote; tables without a key are left out."""
    found: dict[str, Table] = {}
    for line in json.loads(text):
        said = {field: value for field, value in line.items() if field not in ("keys", "in")}
        for title in line["in"]:
            found.setdefault(title, {}).update(dict.fromkeys(line["keys"], said))
    return found
