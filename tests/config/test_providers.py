"""Kafka's config providers: placeholders are filled, and what filled them never shows."""

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.config.providers import Resolved, resolve
from parquet_sink.config.report import Report

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
    ("text", "reason"),
    [
        ("${env:NONE}", "${env:NONE}: the environment variable NONE is not set; set it before the start."),
        (
            "${file:/nope:key}",
            "${file:/nope:key}: the file /nope cannot be read (No such file or directory); correct it.",
        ),
        (
            "${file:/s/p.properties:no}",
            "${file:/s/p.properties:no}: the file /s/p.properties has no key no; correct the path or the key.",
        ),
        ("${file:key}", "${file:key} names no key; write ${file:PATH:KEY}."),
        ("${directory:/s:../p}", "${directory:/s:../p} names no file of a folder; write ${directory:PATH:FILE}."),
        ("${directory:/s:binary}", "${directory:/s:binary}: the file /s/binary is not UTF-8 text; correct it."),
        (
            "${vault:a:b}",
            "${vault:a:b} names the unknown config provider vault; use env, file or directory.",
        ),
        (
            "${file:/s/bad:x}",
            (
                "${file:/s/bad:x}: /s/bad is not in properties form. Invalid file [/s/bad]. Line 1: \\u needs four "
                "hexadecimal digits after it; correct it, or write a backslash as \\\\."
            ),
        ),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_a_problem(text: str, reason: str) -> None:
    """The message names the key, the placeholder, the cause and the cure, and nothing that a provider gave."""
    resolved, report = _resolve(f"${{env:TOKEN}} {text}")
    assert report.problems == [f"Invalid [k]. {reason}"]
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
