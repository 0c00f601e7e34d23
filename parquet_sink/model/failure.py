"""Why a connector cannot go on, by value."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Why the connector cannot go on: the error's class by name, and the words for the operator."""

    kind: str
    message: str
