"""The transforms of a connector as its file has them: what crosses to the processes that make and run them."""

from dataclasses import dataclass

from parquet_sink.config.class_settings import ClassSettings


@dataclass(frozen=True)
class StepSettings:
    """A transform, and which records it is for: all, those that a predicate chooses, or (negate) all others."""

    transform: ClassSettings
    predicate: ClassSettings | None = None
    negate: bool = False
