"""Settings of a class that a file names (a transform, a converter): judged by its own keys, handed on as texts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from parquet_sink.config.key import Key, find
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import PrefixedReport, Report, did_you_mean, printable
from parquet_sink.config.secret import STARS, Secret
from parquet_sink.config.values import Values, read
from parquet_sink.config.without_effect import warn_about

Texts = tuple[tuple[str, str | Secret], ...]


class WrongSettings(ValueError):
    """Settings of a class that are wrong together, or with the side.

    reasons: by the key's own name (`spec`, not `transforms.N.spec`; `type` when the class itself does not fit) one
    sentence that says what is wrong, with the value (`values.quoted(name)`), and the cure. Each is told as
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
class Judged:
    """A class whose settings are to be judged. what: for messages. make: makes one, and raises what is wrong.

    others: keys beside its own that were judged before. on_class: tells what is wrong with the class itself.
    """

    what: str
    keys: tuple[Key, ...]
    make: Callable[[Values], object]
    on_class: Callable[[str], None]
    others: Collection[str] = ()


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


def judge(judged: Judged, found: Resolved, report: PrefixedReport) -> Texts | None:
    """The texts of the class's own keys; None when something is wrong, which the report has then."""
    before, keys = len(report.problems), judged.keys
    values = read(keys, _without_secrets(keys, found), report)
    _warn(judged, values, found, report)
    if len(report.problems) == before:
        _make(judged, values, report)
    return None if len(report.problems) > before else _texts(keys, found)


def _without_secrets(keys: tuple[Key, ...], found: Resolved) -> Resolved:
    """A class may quote what the file has; of what is secret it must not."""
    secret = {name for name in found.values if (key := find(keys, name)) is not None and key.secret}
    shown = {name: STARS if name in secret - found.provided else text for name, text in found.shown.items()}
    return Resolved(found.values, shown, found.provided, found.failed)


def _warn(judged: Judged, values: Values, found: Resolved, report: PrefixedReport) -> None:
    """About keys that change nothing."""
    own = (key.name for key in judged.keys if not key.deprecated)
    known = {name: report.prefix + name for name in (*judged.others, *own)}
    names = [name for name in found.shown if name not in judged.others]

    def unknown(name: str) -> str:
        return f"It is unknown to this {judged.what} and has no effect.{did_you_mean(name, known, cutoff=0.6)}"

    warn_about(judged.keys, values, names, unknown, report)


def _make(judged: Judged, values: Values, report: Report) -> None:
    try:
        judged.make(values)
    except WrongSettings as error:
        for name, reason in error.reasons.items():
            if name == "type":
                judged.on_class(reason)
            else:
                report.problem(name, reason)
    except Exception as error:  # noqa: BLE001 - whatever another's code raises, the file that names it is told
        said = "" if any(key.secret for key in judged.keys) else f": {printable(str(error))}"
        judged.on_class(f"Its class fails with these settings ({type(error).__name__}{said}); correct the class.")


def _texts(keys: tuple[Key, ...], found: Resolved) -> Texts:
    texts: list[tuple[str, str | Secret]] = []
    for name, text in found.values.items():
        key = find(keys, name)
        if key is not None:
            texts.append((name, Secret(text) if key.secret or name in found.provided else text))
    return tuple(texts)
