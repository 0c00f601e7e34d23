"""One text to a value: the steps are those of Connect's ValueParser."""

from typing import Final

from parquet_sink.convert import java_dates
from parquet_sink.convert.connect_values.kinds import Found, JavaDate, NotHeld, Unfit, common, converted, mapped
from parquet_sink.convert.connect_values.numbers import number
from parquet_sink.convert.connect_values.tokens import JAVA_BLANKS, Tokens
from parquet_sink.convert.decoded import MAX_DEPTH

_LITERALS: Final = {"null": None, "true": Found("boolean", True), "false": Found("boolean", False)}
_TEMPORAL: Final = {10: "date", 13: "time", 24: "timestamp"}
"""By the length of the text."""


class Parser(Tokens):
    """Of one text."""

    def parse(self, *, embedded: bool, depth: int) -> Found | None:
        """None stands for null. Raises Unfit for what is embedded and no value."""
        if not self.has_next():
            return None
        if embedded and self.consume('"'):
            return self._quoted()
        for literal, value in _LITERALS.items():
            if self._literal(literal, embedded=embedded):
                return value
        start = self.mark()
        try:
            if (collection := self._collection(depth + 1)) is not None:
                return collection
        except Unfit:
            self.rewind(start)
        token = self.take()
        trimmed = token.strip(JAVA_BLANKS)
        return self._plain(trimmed, embedded=embedded) if trimmed else Found("string", token)

    def alone(self) -> Found | None:
        """What `parse` gives for a text without delimiters, which is one token."""
        trimmed = self.text.strip(JAVA_BLANKS)
        if trimmed in _LITERALS:
            return _LITERALS[trimmed]
        self.take()
        return self._plain(trimmed, embedded=False) if trimmed else Found("string", self.text)

    def _literal(self, literal: str, *, embedded: bool) -> bool:
        start = self.mark()
        if self.consume(literal) and (embedded or not self.has_next()):
            return True
        self.rewind(start)
        return False

    def _collection(self, depth: int) -> Found | None:
        """None when the next token begins none. Raises Unfit for what is none, though it begins like one."""
        if self.consume("["):
            return self._array(depth)
        return self._map(depth) if self.consume("{") else None

    def _plain(self, token: str, *, embedded: bool) -> Found:
        is_digit = token[0].isdecimal() and token[0] <= "\uffff"
        if is_digit and (temporal := self._temporal(token)) is not None:
            return temporal
        if (is_digit or token[0] in "+-") and (found := number(token)) is not None:
            return found
        if embedded:
            raise Unfit
        return Found("string", self.text)

    def _temporal(self, token: str) -> Found | None:
        """A time or timestamp is five tokens, because colons part them."""
        position = self.mark()
        rest = self.take_many(4)
        found = None if rest is None else _temporal(token + rest)
        if found is None:
            self.rewind(position)
            found = _temporal(token)
        return found

    def _quoted(self) -> Found:
        parts: list[str] = []
        while self.has_next() and not self.consume('"'):
            parts.append(self.take())
        content = "".join(parts)
        return _temporal(content) or Found("string", content)

    def _array(self, depth: int) -> Found:
        if depth > MAX_DEPTH:
            raise NotHeld
        found: list[Found | None] = []
        while self.has_next():
            if self.consume("]"):
                kind = common(found)
                values = [None if one is None else one.value for one in found]
                return Found((kind,), values if kind is None else [converted(kind, value) for value in values])
            if self.consume(","):
                raise Unfit
            found.append(self.parse(embedded=True, depth=depth))
            position = self.mark()
            if self.consume("]"):
                self.rewind(position)
            elif not self.consume(","):
                raise Unfit
        raise Unfit

    def _map(self, depth: int) -> Found:
        if depth > MAX_DEPTH:
            raise NotHeld
        entries: dict[object, tuple[object, object]] = {}
        keys: list[Found | None] = []
        values: list[Found | None] = []
        while self.has_next():
            if self.consume("}"):
                return mapped(common(keys), common(values), list(entries.values()))
            if self.consume(","):
                raise Unfit
            key = self.parse(embedded=True, depth=depth)
            if key is None or not self.consume(":"):
                raise Unfit
            value = self.parse(embedded=True, depth=depth)
            equal = _equal(key)
            first = entries[equal][0] if equal in entries else key.value
            entries[equal] = (first, None if value is None else value.value)
            self.consume(",")
            keys.append(key)
            values.append(value)
        raise Unfit


def _equal(key: Found) -> object:
    """The same for keys that are equal in Java: of dates the instant counts, of numbers the type, too."""
    return key.value.ms if isinstance(key.value, JavaDate) else (repr(key.kind), repr(key.value))


def _temporal(token: str) -> Found | None:
    token = token.replace("\\:", ":")
    kind = _TEMPORAL.get(len(token) + sum(character > "\uffff" for character in token))
    ms = None if kind is None else java_dates.parsed(kind, token)
    return None if kind is None or ms is None else Found(kind, JavaDate(kind, ms))
