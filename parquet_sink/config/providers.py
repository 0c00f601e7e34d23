"""Placeholders of config providers in any value: `${env:NAME}`, `${file:PATH:KEY}`, `${directory:PATH:FILE}`, others.

Which providers there are the machine says; without a word of it Kafka's own three. A value that a provider gave is
never shown: messages name the placeholder.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from parquet_sink.config.built_in_providers import BUILT_IN, built_in
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Answer, NotGiven, Provider, Resolved
from parquet_sink.config.report import Report, printable, quoted

_PLACEHOLDER = re.compile(r"\$\{([^}:]*+)(?::(?:([^}:]*+):)?([^}]*+))?(\}|\Z)")
"""Also what begins like one and has no colon or no end (see `_placeholders`): it is passed over in one go."""
_SLIP = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TELLING = re.compile(r"(?:true|false|[+-]?[0-9]*)", re.IGNORECASE)
"""Values that messages need not hide."""
_HIDDEN = (
    r"(^(?:Invalid|Warning) \[(?!transforms\.|predicates\.|event\.listeners\.)[^\]]*\]|\$\{{[^}}]*\}})"
    r"|(?:(?<=transforms\.)|(?<=predicates\.)|(?<=event\.listeners\.)){0}(?!\w)|(?<![\w.]){0}(?!\w|\.\w)"
)
"""What stays as it is, as group 1, and where a value is hidden: as the name of a step or listener, or where it is no
part of a word or a key."""
_NOT_OURS = ("transforms.", "predicates.")
"""Keys in whose values `${name}` is a group of a regular expression."""

_Question = tuple[str, str]
"""Name of a provider, and path."""


def resolve(properties: Mapping[str, str], machine: Machine, report: Report) -> Resolved:
    """Replace every placeholder once (what a provider gives is not searched again).

    A provider is asked once for all that is wanted of a path, so that values of one file belong together.
    """
    values: dict[str, str] = {}
    provided, failed, away = set(), set(), set()
    slips = {name: slip for name, text in properties.items() if (slip := _slip(name, text, machine)) is not None}
    answers = _answers((text for name, text in properties.items() if name not in slips), machine)
    for name, text in properties.items():
        if name in slips:
            failed.add(name)
            report.problem(name, slips[name])
            continue
        if not any(_placeholders(text)):
            values[name] = text
            continue
        provided.add(name)
        try:
            values[name] = _PLACEHOLDER.sub(lambda found: _value(found, answers) if _is_one(found) else found[0], text)
        except _NoValue as error:
            failed.add(name)
            if error.passes:
                away.add(name)
            report.problem(name, str(error))
    return Resolved(values, dict(properties), frozenset(provided), frozenset(failed), frozenset(away))


def without_provided(messages: Iterable[str], resolved: Resolved) -> tuple[str, ...]:
    """The messages with the text of the file in place of values, and items of lists, that a provider gave.

    For messages that name what a value means, a transform say. Keys and placeholders in them stay; true, false and
    whole numbers tell nothing.
    """
    shown = dict(_provided(resolved))
    if not shown:
        return tuple(messages)
    texts = "|".join(re.escape(one) for one in sorted(shown, key=len, reverse=True))
    hidden = re.compile(_HIDDEN.format(f"(?:{texts})"), re.IGNORECASE)
    return tuple(hidden.sub(lambda found: found[1] or shown[found[0].lower()], one) for one in messages)


def _provided(resolved: Resolved) -> Iterator[tuple[str, str]]:
    """Each text that a message must not have, in lower case, with what it has instead."""
    for name in sorted(resolved.provided - resolved.failed):
        whole, given = resolved.shown[name].strip(), resolved.values[name].strip()
        items, written = given.split(","), whole.split(",")
        instead = written if len(written) == len(items) else [whole] * len(items)
        for text, shown in ((given, whole), *zip(items, instead, strict=True)):
            if text.strip() not in map(str.strip, written) and _TELLING.fullmatch(text.strip()) is None:
                for form in (printable(text.strip()), quoted(text.strip())[1:-1]):
                    yield form.lower(), printable(shown.strip())


def _placeholders(text: str) -> Iterator[re.Match[str]]:
    """Groups: the provider, the path or None, and the key."""
    return filter(_is_one, _PLACEHOLDER.finditer(text))


def _is_one(found: re.Match[str]) -> bool:
    return found[3] is not None and found[4] != ""


def without_placeholders(text: str, instead: str) -> str:
    """The text with something else in the place of each placeholder."""
    return _PLACEHOLDER.sub(lambda found: instead if _is_one(found) else found[0], text)


def built_in_used(texts: Iterable[str]) -> list[str]:
    """Those of Kafka's own three that placeholders in these texts name."""
    named = {found[1] for text in texts for found in _PLACEHOLDER.finditer(text)}
    return [name for name in BUILT_IN if name in named]


class _NoValue(Exception):
    """Of one placeholder."""

    def __init__(self, text: str, passes: bool) -> None:
        super().__init__(text)
        self.passes = passes


def _slip(name: str, text: str, machine: Machine) -> str | None:
    """`${EMS_KEY}`, as a shell has it: a variable's name without the provider that would look it up."""
    if name.startswith(_NOT_OURS):
        return None
    for found in _SLIP.finditer(text):
        if found[1].isupper() or found[1] in machine.environ:
            return (
                f"{found[0]} names no config provider, so it would be taken as it stands; for the environment variable "
                f"write ${{env:{found[1]}}}."
            )
    return None


def _answers(texts: Iterable[str], machine: Machine) -> Mapping[_Question, Mapping[str, Answer]]:
    """What the providers say to all placeholders."""
    wanted: defaultdict[_Question, dict[str, None]] = defaultdict(dict)
    for text in texts:
        for found in _placeholders(text):
            wanted[found[1], found[2] or ""][found[3]] = None
    providers = built_in(machine) if machine.providers is None else machine.providers
    return {(name, path): _asked(name, path, list(keys), providers) for (name, path), keys in wanted.items()}


def _asked(name: str, path: str, keys: list[str], providers: Mapping[str, Provider]) -> Mapping[str, Answer]:
    if name in providers:
        return providers[name].ask(path, keys)
    known = ", ".join(providers) or "none"
    if name in BUILT_IN:
        listed = ",".join((*providers, name))
        reason = (
            f" names the config provider {name}, which the worker file does not list; write config.providers={listed} "
            "there."
        )
    else:
        reason = (
            f" names the unknown config provider {printable(name)}; known are {known}. Write one of them, or name "
            "yours in config.providers of the worker file."
        )
    return dict.fromkeys(keys, NotGiven(reason))


def _value(found: re.Match[str], answers: Mapping[_Question, Mapping[str, Answer]]) -> str:
    """The value of one placeholder. Raises _NoValue with a reason that names the placeholder alone."""
    answer = answers[found[1], found[2] or ""][found[3]]
    if isinstance(answer, NotGiven):
        raise _NoValue(f"{printable(found[0])}{answer.text}", answer.passes)
    return answer
