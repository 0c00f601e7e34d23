"""Tokens of a text, as Connect's parser takes them: delimiters alone, what is between them, and what is escaped."""

import re
from typing import Final

_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"]|\\\Z)+', re.DOTALL)
JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away."""


class Tokens:
    """Of one text, one after the other; one may have been looked at already."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._next: str | None = None

    def mark(self) -> int:
        """Where the next token begins."""
        return self._at - len(self._next or "")

    def rewind(self, position: int) -> None:
        """Begin again at what `mark` gave."""
        self._at, self._next = position, None

    def has_next(self) -> bool:
        """Whether there is another token."""
        return self._next is not None or self._at < len(self.text)

    def _read(self) -> str:
        found = _TOKEN.match(self.text, self._at)
        token = "" if found is None else found.group()
        self._at += len(token)
        return token

    def take(self) -> str:
        """The next token."""
        token = self._read() if self._next is None else self._next
        self._next = None
        return token

    def take_many(self, count: int) -> str | None:
        """So many tokens as one text; None, and nothing taken, when there are fewer."""
        start = self.mark()
        for _ in range(count):
            if not self.has_next():
                self.rewind(start)
                return None
            self.take()
        return self.text[start : self._at]

    def consume(self, expected: str) -> bool:
        """Takes the next token that is not blank if it is this one; blanks before it are gone in any case."""
        if self._next is None:
            if not self.has_next():
                return False
            self._next = self._read()
        while not self._next.strip(JAVA_BLANKS) and self._at < len(self.text):
            self._next = self._read()
        if self._next.strip(JAVA_BLANKS) != expected:
            return False
        self._next = None
        return True
