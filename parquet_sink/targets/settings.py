"""What a target is set up with: which one it is, and how patient uploads are. Durations are milliseconds."""

from typing import TYPE_CHECKING, Final, Literal, Protocol

from parquet_sink.config.declared import Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3.settings import S3Settings

if TYPE_CHECKING:  # planners know settings, and no targets
    from parquet_sink.targets.target import Target

ERRORS: Final = "Errors and retries"
ErrorPolicy = Literal["THROW", "RETRY", "CONTINUE"]


class OtherTargetSettings(Protocol):
    """Settings of a target that a connector class of another package brings: a frozen dataclass, handed over by value.

    target_table: what the target makes of the files, for messages.
    """

    @property
    def target_table(self) -> str: ...

    def open(self) -> "Target":
        """A target of its own for the caller, who closes it. Raises InvalidConfiguration."""
        ...


TargetSettings = PushSettings | DirectorySettings | S3Settings | OtherTargetSettings


def address_of(target: TargetSettings) -> str:
    """Where files go, without secrets; of a target of another package the name of its settings' class."""
    if isinstance(target, PushSettings):
        return target.endpoint
    if isinstance(target, S3Settings):
        return target.address
    return f"directory:{target.folder}" if isinstance(target, DirectorySettings) else type(target).__name__


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
