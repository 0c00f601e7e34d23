"""Paths to fields in fields, in Kafka Connect's field syntax V2."""

_TICK, _DOT = "`", "."


class IncompletePath(ValueError):
    """A backtick opens a name, and none closes it. The text stands behind the path."""


def steps_of(path: str) -> tuple[str, ...]:
    """The names of a path; dots part them, but between backticks. Raises IncompletePath."""
    steps: list[str] = []
    at = 0
    while at < len(path):
        step, at = _quoted(path, at) if path[at] == _TICK else _plain(path, at)
        steps.append(step)
    if not path or path.endswith(_DOT):
        steps.append("")
    return tuple(steps)


def _plain(path: str, start: int) -> tuple[str, int]:
    end = path.find(_DOT, start)
    return (path[start:], len(path)) if end < 0 else (path[start:end], end + 1)


def _quoted(path: str, start: int) -> tuple[str, int]:
    """A name closes with a backtick before a dot or the end, unless a backslash is before it."""
    name, at = "", start + 1
    begin = at
    while True:
        at = path.find(_TICK, at)
        if at < 0:
            raise _incomplete(start)
        escaped = path[at - 1] == "\\"
        if at == len(path) - 1:
            if escaped:
                raise _incomplete(start)
            return name + path[begin:at], at + 1
        if path[at + 1] == _DOT:
            if not escaped:
                return name + path[begin:at], at + 2
            name += path[begin : at - 1] + _TICK
            begin = at + 1
        at += 1


def _incomplete(start: int) -> IncompletePath:
    return IncompletePath(
        f"opens a name with the backtick at position {start + 1}, and nothing closes it; write another before the next "
        "dot or the end, or a backslash before this one."
    )
