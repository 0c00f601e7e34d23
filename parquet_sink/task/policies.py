"""The policy for rejected records that a connector's settings ask for."""

from parquet_sink.model.rejected import Stage
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.reject_policy import RejectPolicy, StopAtRejected


def policy_for(settings: SinkSettings) -> RejectPolicy:
    """Rejected records go to the dead-letter topic, or are parked; without either the first one stops the connector."""
    return _logged(settings, _parked(settings) if settings.errors.parks else _dead_letters(settings))


def policy_for_records(settings: RecordSinkSettings) -> RejectPolicy:
    """Rejected records go to the dead-letter topic; without one the first stops the connector."""
    return _logged(settings, _dead_letters(settings))


def _logged(settings: SinkSettings | RecordSinkSettings, policy: RejectPolicy) -> RejectPolicy:
    if not settings.errors.log:
        return policy
    from parquet_sink.task.reject_policy import LoggedRejects  # loads only what this connector needs

    return LoggedRejects(policy, settings.name, settings.errors.log_content, classes_of(settings))


def _dead_letters(settings: SinkSettings | RecordSinkSettings) -> RejectPolicy:
    topic = settings.errors.dead_letters
    if topic is None:
        return StopAtRejected()
    from parquet_sink.kafka.dead_letter_headers import HeaderWriter  # loads only what this connector needs
    from parquet_sink.kafka.dead_letters import DeadLetters
    from parquet_sink.task.reject_policy import SetAsidePolicy

    headers = HeaderWriter(settings.name, topic.context, classes_of(settings))
    return SetAsidePolicy(settings.errors, DeadLetters(topic, headers))


def _parked(settings: SinkSettings) -> RejectPolicy:
    from parquet_sink.parked.folder import (
        ParkedFolder,  # loads only what this connector needs
        ParkedStore,
    )
    from parquet_sink.task.reject_policy import SetAsidePolicy

    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    return SetAsidePolicy(settings.errors, ParkedStore(folder))


def classes_of(settings: SinkSettings | RecordSinkSettings) -> dict[Stage, str]:
    """What carries out each stage, by its full name: of a converter the one that stands in a connector file.

    Of a transform it is said by each record that it rejects. Of our own the names stay when classes move: they stand
    in dead letters.
    """
    return {
        Stage.KEY_CONVERTER: settings.key.in_reports if settings.key else "",
        Stage.VALUE_CONVERTER: settings.value.in_reports,
        Stage.HEADER_CONVERTER: settings.header.in_reports,
        Stage.SHAPE: "parquet_sink.shape.shaper.Shaper",
        Stage.OBFUSCATION: "parquet_sink.shape.obfuscation.field_obfuscator.FieldObfuscator",
        Stage.TASK_PUT: "parquet_sink.targets.uploader.OrderedUploader",
    }
