"""The policy for rejected records that a connector's settings ask for."""

from parquet_sink.pipeline.reject_policy import RejectPolicy, StopAtRejected
from parquet_sink.pipeline.settings import SinkSettings


def policy_for(settings: SinkSettings) -> RejectPolicy:
    """What is passed over is parked; where nothing is, the first rejected record stops the connector."""
    if not settings.errors.parks:
        return StopAtRejected()
    from parquet_sink.parked.folder import ParkedFolder  # loads only what this connector needs
    from parquet_sink.pipeline.parked_store import ParkedStore
    from parquet_sink.pipeline.set_aside import SetAsidePolicy

    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    return SetAsidePolicy(settings.errors, ParkedStore(folder))
