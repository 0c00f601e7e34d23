"""From what the worker did not do to answers: each endpoint has its own words for an unknown connector."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    HerderError,
    InvalidConnector,
    NotPurged,
    OffsetsBusy,
    OffsetsRefused,
    ShuttingDown,
    StoreFailed,
    TimedOut,
    UnknownConnector,
    UnknownTask,
    WrongState,
)
from parquet_sink.worker.rest.call import RestError

NOT_FOUND: Final = "Connector {} not found"
NO_STATUS: Final = "No status found for connector {}"
UNKNOWN: Final = "Unknown connector {}"
UNKNOWN_TO_RESTART: Final = "Unknown connector: {}"
TIMED_OUT: Final = (
    "Request timed out. The worker did not get to it in time; it may still do it, so look before you repeat it."
)
SHUTTING_DOWN: Final = "Worker is shutting down. Nothing was changed; send the request again when it is back."
_SEE: Final = (
    "\nYou can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)
_STATUS: Final[Mapping[type[HerderError], int]] = {
    UnknownTask: 404,
    ConnectorExists: 409,
    WrongState: 400,
    TimedOut: 500,
    ShuttingDown: 503,
    OffsetsBusy: 409,
    NotPurged: 409,
    OffsetsRefused: 500,
    StoreFailed: 500,
}
_MESSAGES: Final[Mapping[type[HerderError], str]] = {TimedOut: TIMED_OUT, ShuttingDown: SHUTTING_DOWN}


@contextmanager
def told(unknown: str = NOT_FOUND) -> Iterator[None]:
    """Within, what the worker raises becomes an answer. unknown: the endpoint's words, `{}` for the name."""
    try:
        yield
    except UnknownConnector as error:
        raise RestError(404, unknown.format(error.name)) from error
    except HerderError as error:
        raise _answer(error) from error


def _answer(error: HerderError) -> RestError:
    if isinstance(error, InvalidConnector):
        return invalid(error.problems)
    return RestError(_STATUS[type(error)], _MESSAGES.get(type(error), str(error)))


def invalid(problems: tuple[str, ...]) -> RestError:
    """A configuration that is refused whole."""
    listed = "\n".join(problems)
    return RestError(
        400,
        f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{listed}{_SEE}",
    )
