"""From the keys of a connector file to its transforms: everything that is wrong with them, or their settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from parquet_sink.config.class_settings import ClassCheck, ClassSettings, keys_by_name, section, validate
from parquet_sink.config.key import Key
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import PrefixedReport, Report, did_you_mean, printable, quoted
from parquet_sink.config.values import Values, read
from parquet_sink.transform.keys import PREDICATE_KEYS, STEP_KEYS
from parquet_sink.transform.settings import StepSettings


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

    values: of the whole file. A class is loaded, and made once, so that it can validate its settings.
    """
    transforms = _all(_TRANSFORMS, values, report)
    predicates = _all(_PREDICATES, values, report)
    steps = [_step(name, found, predicates, report) for name, found in transforms.items()]
    asked = {found.own.text("predicate") for found in transforms.values()}
    for name, found in predicates.items():
        if name not in asked and found.settings is not None:
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
    if predicate is None and _drops_all(found.settings.type):
        inner.warn("type", "It drops every record, because it has no predicate; name one in predicate.")
    return StepSettings(found.settings, predicate, own.flag("negate"))


def _drops_all(type_: str) -> bool:
    from parquet_sink.transform.classes import find_transform  # loaded by now

    return getattr(find_transform(type_)[0], "drops_all", False)


def _all(kind: _Kind, values: Values, report: Report) -> dict[str, _Found]:
    """By name, in the order of the list."""
    keys = {*values.texts, *values.given}
    listed = keys_by_name(kind.key, kind.what, values.texts, report, keys, silent=keys - values.given)
    return {name: _one(kind, name, section(values, own, f"{kind.key}.{name}."), report) for name, own in listed.items()}


def _one(kind: _Kind, name: str, found: Resolved, report: Report) -> _Found:
    before, inner = len(report.problems), PrefixedReport(report, f"{kind.key}.{name}.")
    own = read(kind.own, found, inner)
    type_ = own.text("type")
    if type_ is None:
        _misspelt(kind, found, inner)
    checked = None if type_ is None else _class(kind, type_, found, inner)
    texts = None if checked is None else validate(checked, found, inner)
    if type_ is None or texts is None or len(report.problems) > before:
        return _Found(None, own)
    return _Found(ClassSettings(name, type_, texts), own)


def _misspelt(kind: _Kind, found: Resolved, report: PrefixedReport) -> None:
    """What looks like a key that all of a kind have; without a class nobody knows the others."""
    known = {key.name: report.prefix + key.name for key in kind.own}
    for name in found.shown:
        hint = "" if name in known else did_you_mean(name, known, cutoff=0.7)
        if hint:
            report.warn(name, f"It is unknown and has no effect.{hint}")


def _class(kind: _Kind, type_: str, found: Resolved, report: PrefixedReport) -> ClassCheck | None:
    """The keys of a class, and what makes one of them."""
    from parquet_sink.plugins import PluginUnusable
    from parquet_sink.transform.classes import find_predicate, find_transform  # load Arrow: only where one is named

    others, key = [one.name for one in kind.own], f"{report.prefix}type"
    try:
        if kind is _PREDICATES:
            predicate = find_predicate(type_)
            return ClassCheck(kind.what, tuple(predicate.keys), predicate, key, others)
        transform, side = find_transform(type_)
        return ClassCheck(kind.what, tuple(transform.keys), lambda values: transform(values, side), key, others)
    except PluginUnusable as error:
        hidden = f"What {quoted(found.shown['type'])} stands for is not a usable {kind.what}; correct it."
        report.problem("type", hidden if "type" in found.provided else f"{error}{_as_the_other(kind, type_)}")
        return None


def _as_the_other(kind: _Kind, type_: str) -> str:
    """Where a class belongs that has the other kind's method, with a leading blank; empty for any other."""
    from parquet_sink import plugins
    from parquet_sink.transform.classes import PREDICATE_CLASSES, TRANSFORM_CLASSES

    is_predicate = kind is _PREDICATES
    try:
        located = plugins.locate(TRANSFORM_CLASSES if is_predicate else PREDICATE_CLASSES, type_)
        is_other = hasattr(plugins.named(located.path), "apply" if is_predicate else "test")
    except Exception:  # noqa: BLE001 - it is not there, or cannot be loaded, which is said already
        return ""
    if not is_other:
        return ""
    if is_predicate:
        return f" {quoted(type_)} is a transform: it belongs into transforms.N.type."
    return f" {quoted(type_)} is a predicate: it belongs into predicates.N.type, and N into transforms.M.predicate."
