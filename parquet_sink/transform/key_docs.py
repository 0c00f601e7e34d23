"""The documentation of transforms and predicates, written from the tables of keys of their classes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import getdoc
from typing import TYPE_CHECKING

from parquet_sink.config.docs import TABLE_HEAD, help_section, row_of
from parquet_sink.config.key import Key
from parquet_sink.plugins import BUILT_IN, PREDICATES, TRANSFORMS
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS, TRANSFORM, TRANSFORM_KEYS

if TYPE_CHECKING:
    from parquet_sink.transform.protocol import PredicateClass, TransformClass

_INTRO = """\
`N` stands for a name that `transforms` or `predicates` lists. What a transform is, and examples of each, are in
[transforms.md](transforms.md).
"""
_KINDS = ((TRANSFORMS, "transforms.N."), (PREDICATES, "predicates.N."))


def section() -> str:
    """The keys that all transforms have, then for each class its names and its own keys."""
    parts = [f"## {TRANSFORM}", "", _INTRO, *TABLE_HEAD, *(row_of(key) for key in _common())]
    for group, prefix in _KINDS:
        for found, names in classes(group):
            parts += ["", f"### {_title(names)}", "", f"{_summary(found)} {_listed(names)}", ""]
            parts += [*TABLE_HEAD, *(row_of(key) for key in _behind(prefix, found.keys))] if found.keys else []
    return "\n".join([*parts, ""])


def help_lines(title: str) -> Iterator[str]:
    """The same as plain text, for a terminal."""
    yield from help_section(f"{title}: {TRANSFORM}", [*_common()])
    for group, prefix in _KINDS:
        for found, names in classes(group):
            yield from help_section(f"{title}: {prefix}type={_title(names)}", [*_behind(prefix, found.keys)])


def classes(group: str) -> "list[tuple[TransformClass | PredicateClass, list[str]]]":
    """Each class that is built in, with its full names."""
    names: dict[str, list[str]] = {}
    for name, path in BUILT_IN[group].items():
        names.setdefault(path, []).append(name)
    return [(_find(group, of_one[0]), of_one) for of_one in names.values()]


def _find(group: str, name: str) -> "TransformClass | PredicateClass":
    from parquet_sink.transform.classes import find_predicate, find_transform  # loads Arrow, for those who need it

    return find_transform(name)[0] if group == TRANSFORMS else find_predicate(name)


def _common() -> Sequence[Key]:
    return [*TRANSFORM_KEYS, *_behind("transforms.N.", STEP_KEYS), *_behind("predicates.N.", PREDICATE_KEYS)]


def _behind(prefix: str, keys: Sequence[Key]) -> list[Key]:
    return [replace(key, name=prefix + key.name) for key in keys]


def _title(names: Sequence[str]) -> str:
    return names[0].rpartition(".")[2].partition("$")[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) + "."


def _summary(found: "TransformClass | PredicateClass") -> str:
    """The first paragraph of the class's docstring."""
    return " ".join((getdoc(found) or "").partition("\n\n")[0].split())
