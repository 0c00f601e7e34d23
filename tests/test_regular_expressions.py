"""No regular expression of the package takes more than linear time, whatever a record, a file or a server puts into it.

All of them are found by themselves: those that modules hold, and those that stand in a call. Each is given long runs of
what each of its repetitions takes, behind what leads there, with something at the end that does not fit.
"""

import ast
import gc
import importlib
import json
import pkgutil
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_sink
from parquet_sink.config import providers

PACKAGE: Final = Path(parquet_sink.__file__).parent
LENGTH: Final = 10_000
"""Characters of a run: a quadratic search takes a tenth of a second, a linear one a third of a millisecond."""
RUN_CPU_S: Final = 0.04
"""Of the processor, for one run; what is linear needs at most a tenth of it, on a busy machine, too."""
ANYWHERE: Final = ("search", "sub", "subn", "split", "findall", "finditer")
METHODS: Final = ("match", "fullmatch", *ANYWHERE)
USUAL: Final = "a0 \t\n\"'\\/.:-_A%{}[]()é"
NOT_WRITTEN_OUT: Final[Mapping[str, str]] = {
    "cli/documentation.py": "code in the help of options, which is ours",
    "addons/devkit/demo/stage.py": "one of the two that stand above it",
    "kafka/settings.py": "topics.regex",
    "addons/page/frame.py": "paths of screens, which are ours",
}
"""Where a pattern is not written out; a user's own meets names of topics, of 249 characters at most."""
Key = tuple[str, int]
"""A pattern and its flags."""


def held() -> dict[Key, set[str]]:
    """All patterns that modules hold, and how they are used: `match` stands for `fullmatch`, too."""
    found: dict[Key, set[str]] = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "parquet_sink."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        if not str(module.__file__).endswith(".py"):  # built from C
            continue
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        searched = set(re.findall(rf"\b(\w+)(?:\[[^\]]*\])?\.(?:{'|'.join(ANYWHERE)})\(", source))
        for name, value in vars(module).items():
            for one in _patterns(value, 4):
                uses = found.setdefault((_text(one.pattern), one.flags), {"match"})
                uses |= {"search"} if name in searched else set()
    return found


def _patterns(value: object, depth: int) -> Iterator["re.Pattern[Any]"]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and type(value).__module__ in ("builtins", "types") and isinstance(value, Mapping | tuple | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _patterns(one, depth - 1)


def _text(pattern: str | bytes) -> str:
    return pattern if isinstance(pattern, str) else pattern.decode("latin-1")


def calls() -> Iterator[tuple[str, int, str, ast.expr]]:
    """Calls of functions of `re`: path, line, function, and the first argument."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
                yield str(path.relative_to(PACKAGE)), node.lineno, ast.unparse(node.func)[3:], node.args[0]


def every() -> dict[Key, set[str]]:
    """By pattern and flags, how it is used."""
    found = held()
    for _, _, function, first in calls():
        if function in (*METHODS, "compile") and isinstance(first, ast.Constant):
            key = _text(first.value), re.compile(first.value).flags
            found.setdefault(key, set()).add("search" if function in ANYWHERE else "match")
    return found


def attacks(pattern: str, flags: int) -> set[str]:
    """Long runs for each repetition that has no end, or a far one."""
    tree = parser.parse(pattern, flags)
    chars = sorted({*USUAL, *_chars(tree)})
    found = {char * LENGTH for char in chars[:40]}
    for prefix, body in _repetitions(tree, ""):
        runs = {char * LENGTH for char in chars if _fits(body, char)} | {_sample(body) * (LENGTH // 2)}
        found |= {prefix + run + end for run in runs for end in ("", "\0", "\0z")}
        found |= {_long(prefix + middle + _sample(body)) for middle in ("", " ")} | {_long(prefix)}
    return found


def _long(text: str) -> str:
    return text * (LENGTH // max(len(text), 1))


def _chars(tree: Any) -> Iterator[str]:
    for op, value in tree:
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            yield chr(value)
        elif op is ops.IN:
            for kind, one in value:
                if kind is ops.LITERAL:
                    yield chr(one)
                elif kind is ops.RANGE:
                    yield from (chr(one[0]), chr(one[1]))
        else:
            for below in _below(op, value):
                yield from _chars(below)


def _below(op: Any, value: Any) -> Sequence[Any]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is ops.SUBPATTERN:
        return [value[3]]
    if op is ops.BRANCH:
        return list(value[1])
    if op is ops.ATOMIC_GROUP:
        return [value]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [value[1]]
    return [one for one in value[1:] if one is not None] if op is ops.GROUPREF_EXISTS else []


def _repetitions(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """What leads to each long repetition, and its body."""
    for op, value in tree:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) and value[1] > 100:
            yield prefix, value[2]
        for below in _below(op, value):
            yield from _repetitions(below, prefix)
        prefix += _sample([(op, value)])


def _sample(tree: Any) -> str:
    """Something that is matched, as a rule."""
    text = ""
    for op, value in tree:
        if op is ops.LITERAL:
            text += chr(value)
        elif op in (ops.IN, ops.NOT_LITERAL, ops.ANY):
            text += next((char for char in USUAL + "Zz9;" if _fits([(op, value)], char)), "a")
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * max(value[0], 0)
        elif op not in (ops.ASSERT, ops.ASSERT_NOT):
            text += _sample(below[0]) if (below := _below(op, value)) else ""
    return text


def _fits(tree: Any, char: str) -> bool:
    state = parser.State()
    pattern = parser.SubPattern(state, list(tree))
    try:
        from re import _compiler  # type: ignore[attr-defined]

        return bool(_compiler.compile(pattern).fullmatch(char))
    except (IndexError, re.error):
        return False


def feed(patterns: Mapping[Key, set[str]]) -> None:
    """Give each pattern its runs, and say which one is tried: the first that takes too long ends the process."""
    gc.disable()  # its time is not a pattern's
    for (pattern, flags), uses in patterns.items():
        compiled = re.compile(pattern, flags)
        for run in sorted(attacks(pattern, flags)):
            print(json.dumps([pattern, run[:20], run[-20:]]), flush=True)
            signal.setitimer(signal.ITIMER_PROF, RUN_CPU_S)  # ends the process, as nobody handles its signal
            compiled.match(run)
            compiled.fullmatch(run)
            if "search" in uses:
                compiled.search(run)
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(len(patterns))


def test_every_pattern_is_known() -> None:
    """A pattern is a module's, or a text in the call; those of users are not ours."""
    built = {path for path, _, name, given in calls() if name in METHODS and not isinstance(given, ast.Constant)}
    assert built == set(NOT_WRITTEN_OUT)


def fed(patterns: str) -> subprocess.CompletedProcess[str]:
    """What `feed` says of these patterns, an expression; it runs in a process of its own, which it may end."""
    program = f"from tests.test_regular_expressions import *; feed({patterns})"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )


@pytest.mark.in_turn
def test_no_pattern_backtracks_far() -> None:
    """Each is through with runs that would keep a quadratic one busy; one that is not is ended and named."""
    done = fed("every()")
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr)
    assert int(done.stdout.splitlines()[-1]) > 100


@pytest.mark.parametrize("pattern", [r"\s+x", r"(a+)+x"])
def test_a_pattern_that_backtracks_far_is_named(pattern: str) -> None:
    """A quadratic one, an exponential one: the process ends by the timer, and its last words have the pattern."""
    done = fed(repr({(pattern, int(re.UNICODE)): {"match", "search"}}))
    assert done.returncode == -signal.SIGPROF
    assert json.loads(done.stdout.splitlines()[-1])[0] == pattern


@given(st.text("${}:ab\n", max_size=12), st.text("${}:ab", max_size=12))
def test_placeholders_are_kafkas(text: str, more: str) -> None:
    """What config providers are asked for is what Kafka's own expression finds, which may take for ever."""
    whole = text + more
    theirs = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
    mine = [(one.span(), one[1], one[2], one[3]) for one in providers._placeholders(whole)]
    assert mine == [(one.span(), one[1], one[2], one[3]) for one in theirs.finditer(whole)]
