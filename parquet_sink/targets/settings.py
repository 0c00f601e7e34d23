"""What a target is set up with, and how patient uploads are. Durations are milliseconds."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol

from parquet_sink.config.declared import Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems

if TYPE_CHECKING:  # planners know settings, and no targets
    from parquet_sink.targets.target import Target

ERRORS: Final = "Errors and retries"
ErrorPolicy = Literal["THROW", "RETRY", "CONTINUE"]


class TargetSettings(Protocol):
    """What one target is set up with: a frozen dataclass, handed over by value, that opens its target.

    target_table: what the target makes of the files, for messages. Settings may also have, each read by a function
    below: `address`, `place`, `told_by_address`, `problems(environment)`, `needs_timestamp`, `read_outs`.
    """

    @property
    def target_table(self) -> str: ...

    def open(self) -> "Target":
        """A target of its own for the caller, who closes it.

        Raises InvalidConfiguration for what cannot be used, SetupError where a package is not installed.
        """
        ...


OtherTargetSettings = TargetSettings
"""The former name."""


def address_of(target: TargetSettings) -> str:
    """Where files go, without secrets; of settings without an address the name of their class."""
    return str(getattr(target, "address", type(target).__name__))


def place_of(target: TargetSettings) -> str | None:
    """What the addresses of all files begin with; None where files have none."""
    return getattr(target, "place", None)


def told_by_address(target: TargetSettings) -> bool:
    """Whether an address tells where rows go, and not the name of a table."""
    return bool(getattr(target, "told_by_address", False))


def problems_of(target: TargetSettings, environment: Mapping[str, str]) -> Iterable[str]:
    """What is wrong as far as it can be told without connecting or writing, each as `Invalid [key]. reason; cure`."""
    problems = getattr(target, "problems", None)
    return () if problems is None else problems(environment)


def needs_timestamp(target: TargetSettings) -> str:
    """The key and value by which names of files need the timestamp of a first record; empty where they do not."""
    return str(getattr(target, "needs_timestamp", ""))


@declared(group=ERRORS, origin=Origin.EMS)
class RetrySettings:
    """When an upload is tried again. max_retries: attempts in all. put_timeout_ms: for a file with all attempts."""

    error_policy: ErrorPolicy = key(
        ems("error.policy"),
        "What to do when an upload fails. What may pass (no connection, no answer, 408, 429, 5xx) is tried again under "
        "all three, up to `connect.ems.max.retries` attempts and `connect.ems.sink.put.timeout.ms`, and then stops the "
        "connector. A file that the target refuses stops it at once under `THROW`, and is tried again likewise under "
        "`RETRY`. Under `CONTINUE` the records of a file that is refused for what is in it are set aside, as records "
        "that have no row are, and the next file goes on; a wrong key stops the connector all the same. See "
        "[errors.md](errors.md).",
        default="THROW",
    )
    max_retries: int = key(
        ems("max.retries"), "Attempts to upload one file, the first one included.", default=10, minimum=1
    )
    retry_interval_ms: Milliseconds = key(
        ems("retry.interval"),
        "Milliseconds before the second attempt; the pause doubles with each attempt, up to 5 minutes, varied at "
        "random. What the target asks for in `Retry-After`, or with a 429 in `x-ratelimit-reset`, is honoured, up to "
        "the same bound.",
        default=60_000,
        minimum=1_000,
    )
    put_timeout_ms: Milliseconds = key(
        ems("sink.put.timeout.ms"),
        "Bound on the upload of one file with all its attempts and pauses, in milliseconds.",
        default=288_000,
        minimum=1,
    )
