"""Settings of a class that a file names (a transform, a converter): validated by its own keys, handed on as texts.

Also lists of names in a file, each with a class and its settings: `transforms`, `config.providers`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.key import Key, find
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import PrefixedReport, Report, did_you_mean, printable, quoted
from parquet_sink.config.secret import STARS, Secret
from parquet_sink.config.values import Values, read
from parquet_sink.config.without_effect import warn_about
from parquet_sink.errors import code_place

_ABSTRACT: Final = re.compile(r"Can't instantiate abstract class (\w+) .*abstract methods? (.+)")
"""Python's text for a class without a method that its base asks for."""
CLASS: Final = "class"
PARAM: Final = "param."
Texts = tuple[tuple[str, str | Secret], ...]


class WrongSettings(ValueError):
    """Settings of a class that are wrong together, or with the side.

    reasons: by the key's own name (`spec`, not `transforms.N.spec`; `type` when the class itself does not fit) one
    sentence that says what is wrong, with the value (`values.quoted(name)`), and the cure. Each is reported as
    `Invalid [transforms.N.spec]. reason`.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(dict(reasons))
        self.reasons = dict(reasons)


@dataclass(frozen=True)
class ClassSettings:
    """A class with its settings. name: in the file. type: the class, as the file names it.

    texts: of its own keys, those that are set, in the order of the file; what is secret, or came from a config
    provider, is a `Secret`.
    """

    name: str
    type: str
    texts: Texts = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may not be said, whatever the class says."""
        return tuple(text.reveal() for _, text in self.texts if isinstance(text, Secret))

    def values(self, keys: Sequence[Key]) -> Values:
        """As they were checked when the file was read. keys: of the class."""
        texts = {name: text.reveal() if isinstance(text, Secret) else text for name, text in self.texts}
        shown = {name: STARS if isinstance(text, Secret) else text for name, text in self.texts}
        return read(tuple(keys), Resolved(texts, shown), Report())


@dataclass(frozen=True)
class ClassCheck:
    """A class whose settings are to be checked. what: for messages. make: makes one, and raises what is wrong.

    others: keys beside its own that were validated before. class_key: the key, in full, that names the class.
    """

    what: str
    keys: tuple[Key, ...]
    make: Callable[[Values], object]
    class_key: str
    others: Collection[str] = ()


def keys_by_name(
    list_key: str,
    what: str,
    texts: Mapping[str, str],
    report: Report,
    keys: Collection[str],
    silent: Collection[str] = (),
) -> dict[str, list[str]]:
    """The names of a list in their order, each with those keys of a file that belong to it, in full.

    what: one of the list, in words. A key that belongs to none is warned about, unless it is among `silent`.
    """
    names = [name for one in texts.get(list_key, "").split(",") if (name := one.strip())]
    if (again := next((name for name in names if names.count(name) > 1), None)) is not None:
        report.problem(list_key, f"{quoted(again)} is named twice; name each {what} once.")
    found: dict[str, list[str]] = {name: [] for name in names}
    for full in sorted(one for one in keys if one.startswith(f"{list_key}.")):
        rest = full.removeprefix(f"{list_key}.")
        owner = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
        if owner is not None:
            found[owner].append(full)
        elif full not in silent:
            name, _, behind = rest.partition(".")
            hint = did_you_mean(name, {one: f"{list_key}.{one}.{behind}" for one in names}, cutoff=0.6)
            unlisted = f"{list_key} does not name {quoted(name)}; list it there, or remove the key."
            report.warn(full, f"It has no effect: {unlisted}{hint}")
    return found


def classes_by_name(
    list_key: str, what: str, properties: Mapping[str, str], report: Report
) -> dict[str, dict[str, str]]:
    """By name, in the order of a list, the texts behind it, by `class` and `param.KEY`; others are warned about."""
    listed = keys_by_name(list_key, what, properties, report, properties)
    found = {
        name: {full.removeprefix(f"{list_key}.{name}."): properties[full] for full in keys}
        for name, keys in listed.items()
    }
    for name, texts in found.items():
        prefix = f"{list_key}.{name}."
        for behind in texts:
            if behind != CLASS and not behind.startswith(PARAM):
                has = f"a {what} has {prefix}{CLASS} and {prefix}{PARAM}*."
                report.warn(prefix + behind, f"It is unknown and has no effect; {has}")
    return found


def section(values: Values, full: Sequence[str], prefix: str) -> Resolved:
    """Those keys of a file, without what stands before them."""
    there = [one for one in full if one in values.texts]
    short = {one: one.removeprefix(prefix) for one in full}
    return Resolved(
        {short[one]: values.texts[one] for one in there},
        {short[one]: values.shown(one) for one in full},
        frozenset(short[one] for one in there if values.shown(one) != values.texts[one]),
        frozenset(short[one] for one in full if one not in values.texts),
    )


def validate(checked: ClassCheck, found: Resolved, report: PrefixedReport) -> Texts | None:
    """The texts of the class's own keys; None when something is wrong, which the report has then."""
    before, keys = len(report.problems), checked.keys
    values = read(keys, _without_secrets(keys, found), report)
    _warn(checked, values, found, report)
    if len(report.problems) == before:
        secret = any(key.secret and key.name in values.given for key in keys)
        _make(checked, values, report, hidden=secret or bool(found.provided))
    return None if len(report.problems) > before else _texts(keys, found)


def _without_secrets(keys: tuple[Key, ...], found: Resolved) -> Resolved:
    """A class may quote what the file has; of what is secret it must not."""
    secret = {name for name in found.values if (key := find(keys, name)) is not None and key.secret}
    shown = {name: STARS if name in secret - found.provided else text for name, text in found.shown.items()}
    return Resolved(found.values, shown, found.provided, found.failed)


def _warn(checked: ClassCheck, values: Values, found: Resolved, report: PrefixedReport) -> None:
    """About keys that change nothing."""
    own = (key.name for key in checked.keys if not key.deprecated)
    known = {name: report.prefix + name for name in (*checked.others, *own)}
    names = [name for name in found.shown if name not in checked.others]

    def unknown(name: str) -> str:
        return f"It is unknown to this {checked.what} and has no effect.{did_you_mean(name, known, cutoff=0.6)}"

    warn_about(checked.keys, values, names, unknown, report)


def _make(checked: ClassCheck, values: Values, report: PrefixedReport, *, hidden: bool) -> None:
    """hidden: what it raises may quote a secret."""
    try:
        checked.make(values)
    except WrongSettings as error:
        for name, reason in error.reasons.items():
            if name == "type":
                report.outer.problem(checked.class_key, reason)
            else:
                report.problem(name, reason)
    except Exception as error:  # noqa: BLE001 - whatever another's code raises, the file that names it is reported
        report.outer.problem(checked.class_key, _why(error, hidden=hidden))


def _why(error: Exception, *, hidden: bool) -> str:
    """What is said of a class that raised something else than WrongSettings."""
    if (abstract := _ABSTRACT.match(str(error))) is not None:
        return f"{abstract[1]} lacks {abstract[2].replace(chr(39), '')}; write it."
    said = "" if hidden else f": {printable(str(error))}"
    return f"Its class fails with these settings ({code_place(error)}{said}); correct the class."


def _texts(keys: tuple[Key, ...], found: Resolved) -> Texts:
    texts: list[tuple[str, str | Secret]] = []
    for name, text in found.values.items():
        key = find(keys, name)
        if key is not None:
            texts.append((name, Secret(text) if key.secret or name in found.provided else text))
    return tuple(texts)
