"""Shell completion of the command line: what a shell runs once, and what it asks at each Tab."""

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

SHELLS: Final = ("bash", "zsh", "fish")
_ASKED: Final = "_ARGCOMPLETE"
"""Set by the shell's function when it wants completions; its value is the first word that is ours."""


class ShellCode(argparse.Action):
    """`--completion SHELL`: prints the shell's function, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any, **options: Any) -> None:
        from argcomplete.shell_integration import shellcode

        shell = next(word for word in arguments if word in SHELLS)
        print(shellcode([parser.prog], shell=shell))
        parser.exit()


def complete(parser_for: Callable[[Sequence[str]], argparse.ArgumentParser]) -> None:
    """Answers the shell and ends the process, if a shell asks; else does nothing."""
    if _ASKED not in os.environ:
        return
    import argcomplete
    from argcomplete.lexers import split_line

    words = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))[3]
    argcomplete.autocomplete(parser_for(words[int(os.environ[_ASKED]) :]), always_complete_options=False)
