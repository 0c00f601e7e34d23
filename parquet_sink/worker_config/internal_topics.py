"""The topics in which workers keep configurations, keys, statuses and positions: no connector reads or writes them."""

from collections.abc import Iterable

from parquet_sink.config.report import Report, quoted
from parquet_sink.kafka.settings import INTERNAL
from parquet_sink.worker_config.distributed import CONFIG, STATE, STATUS
from parquet_sink.worker_config.offset_storage import TOPIC as OFFSET_TOPIC
from parquet_sink.worker_config.worker import Worker


def find_internal_topics(worker: Worker) -> dict[str, str]:
    """Return the worker's own topics, with the key of the worker file that names each."""
    keys_by_topic: dict[str, str] = {}
    if worker.offset_storage is not None and worker.offset_storage.topic is not None:
        keys_by_topic[worker.offset_storage.topic] = OFFSET_TOPIC
    if (group := worker.distributed) is not None:
        keys_by_topic |= {
            group.state_topic: f"{STATE}topic",
            group.status_topic: f"{STATUS}topic",
            group.offset_topic: OFFSET_TOPIC,
            group.config_topic: f"{CONFIG}topic",
        }
    return keys_by_topic


def refuse_internal_topics(key: str, topics: Iterable[str], worker: Worker, report: Report) -> None:
    """Report each topic of a connector's key that is one of the worker's, or of Kafka.

    Also where the connector names brokers of its own, since these may be the same ones by another address.
    """
    internal = find_internal_topics(worker)
    for topic in topics:
        if topic in internal:
            what = f"an internal topic of the workers ([{internal[topic]}] of the worker file)"
        elif topic in INTERNAL:
            what = "an internal topic of Kafka"
        else:
            continue
        report.problem(key, f"{quoted(topic)} is {what}, which no connector may read or write; name another topic.")
