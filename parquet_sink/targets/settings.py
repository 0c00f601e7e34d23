"""What a target is set up with: which one it is, and how patient uploads are. Durations are milliseconds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3.settings import S3Settings

if TYPE_CHECKING:  # planners know settings, and no targets
    from parquet_sink.targets.target import Target

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


@dataclass(frozen=True)
class RetrySettings:
    """When an upload is tried again. max_retries: attempts in all. put_timeout_ms: for a file with all attempts."""

    error_policy: ErrorPolicy = "THROW"
    max_retries: int = 10
    retry_interval_ms: int = 60_000
    put_timeout_ms: int = 288_000
