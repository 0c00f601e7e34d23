"""The text of `sasl.jaas.config`: one login module with its options, by the rules of Kafka's Java client.

`CLASS FLAG NAME=VALUE ... ;` with values as words or in quotation marks, `//` and `/* */` as comments. No error shows
anything of the text.
"""

import re
from dataclasses import dataclass
from typing import Final

FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
      | "(?P<double>(?:[^"\\\n]|\\.)*)"
      | '(?P<single>(?:[^'\\\n]|\\.)*)'
      | (?P<word>[^\s=;"']+)
      | (?P<mark>[=;])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True)
class LoginModule:
    """A login module by its class, and its options: passwords are among them."""

    name: str
    options: dict[str, str]

    @property
    def short(self) -> str:
        """The class's name without its package; programs that shade Kafka move the package."""
        return self.name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {sorted(self.options)})"


def parse(text: str) -> LoginModule:
    """The one login module of a text. Raises ValueError with what is wrong, as the begin of a sentence."""
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("It names no login module")
    if len(tokens) < 2 or str(tokens[1][1]).lower() not in FLAGS:
        raise ValueError("After the login module's class comes a flag: write `required`")
    options, end = _options(tokens, 2)
    if end != len(tokens):
        raise ValueError("It has more than one login module; keep one")
    return LoginModule(tokens[0][1], options)


def _options(tokens: list[tuple[str, str]], start: int) -> tuple[dict[str, str], int]:
    """The options from a token on, and where the next module would begin."""
    options: dict[str, str] = {}
    at = start
    while at < len(tokens) and tokens[at] != ("mark", ";"):
        triple = tokens[at : at + 3]
        if len(triple) < 3 or triple[1] != ("mark", "=") or triple[2][0] == "mark":
            number = len(options) + 1
            raise ValueError(f"Option {number} is not of the form name=value; put values in quotation marks")
        options[triple[0][1]] = triple[2][1]
        at += 3
    if at == len(tokens):
        raise ValueError("It does not end with a semicolon")
    return options, at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    """Words, quoted texts without their escapes, and marks."""
    found: list[tuple[str, str]] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError("A quotation mark in it has no partner")
        at = token.end()
        if token["mark"]:
            found.append(("mark", token["mark"]))
        elif token["word"] is not None:
            found.append(("text", token["word"]))
        elif token["comment"] is None:
            quoted = token["double"] if token["double"] is not None else token["single"]
            found.append(("text", _ESCAPE.sub(_unescaped, quoted)))
    return found


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _CONTROLS.get(code, code)
