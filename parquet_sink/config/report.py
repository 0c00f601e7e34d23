"""Collects what is wrong with a file, so that all of it is reported at once."""

import difflib
import json
from collections.abc import Mapping

_LONGEST_SHOWN = 120


class Report:
    """Problems (the file cannot be used) and warnings (it can), in the order they were found."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def problem(self, key: str, reason: str) -> None:
        self.problems.append(f"Invalid [{printable(key)}]. {reason}")

    def warn(self, key: str, reason: str) -> None:
        self.warnings.append(f"Warning [{printable(key)}]. {reason}")


class PrefixedReport(Report):
    """Passes on to another report, `outer`, with something before each key."""

    def __init__(self, report: Report, prefix: str) -> None:
        self.prefix, self.outer = prefix, report
        self.problems, self.warnings = report.problems, report.warnings

    def problem(self, key: str, reason: str) -> None:
        self.outer.problem(self.prefix + key, reason)

    def warn(self, key: str, reason: str) -> None:
        self.outer.warn(self.prefix + key, reason)


def in_log(warning: str) -> str:
    """A warning as a log line of that level has it: without its first word."""
    return warning.removeprefix("Warning ")


def quoted(text: str) -> str:
    """A value as messages show it: in quotes, control characters escaped, cut when long."""
    cut = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
    return f'"{printable(cut)}"'


def printable(text: str) -> str:
    """The text with what a terminal would not print written as escapes."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def counted(number: int, word: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def did_you_mean(name: str, known: Mapping[str, str], *, cutoff: float) -> str:
    """A sentence naming what the nearest known spelling stands for, with a leading blank; empty when none is near.

    cutoff: 0 (anything is near) to 1 (only the same), as in difflib.
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f" Did you mean {known[near[0]]}?" if near else ""
