"""Sends what Python's client cannot: by librdkafka itself."""

import ctypes
from pathlib import Path

import confluent_kafka


def send_with_header(servers: str, topic: str, name: bytes) -> None:
    """A record without key whose header has this name: by librdkafka itself, as Python's client sends UTF-8 only."""
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*")
    client, text, handle, size = ctypes.CDLL(str(path)), ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
    client.rd_kafka_conf_new.restype = client.rd_kafka_new.restype = handle
    conf, trouble = handle(client.rd_kafka_conf_new()), ctypes.create_string_buffer(512)
    assert client.rd_kafka_conf_set(conf, b"bootstrap.servers", servers.encode(), trouble, size(512)) == 0
    producer = handle(client.rd_kafka_new(0, conf, trouble, size(512)))
    of_topic, of_value, of_header = (1, text(topic.encode())), (4, text(b"v"), size(1)), (9, text(name), text(b"1"))
    assert client.rd_kafka_producev(producer, *of_topic, *of_value, *of_header, ctypes.c_ssize_t(1), 0) == 0
    assert client.rd_kafka_flush(producer, 30_000) == 0
    client.rd_kafka_destroy(producer)
