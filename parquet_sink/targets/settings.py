"""What a target is set up with: which one it is, and how patient uploads are. Durations are milliseconds."""

from dataclasses import dataclass
from typing import Literal

from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings

ErrorPolicy = Literal["THROW", "RETRY"]
TargetSettings = PushSettings | DirectorySettings


@dataclass(frozen=True)
class RetrySettings:
    """When an upload is tried again. max_retries: attempts in all. put_timeout_ms: for a file with all attempts."""

    error_policy: ErrorPolicy = "THROW"
    max_retries: int = 10
    retry_interval_ms: int = 60_000
    put_timeout_ms: int = 288_000
