"""The parser of the command line: help that fits its terminal, and errors in two lines that name what was meant."""

import argparse
import difflib
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from parquet_sink.config.report import printable
from parquet_sink.errors import SetupError

_NEAR: Final = 0.6
_CHOICE, _CHOICES = "invalid choice: ", " (choose from"
"""What stands before and behind a wrong choice, in argparse's words."""
_HELP_AT: Final = 26
"""The column where the help of options begins, unless their names are longer."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal, to 100 columns; epilogs stay as they are written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_AT)
        self._width = min(self._width, 98)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Lines that begin at the left are wrapped, but for those of headings and examples below them."""
        lines = [[line] if line[:1].isspace() else textwrap.wrap(line, width) or [""] for line in text.splitlines()]
        return "\n".join(indent + line for wrapped in lines for line in wrapped)


class Parser(argparse.ArgumentParser):
    """Of the program, of a command, or of one of its actions, which are made by this class, too."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("formatter_class", Formatter)
        super().__init__(*args, **more)
        self._under: Any = None

    def add_subparsers(self, **more: Any) -> Any:
        """As argparse has it; they are looked at later."""
        self._under = super().add_subparsers(**more)
        return self._under

    @property
    def under(self) -> "Mapping[str, Parser]":
        """The parsers of its commands or actions, by name; empty where it has none."""
        found: Mapping[str, Parser] = {} if self._under is None else self._under.choices
        return found

    def error(self, message: str) -> NoReturn:
        """Ends with two lines: what is wrong, and where help is."""
        choice = message.partition(_CHOICE)[2].partition(_CHOICES)[0].strip("'\"")
        if choice and message.startswith("argument COMMAND:"):
            message = f"no such command: {choice}"
        hint = meant(choice, self._choices()) if choice else ""
        print(f"{self.prog}: {printable(message)}{'.' if hint else ''}{hint}", file=sys.stderr)
        print(f"`{self.prog} --help` shows what there is.", file=sys.stderr)
        self.exit(SetupError.exit_status)

    def require_known(self, args: argparse.Namespace, words: Sequence[str]) -> None:
        """Ends with an error where words were left over. args: what the others came to."""
        if not words:
            return
        parser = self.deepest(args)
        options = [word for word in words if word.startswith("-")]
        if options:
            hint = meant(options[0].partition("=")[0], parser.options())
            what = f"{'no such option' if len(options) == 1 else 'no such options'}: {' '.join(options)}"
        else:
            surplus = str(parser.get_default("surplus") or "")
            hint, what = surplus and f" {surplus.format(words[0])}", f"one argument too many: {words[0]}"
        parser.error(f"{what}{'.' if hint else ''}{hint}")

    def deepest(self, args: argparse.Namespace) -> "Parser":
        """The parser of the action that was asked for, else of the command."""
        name = "" if self._under is None else str(getattr(args, self._under.dest, ""))
        return self.under[name].deepest(args) if name in self.under else self

    def options(self) -> list[str]:
        """All that it has, as they are written in full."""
        return [word for action in self._actions for word in action.option_strings if word.startswith("--")]

    def _choices(self) -> Iterator[str]:
        for action in self._actions:
            yield from map(str, action.choices or ())


def meant(word: str, known: Collection[str] | Iterator[str]) -> str:
    """A sentence that names what was meant, with a leading blank; empty when nothing is near."""
    names = {one.lstrip("-"): one for one in known}
    near = difflib.get_close_matches(word.lstrip("-"), list(names), n=1, cutoff=_NEAR)
    return f" Did you mean {names[near[0]]}?" if near else ""


class AllHelp(argparse.Action):
    """`--help-all`: the help, then all keys of files; installed packages are looked at for it alone."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **more)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        from parquet_sink.connectors.documentation import help_text

        parser.print_help()
        print(f"\n{help_text()}")
        parser.exit()
