"""The storage of positions that settings name."""

from parquet_sink.addons.sources.offsets.storage import OffsetStorage, OffsetStorageSettings


def opened(settings: OffsetStorageSettings) -> OffsetStorage:
    """Nothing is read, or connected to, before it is asked for."""
    if settings.topic is not None:
        from parquet_sink.addons.sources.offsets.topic import TopicStorage  # loads Kafka's client

        return TopicStorage(settings, settings.topic)
    from parquet_sink.addons.sources.offsets.file import FileStorage

    assert settings.file is not None, "the configuration demands one of them"
    return FileStorage(settings.file)
