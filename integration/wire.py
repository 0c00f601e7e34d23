"""Records as producers write them, with their schemas in the registry for tests.

Avro comes from Confluent's own serializer; JSON and Protobuf are Confluent's framing around what `json` and `protobuf`
write, because Confluent's serializers for those need packages that nothing else here does.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, prefix_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext

from integration.registry import RegistryServer


def client_of(registry: RegistryServer) -> SchemaRegistryClient:
    """Confluent's client, as producers have it."""
    return SchemaRegistryClient({"url": registry.url})


def encode_avro(
    registry: RegistryServer,
    topic: str,
    schema: str,
    values: Iterable[Any],
    references: Sequence[tuple[str, str, int]] = (),
) -> list[bytes]:
    """Records as Confluent's AvroSerializer writes them; it registers the schema under `<topic>-value`."""
    named = [SchemaReference(*each) for each in references]
    with client_of(registry) as client:
        serialize = AvroSerializer(client, Schema(schema, "AVRO", named), conf={"subject.name.strategy.type": "TOPIC"})
        context = SerializationContext(topic, MessageField.VALUE)
        return [_bytes(serialize(value, context)) for value in values]


def encode_json(
    registry: RegistryServer,
    topic: str,
    schema: str,
    values: Iterable[Any],
    references: Sequence[tuple[str, str, int]] = (),
) -> list[bytes]:
    """Records of JSON in Confluent's framing, their schema registered under `<topic>-value`."""
    schema_id = SchemaId("JSON", registry.register(f"{topic}-value", schema, "JSON", references))
    return [framed(json.dumps(value).encode(), schema_id) for value in values]


def encode_protobuf(
    registry: RegistryServer,
    topic: str,
    schema: str,
    values: Iterable[Any],
    references: Sequence[tuple[str, str, int]] = (),
) -> list[bytes]:
    """Messages of one type in Confluent's framing, their .proto text registered under `<topic>-value`."""
    schema_id = registry.register(f"{topic}-value", schema, "PROTOBUF", references)
    return [
        framed(value.SerializeToString(), SchemaId("PROTOBUF", schema_id, message_indexes=message_indexes(value)))
        for value in values
    ]


def message_indexes(message: Any) -> list[int]:
    """Where the type of a message stands in its file: in the file, then in the type around it, and so on."""
    descriptor, indexes = message.DESCRIPTOR, list[int]()
    while True:
        around = descriptor.containing_type
        siblings = around.nested_types if around is not None else descriptor.file.message_types_by_name.values()
        indexes.insert(0, [each.full_name for each in siblings].index(descriptor.full_name))
        if around is None:
            return indexes
        descriptor = around


def framed(payload: bytes, schema_id: SchemaId) -> bytes:
    """A payload behind the magic byte, the id and, for Protobuf, the message indexes."""
    return _bytes(prefix_schema_id_serializer(payload, None, schema_id))


def widened(value: bytes) -> bytes:
    """The same record with an id of 8 bytes, as Apicurio's serializers write it by default."""
    return value[:1] + bytes(4) + value[1:]


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
