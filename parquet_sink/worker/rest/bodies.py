"""Bodies of requests: JSON as Kafka Connect takes it, and why one cannot be taken."""

import json
from typing import Any, Final, NoReturn

from parquet_sink.config.report import quoted
from parquet_sink.worker.rest.call import NO_BODY, RestError

MOST_BYTES: Final = 1024 * 1024
"""As large as a connector file may be."""
_UNREADABLE: Final = 500
"""Kafka Connect's status for what it cannot read; its clients know no other."""


class NumberText(str):
    """The text of a number, which only some endpoints must tell from text."""

    __slots__ = ()


def read_json(raw: bytes) -> Any:
    """The content: numbers as their text, so that nothing of them is lost; NO_BODY for none. Raises RestError."""
    if not raw.strip():
        return NO_BODY
    try:
        text = raw.decode("utf-8-sig")
        found = json.loads(text, parse_int=NumberText, parse_float=NumberText, parse_constant=_refuse)
        json.dumps(found, ensure_ascii=False).encode()  # half a pair of surrogates is no text
    except UnicodeDecodeError:
        raise unreadable("it is not UTF-8; send it so") from None
    except UnicodeEncodeError:
        raise unreadable("it holds half of a pair of surrogates; write both halves") from None
    except json.JSONDecodeError as error:
        raise unreadable(f"{error.msg} in line {error.lineno}, column {error.colno}; correct it") from None
    except RecursionError:
        raise unreadable("it is nested too deeply; send what the API knows") from None
    except ValueError as error:
        raise unreadable(str(error)) from None
    return found


def unreadable(reason: str) -> RestError:
    """For a body that is not what the endpoint takes. reason: with the cure, without a full stop."""
    return RestError(_UNREADABLE, f"The request's body cannot be used: {reason}.")


def object_of(body: Any, what: str) -> dict[str, Any]:
    """The JSON object that an endpoint takes. Raises RestError."""
    if body is NO_BODY or body is None:
        raise unreadable(f"it is empty; send {what} as a JSON object")
    if not isinstance(body, dict):
        raise unreadable(f"it is no JSON object; send {what} as one")
    return body


def texts_of(found: dict[str, Any], what: str) -> dict[str, str | None]:
    """A configuration: numbers and booleans become texts. Raises RestError for lists and objects within."""
    return {name: _text(name, value, what) for name, value in found.items()}


def _text(name: str, value: Any, what: str) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, str):
        return value
    kind = "list" if isinstance(value, list) else "object"
    raise unreadable(f"{quoted(name)} of {what} is a JSON {kind}; write its value as a text")


def known_fields(found: dict[str, Any], names: tuple[str, ...]) -> None:
    """Refuses a field that the endpoint does not know. Raises RestError."""
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        raise unreadable(f"{quoted(unknown)} is no field of it; the fields are {', '.join(names)}")


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON; write a number or a text")
