"""`parquet-sink explain KEY`: what a key of connector, worker and client files means, from its declaration."""

import argparse
import difflib
import os
import posixpath
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from parquet_sink import plugins
from parquet_sink.cli.worker_api.settings import CLIENT_KEYS
from parquet_sink.config import docs
from parquet_sink.config.key import Key, Type, Value
from parquet_sink.config.quantity import amount, examples
from parquet_sink.config.report import counted, printable, quoted
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, DEFAULT_CLASS, find_class
from parquet_sink.connectors.documentation import PREDICATES, TRANSFORMS, steps_of, summary_of
from parquet_sink.errors import SetupError
from parquet_sink.plugins import PluginUnusable
from parquet_sink.targets.target_class import TARGET_CLASSES, TYPE, find_target
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

EXAMPLES: Final = """\
examples:
  parquet-sink explain connect.ems.commit.interval.ms
  parquet-sink explain commit.records             # its last words are enough
  parquet-sink explain connect.ems.parquet        # all keys that begin so
  parquet-sink explain RegexRouter                # the keys of a transform

Exit status: 0 it was explained or listed; 2 there is no such key, and the nearest one is named.
"""
FILE: Final = "a connector file"
WORKER_FILE: Final = "the worker file"
CLIENT_FILE: Final = "a client file (--client-file)"
_STEP: Final = re.compile(r"(transforms|predicates)\.[^.]+\.(.+)")
_NAMED: Final = re.compile(r"`([\w.*-]+)`")
_TOO_WIDE: Final = frozenset({"connect.ems", "value.converter", "key.converter", "transforms.N", "predicates.N"})
"""Beginnings that say nothing of what keys have in common."""
_MOST_BESIDE: Final = 4
_WIDEST: Final = 98


@dataclass(frozen=True)
class Place:
    """A key, and where it may stand. step: the transform or predicate that has it, else empty.

    names: of this class, in full and in lower case. summary: what it does.
    """

    key: Key
    where: str
    step: str = ""
    names: tuple[str, ...] = ()
    summary: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is to be explained."""
    parser.epilog = EXAMPLES
    asked = parser.add_argument(
        "key", metavar="KEY", help="a key, its last words, what several keys begin with, or a transform's class"
    )
    asked.completer = complete  # type: ignore[attr-defined]


def complete(prefix: str, parsed_args: argparse.Namespace, **more: Any) -> list[str]:
    """For argcomplete: names of keys."""
    return sorted({name for one in places() if (name := one.key.name).startswith(prefix)})


def run(args: argparse.Namespace) -> int:
    """0 when there is such a key, else 2."""
    asked = args.key.strip()
    width = min(shutil.get_terminal_size().columns - 2, _WIDEST)
    if (exact := found(asked)) != []:
        for line in explained(asked, exact, width):
            print(line)
        return os.EX_OK
    if several := beginning(asked):
        for line in listed(several, width):
            print(line)
        return os.EX_OK
    print(f"parquet-sink explain: no such key: {printable(asked)}.{_meant(asked)}", file=sys.stderr)
    return SetupError.exit_status


@cache
def places() -> tuple[Place, ...]:
    """All keys, those of connector files first. Packages that cannot be loaded are left out: `check` says why."""
    return tuple(_places())


def _places() -> Iterator[Place]:
    known: dict[tuple[str, str], str] = {}
    for name in (DEFAULT_CLASS, *plugins.names(CONNECTOR_CLASSES)):
        short = name.rpartition(".")[2]
        where = FILE if name == DEFAULT_CLASS else f"{FILE} with connector.class={short}"
        yield from _new(known, where, _keys_of_class(name))
    for name in sorted(plugins.installed(TARGET_CLASSES)):
        yield from _new(known, f"{FILE} with {TYPE}={name}", _keys_of_target(name))
    for kind in (TRANSFORMS, PREDICATES):
        for step in steps_of(kind):
            names = (step.title.lower(), *map(str.lower, step.names), *(_whole(name) for name in step.names))
            for key in step.keys:
                yield Place(key, FILE, step.title, names, step.summary)
    yield from _of_own_converters()
    yield from (Place(key, WORKER_FILE) for key in WORKER_KEYS)
    yield from (Place(key, CLIENT_FILE) for key in CLIENT_KEYS)


def _whole(name: str) -> str:
    """The name of a class without the side that it works on."""
    return name.lower().partition("$")[0]


def _of_own_converters() -> Iterator[Place]:
    """Those of installed packages."""
    from parquet_sink.convert.custom import CONVERTER_CLASSES  # loads Arrow

    for one in plugins.declared(CONVERTER_CLASSES):
        with suppress(PluginUnusable):
            title, found = one.name.rpartition(".")[2], plugins.load(CONVERTER_CLASSES, one)
            names, summary = (title.lower(), one.name.lower()), summary_of(found)
            for side in ("key", "value"):
                for key in found.keys:
                    yield Place(replace(key, name=f"{side}.converter.{key.name}"), FILE, title, names, summary)


def _keys_of_class(name: str) -> Sequence[Key]:
    try:
        return find_class(name).keys
    except PluginUnusable:
        return ()


def _keys_of_target(name: str) -> Sequence[Key]:
    try:
        return find_target(name).keys
    except PluginUnusable:
        return ()


def _new(known: dict[tuple[str, str], str], where: str, keys: Iterable[Key]) -> Iterator[Place]:
    """Those that say something else than a class before."""
    for key in keys:
        if known.setdefault((key.name, key.doc), where) == where:
            yield Place(key, where)


def found(asked: str) -> list[Place]:
    """What one key is: by its name, by its name in the user's file, by its last words. Empty for none, or several."""
    name = asked.lower()
    by_name = [one for one in places() if one.key.name.lower() == name]
    if by_name:
        return by_name
    if (step := _STEP.fullmatch(asked)) is not None:  # N is what the file calls it
        by_name = [one for one in places() if one.key.name == f"{step[1]}.N.{step[2]}"]
    ending = [one for one in places() if one.key.name.lower().endswith(f".{name}")]
    if not by_name and len({one.key.name.partition(".converter.")[2] or one.key.name for one in ending}) == 1:
        is_converter = ".converter." in ending[0].key.name  # value and key have it: the first stands for both
        by_name = [one for one in ending if one.key.name == ending[0].key.name] if is_converter else ending
    if by_name or beginning(asked):
        return by_name
    prefixes = [one for one in places() if one.key.is_prefix and one.key.matches(asked)]
    longest = max((len(one.key.name) for one in prefixes), default=0)
    return [one for one in prefixes if len(one.key.name) == longest]


def beginning(asked: str) -> list[Place]:
    """Keys that begin so, by whole words of their names; those of a class; else those that have the words."""
    name = asked.lower().removesuffix("*").removesuffix(".")
    if not name:
        return []
    begin = [one for one in places() if one.key.name.lower().startswith(f"{name}.")]
    of_step = [one for one in places() if name in one.names]
    within = [one for one in places() if f".{name}." in f".{one.key.name.lower()}."]
    return begin or of_step or within


def explained(asked: str, found: Sequence[Place], width: int) -> Iterator[str]:
    """Each meaning of the key, in a block of lines."""
    for number, (one, where) in enumerate(_merged(found)):
        if number:
            yield ""
        yield from _block(asked, one, where, width)


def _merged(found: Sequence[Place]) -> list[tuple[Place, str]]:
    """A key that is the same in several places stands once, with all of them."""
    where: dict[Key, list[Place]] = {}
    for one in found:
        where.setdefault(replace(one.key, group="", check=None), []).append(one)
    return [(same[0], " and ".join(dict.fromkeys(map(_stands, same)))) for same in where.values()]


def _stands(one: Place) -> str:
    return f"{one.where}, {one.step}" if one.step else one.where


def _block(asked: str, one: Place, where: str, width: int) -> Iterator[str]:
    key = one.key
    yield key.name
    yield f"  in {where}; {docs.from_(key)}"
    yield ""
    meaning = docs.meaning_of(key).replace("**", "")
    yield from _wrapped(_NAMED.sub(r"\1", _without_links(meaning)), width, "  ")
    yield ""
    limits = docs.limits_of(key).replace("`", "")
    example = example_of(key, asked)
    rows = {
        "Type": docs.type_of(key),
        "Default": _NAMED.sub(r"\1", docs.default_of(key)),
        "Values": limits,
        "Needs": key.needs,
        "Example": "" if example is None else example,
        "See also": ", ".join(beside(one)),
    }
    for name, text in rows.items():
        if text:
            first, *more = textwrap.wrap(text, width - 13, break_long_words=False, break_on_hyphens=False) or [""]
            yield f"  {name + ':':<11}{first}"
            yield from (f"  {'':<11}{line}" for line in more)


def _without_links(text: str) -> str:
    """`[errors.md](../how-to/errors.md)`, of a page in docs/reference, as `docs/how-to/errors.md`."""
    return re.sub(r"\[[^][]*\]\(([^()]*)\)", lambda link: posixpath.normpath(f"docs/reference/{link[1]}"), text)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    more = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, **more)  # type: ignore[arg-type]


def example_of(key: Key, asked: str = "") -> str | None:
    """A line of a file that is valid, and says something else than the default where it can; None when it is not known.

    asked: the name as the user has it, for a key that stands for many.
    """
    step = _STEP.fullmatch(key.name)
    name = key.name.replace(".N.", ".myStep.", 1) if step is not None else key.name
    if key.is_prefix or key.no_effect or key.deprecated:
        return None
    value = _value(key)
    return None if value is None else f"{name}={value}"


def _value(key: Key) -> str | None:
    if key.type is Type.PASSWORD:
        return "${env:MY_SECRET}"
    built = [one for one in key.choices if key.not_built is None or not key.not_built.when(one)]
    if built:
        return next((one for one in built if one != key.default and _is_right(key, one)), built[0])
    if key.type is Type.BOOLEAN:
        other = key.default is not True
        return str(other if _is_right(key, other) else not other).lower()
    if key.type in (Type.INT, Type.LONG, Type.DOUBLE):
        return _number(key)
    return str(key.default) if isinstance(key.default, str) and key.default else None


def _is_right(key: Key, value: Value) -> bool:
    return key.check is None or key.check.test(value) is None


def _number(key: Key) -> str | None:
    """With its unit where it has one, and else the default, or another number within the limits; None for none."""
    text = "" if key.unit is None else examples(key.unit, key.minimum, key.maximum).partition(" or ")[0]
    value = None if key.unit is None else amount(text, key.unit)
    if value is not None and _is_right(key, value):
        return text
    low, high = key.minimum or 0, key.maximum if key.maximum is not None else sys.maxsize
    default = [key.default] if isinstance(key.default, (int, float)) and not isinstance(key.default, bool) else []
    fitting = (one for one in (*default, 10_000, 256, 100, 10, 1, low) if low <= one <= high and _is_right(key, one))
    return next(map(str, fitting), None)


def beside(one: Place) -> list[str]:
    """Other keys that its text names, then some of its section with the same beginning."""
    names = {place.key.name for place in places()}
    own = one.key.name
    told = [name for name in _NAMED.findall(docs.meaning_of(one.key)) if name in names and name != own]
    near = _siblings(one)
    rest = [name for name in near if name not in (own, one.key.needs, *told)]
    return list(dict.fromkeys([*told, *rest[:_MOST_BESIDE]]))


def _siblings(one: Place) -> list[str]:
    """Keys of its section that begin as it does, for as long as any do."""
    group = [
        place.key.name
        for place in places()
        if place.where == one.where and place.step == one.step and place.key.group == one.key.group
    ]
    parent = one.key.name.rpartition(".")[0]
    while parent and parent not in _TOO_WIDE:
        found = [name for name in group if name.startswith(f"{parent}.") and name != one.key.name]
        if found:
            return found
        parent = parent.rpartition(".")[0]
    return group


def listed(found: Sequence[Place], width: int) -> Iterator[str]:
    """A line for each key, by place."""
    by_place: dict[str, dict[str, Key]] = {}
    for one in found:
        by_place.setdefault(_stands(one), {}).setdefault(one.key.name, one.key)
    summaries = {_stands(one): one.summary for one in found}
    for number, (where, keys) in enumerate(by_place.items()):
        if number:
            yield ""
        yield f"{where[:1].upper()}{where[1:]}:"
        yield from _wrapped(summaries[where].replace("`", ""), width, "  ")
        most = max(map(len, keys))
        for name, key in keys.items():
            yield from _line(name, key, min(most, width // 2), width)
    yield ""
    yield f"{counted(len({one.key.name for one in found}), 'key')}; parquet-sink explain KEY explains one."


def _line(name: str, key: Key, most: int, width: int) -> Iterator[str]:
    """The name, and the first sentence of its text as far as the line goes."""
    text = _without_links(docs.meaning_of(key).replace("**", "")).replace("`", "")
    first = text.partition(". ")[0].rstrip(".")
    room = width - most - 4
    if len(name) > most or room < 20:
        yield f"  {name}"
        return
    yield f"  {name:<{most}}  {textwrap.shorten(first, room, placeholder=' …')}"


def _meant(asked: str) -> str:
    """The nearest keys, in full or by their last words."""
    shorts: dict[str, str] = {}
    for name in dict.fromkeys(one.key.name for one in places()):
        for begin in (name, name.removeprefix("connect.ems."), name.rpartition(".converter.")[2]):
            shorts.setdefault(begin, name)
    near = difflib.get_close_matches(asked.lower(), list(shorts), n=3, cutoff=0.6)
    names = list(dict.fromkeys(shorts[one] for one in near))
    if not names:
        return f" Give words of its name, such as {quoted('commit')}, or see parquet-sink run --help-all."
    return f" Did you mean {' or '.join(names)}?"
