"""What a test asks of a message: key, value, cause and cure, in whatever sentence they stand."""

import re


def saying(*parts: str) -> str:
    """An expression for `pytest.raises(..., match=)`: each part stands in the message, as it is given, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(part)})" for part in parts)


def assert_says(message: object, *parts: str) -> None:
    """Each part stands in the message (an error, a log line, what a command printed), in any order."""
    text = str(message)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in:\n{text}"


def assert_line_says(text: str, *parts: str, times: int | None = None) -> None:
    """One line of what a command printed or logged has all the parts, or as many lines as are named."""
    found = [line for line in text.splitlines() if all(part in line for part in parts)]
    assert found if times is None else len(found) == times, f"{len(found)} lines have all of {parts}:\n{text}"
