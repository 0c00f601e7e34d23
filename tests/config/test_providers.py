"""Kafka's config providers: placeholders are filled, and what filled them never shows."""

import posixpath
import re
from collections.abc import Collection
from dataclasses import replace

import pytest

from parquet_sink.config.built_in_providers import DirectoryProvider, EnvironmentProvider, FileProvider
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Answer, NotGiven, Resolved
from parquet_sink.config.providers import resolve, without_provided
from parquet_sink.config.report import Report
from tests.messages import assert_says

CANARY = "canary-7f3a"
FILES = {"/s/p.properties": f"key = {CANARY}\na:b=colon\n", "/s/key": f"{CANARY}\n", "/s/bad": f"x=\\u{CANARY}"}


def _read(path: str) -> str:
    if path == "/s/binary":
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


MACHINE = Machine(read_text=_read, environ={"TOKEN": CANARY, "EMPTY": "", "NESTED": "${env:TOKEN}"})


def _resolve(text: str) -> tuple[Resolved, Report]:
    report = Report()
    return resolve({"k": text}, MACHINE, report), report


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ${x} $y", "plain ${x} $y"),
        ("AppKey ${env:TOKEN}", f"AppKey {CANARY}"),
        ("${env::TOKEN}", CANARY),
        ("${env:EMPTY}x", "x"),
        ("${env:NESTED}", "${env:TOKEN}"),
        ("${file:/s/p.properties:key}/${file:/s/p.properties:key}", f"{CANARY}/{CANARY}"),
        ("${directory:/s:key}", CANARY),
    ],
)
def test_placeholders_are_filled_once(text: str, expected: str) -> None:
    """env, file and directory work anywhere in a value; what they give is not searched again."""
    resolved, report = _resolve(text)
    assert resolved.values == {"k": expected}
    assert report.problems == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${env:NONE}", ("environment variable NONE", "not set", "before the start")),
        ("${file:/nope:key}", ("the file /nope", "No such file or directory", "correct it")),
        ("${file:/s/p.properties:no}", ("the file /s/p.properties", "no key no", "correct the path")),
        ("${file:key}", ("names no key", "write ${file:PATH:KEY}")),
        ("${directory:/s:../p}", ("no file", "write ${directory:PATH:FILE}")),
        ("${directory:/s:binary}", ("the file /s/binary", "not UTF-8 text", "correct it")),
        ("${vault:a:b}", ("unknown config provider vault", "env, file, directory", "in config.providers")),
        ("${file:/s/bad:x}", ("/s/bad", "not in properties form", "Line 1", "\\u needs", "correct it")),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_a_problem(text: str, words: tuple[str, ...]) -> None:
    """The message names the key, the placeholder, the cause and the cure, and nothing that a provider gave."""
    resolved, report = _resolve(f"${{env:TOKEN}} {text}")
    (problem,) = report.problems
    assert_says(problem, "[k]", text, *words)
    assert resolved.failed == {"k"}
    assert CANARY not in repr(resolved) + str(report.problems)


@pytest.mark.parametrize(("text", "name"), [("${EMS_KEY}", "EMS_KEY"), ("AppKey ${EMS_KEY}", "EMS_KEY")])
def test_a_variable_without_its_provider_is_the_slip_it_is(text: str, name: str) -> None:
    """`${NAME}`, as a shell has it, would be sent as it stands: it is told with what to write."""
    resolved, report = _resolve(text)
    assert "k" in resolved.failed
    [problem] = report.problems
    assert f"write ${{env:{name}}}." in problem


def test_a_group_of_a_regular_expression_is_no_slip() -> None:
    """Transforms have `${NAME}` for what a pattern matched."""
    report = Report()
    resolve({"transforms.route.replacement": "${TOPIC}"}, MACHINE, report)
    assert report.problems == []


class Counting:
    """A provider that remembers what it was asked; `no` is not there."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def ask(self, path: str, keys: Collection[str]) -> dict[str, Answer]:
        self.asked.append((path, list(keys)))
        return {key: NotGiven(": it is not there.") if key == "no" else f"{path}-{key}" for key in keys}


def test_a_provider_is_asked_once_for_all_that_is_wanted_of_a_path() -> None:
    """So what is read of one place belongs together; one value that is missing fails its own key alone."""
    vault, report = Counting(), Report()
    properties = {"a": "${v:p:x} and ${v:p:y}", "b": "${v:p:x}", "c": "${v:q:x}", "d": "${v:p:no}", "e": "${v:z}"}
    resolved = resolve(properties, replace(MACHINE, providers={"v": vault}), report)
    assert resolved.values == {"a": "p-x and p-y", "b": "p-x", "c": "q-x", "e": "-z"}
    assert resolved.provided == set(properties)
    (problem,) = report.problems
    assert_says(problem, "[d]", "${v:p:no}", "it is not there.")
    assert vault.asked == [("p", ["x", "y", "no"]), ("q", ["x"]), ("", ["z"])]


def test_of_a_list_only_those_in_it_are_there() -> None:
    """An operator can close the environment, or files, to connectors that come by REST."""
    report = Report()
    resolve({"k": "${env:TOKEN}"}, replace(MACHINE, providers={"v": Counting()}), report)
    (problem,) = report.problems
    assert_says(problem, "[k]", "${env:TOKEN}", "config provider env", "not list", "write config.providers=v,env")


@pytest.mark.parametrize(
    ("path", "allowed", "fine"),
    [
        ("/s/p.properties", ["/s"], True),
        ("/s/p.properties", ["/s/"], True),
        ("/s/p.properties", ["/x", "/s/p.properties"], True),
        ("/s/p.properties", ["/"], True),
        ("/s/p.properties", ["/s/p.prop"], False),
        ("/s/p.properties", ["/s/../t"], False),
        ("/t/../s/p.properties", ["/t"], False),
        ("../s/p.properties", ["/work"], False),
        ("/s/p.properties", [], False),
    ],
)
def test_files_must_be_within_what_is_allowed(path: str, allowed: list[str], fine: bool) -> None:
    """By their paths as they are meant, not as they are written."""
    machine = replace(MACHINE, working_dir="/work", read_text=lambda asked: _read(posixpath.normpath(asked)))
    answer = FileProvider("f", machine, allowed).ask(path, ["key"])["key"]
    if fine:
        assert answer == CANARY
    else:
        assert isinstance(answer, NotGiven)
        assert_says(answer.text, path, "not below config.providers.f.param.allowed.paths", "allow it there")


def test_a_file_of_a_folder_must_be_within_what_is_allowed() -> None:
    """As for a properties file."""
    allowed = DirectoryProvider("d", MACHINE, ["/s"])
    assert allowed.ask("/s", ["key"]) == {"key": CANARY}
    answer = DirectoryProvider("d", MACHINE, ["/t"]).ask("/s", ["key"])["key"]
    assert isinstance(answer, NotGiven)


def test_variables_must_match_what_is_allowed() -> None:
    """The whole of their names."""
    provider = EnvironmentProvider("e", MACHINE, re.compile("TOK"))
    answer = provider.ask("", ["TOKEN"])["TOKEN"]
    assert isinstance(answer, NotGiven)
    assert_says(answer.text, "TOKEN", "not among config.providers.e.param.allowlist.pattern", "allow it there")
    assert EnvironmentProvider("e", MACHINE, re.compile("TOK.*")).ask("", ["TOKEN"]) == {"TOKEN": CANARY}


@pytest.mark.parametrize(
    ("given", "written", "told", "shown"),
    [
        (
            "ab",
            "${env:X}",
            "Invalid [transforms.ab.type]. It is bad.",
            "Invalid [transforms.${env:X}.type]. It is bad.",
        ),
        ("ab", "${env:X}", "Invalid [k]. Did you mean AB?", "Invalid [k]. Did you mean ${env:X}?"),
        ("a,b c", "${env:X}", 'Invalid [k]. "b c" is bad.', 'Invalid [k]. "${env:X}" is bad.'),
        ("a,bc", "a,${env:X}", 'Invalid [k]. "bc" is not "a".', 'Invalid [k]. "${env:X}" is not "a".'),
        ("K bc", "K ${env:X}", 'Invalid [k]. "K bc" is bad.', 'Invalid [k]. "K ${env:X}" is bad.'),
        ("k", "${env:k}", 'Invalid [k]. "${env:k}" is no a.k, nor k.b, nor kk.', None),
        ("true", "${env:X}", "Invalid [k]. It is neither true nor false.", None),
        ("5", "${env:X}", "Invalid [k]. It is more than 5.", None),
        (
            "\x1b" + "y" * 200,
            "${env:X}",
            f'Warning [k]. "\\u001b{"y" * 119}..." is bad.',
            'Warning [k]. "${env:X}" is bad.',
        ),
    ],
)
def test_messages_have_placeholders_for_values(given: str, written: str, told: str, shown: str | None) -> None:
    """Whole, and as items of a list, however they are written; keys, placeholders and plain words stay."""
    resolved = Resolved({"k": given, "l": "bad"}, {"k": written, "l": "bad"}, frozenset({"k"}))
    assert without_provided([told], resolved) == (told if shown is None else shown,)
