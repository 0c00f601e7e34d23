"""Records with a text that must not be seen, in several formats."""

import json
from typing import Any, Final

from integration.formats.records import record
from integration.registry import RegistryServer
from integration.wire import encode_avro, encode_json

CLEAR: Final = "canary-4711-"
TEXT: Final[dict[str, Any]] = {"type": "string"}


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def _struct(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": [{**schema, "field": name} for name, schema in fields.items()]}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


PERSON_JSON: Final = _object(who=_object(name=TEXT, nicks=_array(TEXT)), friends=_array(_object(name=TEXT)), open=TEXT)
PERSON_CONNECT: Final = _struct(
    who=_struct(name=TEXT, nicks=_array(TEXT)),
    friends=_array(_struct(name=TEXT)),
    open=TEXT,
)
WHO: Final = record("Who", name="string", nicks={"type": "array", "items": "string"})
PERSON: Final = record(
    "Person", who=WHO, friends={"type": "array", "items": record("Friend", name="string")}, open="string"
)


def people(format_: str, registry: RegistryServer, topic: str) -> list[bytes]:
    """Two equal records with a text to hide in a field, in a list, and in the records of a list."""
    names = [f"{CLEAR}{n}" for n in (1, 2, 3, 4, 5)]
    friends = [{"name": name} for name in names[3:]]
    person = {"who": {"name": names[0], "nicks": names[1:3]}, "friends": friends, "open": "seen"}
    if format_ == "avro":
        return encode_avro(registry, topic, json.dumps(PERSON), [person] * 2)
    if format_ == "json_schema":
        return encode_json(registry, topic, json.dumps(PERSON_JSON), [person] * 2)
    if format_ == "xml":
        nicks = "".join(f"<nicks>{name}</nicks>" for name in names[1:3])
        others = "".join(f"<friends><name>{name}</name></friends>" for name in names[3:])
        return [f'<p open="seen"><who name="{names[0]}">{nicks}</who>{others}</p>'.encode()] * 2
    document = {"schema": PERSON_CONNECT, "payload": person} if format_ == "envelope" else person
    return [json.dumps(document).encode()] * 2
