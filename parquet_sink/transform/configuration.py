"""From the keys of a connector file to its transforms: everything that is wrong with them, or their settings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from parquet_sink.config.key import Key, find
from parquet_sink.config.providers import Resolved
from parquet_sink.config.report import PrefixedReport, Report, did_you_mean, printable, quoted
from parquet_sink.config.secret import STARS, Secret
from parquet_sink.config.values import Values, read
from parquet_sink.config.without_effect import warn_about
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS
from parquet_sink.transform.settings import ClassSettings, StepSettings


@dataclass(frozen=True)
class _Kind:
    """Transforms, or predicates. key: that lists their names. own: keys that each of them has beside its class's."""

    key: str
    what: str
    own: tuple[Key, ...]


_TRANSFORMS = _Kind("transforms", "transform", STEP_KEYS)
_PREDICATES = _Kind("predicates", "predicate", PREDICATE_KEYS)


@dataclass(frozen=True)
class _Found:
    """One of them: its settings, None when something is wrong, and the keys that each has, read."""

    settings: ClassSettings | None
    own: Values


def check(values: Values, report: Report) -> tuple[StepSettings, ...]:
    """The transforms of a file in their order; what is wrong goes to the report, and is left out.

    values: of the whole file. A class is loaded, and made once, so that it can judge its settings.
    """
    transforms = _all(_TRANSFORMS, values, report)
    predicates = _all(_PREDICATES, values, report)
    steps = [_step(name, found, predicates, report) for name, found in transforms.items()]
    asked = {found.own.text("predicate") for found in transforms.values()}
    for name in predicates:
        if name not in asked:
            report.warn(f"predicates.{name}.type", "It has no effect: no transform has it as its predicate.")
    return tuple(step for step in steps if step is not None)


def _step(name: str, found: _Found, predicates: Mapping[str, _Found], report: Report) -> StepSettings | None:
    own, inner = found.own, PrefixedReport(report, f"transforms.{name}.")
    if "negate" in own.given and "predicate" not in own.given:
        inner.problem("negate", "There is no predicate to negate; name one in predicate, or remove the key.")
    asked = own.text("predicate")
    if asked is not None and asked not in predicates:
        hint = did_you_mean(asked, {one: one for one in predicates}, cutoff=0.6)
        inner.problem(
            "predicate",
            f"{own.quoted('predicate')} is not among predicates; list it there and give predicates.{printable(asked)}"
            f".type, or correct it.{hint}",
        )
        return None
    predicate = None if asked is None else predicates[asked].settings
    if found.settings is None or (asked is not None and predicate is None):
        return None
    return StepSettings(found.settings, predicate, own.flag("negate"))


def _all(kind: _Kind, values: Values, report: Report) -> dict[str, _Found]:
    """By name, in the order of the list."""
    names = values.names(kind.key)
    _twice(kind, values, report)
    sections: dict[str, list[str]] = {name: [] for name in names}
    for full in sorted({*values.texts, *values.given}):
        if not full.startswith(f"{kind.key}."):
            continue
        rest = full.removeprefix(f"{kind.key}.")
        owner = max((name for name in names if rest.startswith(f"{name}.")), key=len, default=None)
        if owner is not None:
            sections[owner].append(full)
        elif full in values.given:
            report.warn(full, _nobodys(kind, rest, names))
    return {name: _one(kind, name, _section(kind, name, sections[name], values), report) for name in names}


def _nobodys(kind: _Kind, rest: str, names: tuple[str, ...]) -> str:
    name = rest.partition(".")[0]
    hint = did_you_mean(name, {one: f"{kind.key}.{one}.{rest.partition('.')[2]}" for one in names}, cutoff=0.6)
    return f"It has no effect: {kind.key} does not name {quoted(name)}.{hint}"


def _twice(kind: _Kind, values: Values, report: Report) -> None:
    listed = [name.strip() for name in values.texts.get(kind.key, "").split(",")]
    again = next((name for name in values.names(kind.key) if listed.count(name) > 1), None)
    if again is not None:
        report.problem(
            kind.key, f"{quoted(again)} is named twice; name each {kind.what} once, a second one by a name of its own."
        )


def _section(kind: _Kind, name: str, full: list[str], values: Values) -> Resolved:
    """The keys of one of them, without what stands before them."""
    short = {one: one.removeprefix(f"{kind.key}.{name}.") for one in full}
    there = [one for one in full if one in values.texts]
    return Resolved(
        {short[one]: values.texts[one] for one in there},
        {short[one]: values.shown(one) for one in full},
        frozenset(short[one] for one in there if values.shown(one) != values.texts[one]),
        frozenset(short[one] for one in full if one not in values.texts),
    )


def _one(kind: _Kind, name: str, section: Resolved, report: Report) -> _Found:
    before, inner = len(report.problems), PrefixedReport(report, f"{kind.key}.{name}.")
    own = read(kind.own, section, inner)
    type_ = own.text("type")
    made = None if type_ is None else _class(kind, type_, section, inner)
    if made is None or type_ is None:
        return _Found(None, own)
    keys, make = made
    values = read(keys, _without_secrets(keys, section), inner)
    _warn(kind, keys, values, section, inner)
    if len(report.problems) == before:
        _make(make, values, keys, inner)
    good = len(report.problems) == before
    return _Found(ClassSettings(name, type_, _texts(keys, section)) if good else None, own)


def _class(
    kind: _Kind, type_: str, section: Resolved, report: Report
) -> tuple[tuple[Key, ...], Callable[[Values], object]] | None:
    """The keys of a class, and what makes one of them."""
    from parquet_sink.plugins import PluginUnusable
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    try:
        if kind is _PREDICATES:
            predicate = find_predicate(type_)
            return tuple(predicate.keys), predicate
        transform, side = find_transform(type_)
        return tuple(transform.keys), lambda values: transform(values, side)
    except PluginUnusable as error:
        hidden = f"What {quoted(section.shown['type'])} stands for is no {kind.what} that can be used; correct it."
        report.problem("type", hidden if "type" in section.provided else str(error))
        return None


def _without_secrets(keys: tuple[Key, ...], section: Resolved) -> Resolved:
    """A class may quote what the file has; of what is secret it must not."""
    secret = {name for name in section.values if (key := find(keys, name)) is not None and key.secret}
    shown = {name: STARS if name in secret - section.provided else text for name, text in section.shown.items()}
    return Resolved(section.values, shown, section.provided, section.failed)


def _warn(kind: _Kind, keys: tuple[Key, ...], values: Values, section: Resolved, report: PrefixedReport) -> None:
    """About keys that change nothing."""
    own = [key.name for key in kind.own]
    known = {name: report.prefix + name for name in (*own, *(key.name for key in keys if not key.deprecated))}
    names = [name for name in section.shown if name not in own]

    def unknown(name: str) -> str:
        return f"It is unknown to this {kind.what} and has no effect.{did_you_mean(name, known, cutoff=0.6)}"

    warn_about(keys, values, names, unknown, report)


def _make(make: Callable[[Values], object], values: Values, keys: tuple[Key, ...], report: Report) -> None:
    from parquet_sink.transform.protocol import WrongSettings

    try:
        make(values)
    except WrongSettings as error:
        for name, reason in error.reasons.items():
            report.problem(name, reason)
    except Exception as error:  # noqa: BLE001 - whatever another's code raises, the file that names it is told
        secret = any(key.secret for key in keys)
        said = "" if secret else f": {printable(str(error))}"
        report.problem(
            "type", f"Its class fails with these settings ({type(error).__name__}{said}); correct the class."
        )


def _texts(keys: tuple[Key, ...], section: Resolved) -> tuple[tuple[str, str | Secret], ...]:
    found: list[tuple[str, str | Secret]] = []
    for name, text in section.values.items():
        key = find(keys, name)
        if key is not None:
            found.append((name, Secret(text) if key.secret or name in section.provided else text))
    return tuple(found)
