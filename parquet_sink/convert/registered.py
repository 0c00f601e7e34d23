"""Records that name a schema in the registry: the wire format, one decoder for each schema. Pure."""

from dataclasses import dataclass
from typing import Literal, Protocol

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]


@dataclass(frozen=True)
class Referenced:
    """A schema that another one refers to. name: as the reference has it (a full name, a file name, a URL)."""

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as it was registered.

    references: everything it refers to, directly or through others, each after those that it refers to itself.
    """

    id: int
    kind: SchemaKind
    text: str
    references: tuple[Referenced, ...] = ()


class Schemas(Protocol):
    """Where schemas come from."""

    def get(self, schema_id: int) -> RegisteredSchema:
        """Raises InvalidValue for an id that is not registered, RegistryFailed when nobody answers."""
        ...
