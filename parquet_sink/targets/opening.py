"""Targets by their settings: opened anew, or kept by a process from micro-batch to micro-batch."""

from typing import Final

from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.s3.settings import S3Settings
from parquet_sink.targets.settings import TargetSettings
from parquet_sink.targets.target import Target


def open_target(settings: TargetSettings) -> Target:
    """A target of its own for the caller, who closes it. Raises InvalidConfiguration for files that cannot be used.

    Raises SetupError where a package that the target needs is not installed.
    """
    if isinstance(settings, DirectorySettings):  # each loads only what it needs
        from parquet_sink.targets.directory.target import DirectoryTarget

        return DirectoryTarget(settings)
    if isinstance(settings, S3Settings):
        from parquet_sink.targets.s3.target import S3Target

        return S3Target(settings)
    if isinstance(settings, PushSettings):
        from parquet_sink.targets.push.target import PushTarget

        return PushTarget(settings)
    return settings.open()


_targets: Final = PerProcess(open_target)


def target_for(settings: TargetSettings) -> Target:
    """The process's target for these settings: opened when there is none, and kept. Raises as `open_target`."""
    return _targets.get(settings)
