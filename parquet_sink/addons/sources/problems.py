"""What machine and libraries know against a source before Spark starts."""

from parquet_sink.addons.sources.offsets import file
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.errors import StorageFailed
from parquet_sink.kafka.settings import DeadLetterSettings
from parquet_sink.validate.preflight import Found, check_producer


def problems(settings: SourceSettings, found: Found) -> None:
    """Adds what is wrong with its producer, whose settings are judged like those of dead letters, and its file."""
    check_producer(DeadLetterSettings(settings.label, producer=settings.producer), found)
    if settings.storage is not None and settings.storage.file is not None:
        try:
            file.FileStorage(settings.storage.file).look(settings.name)
        except StorageFailed as error:
            found.worker[f"Invalid [{file.KEY}]. {error}"] = None
