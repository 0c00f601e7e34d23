"""Schemas of a folder in place of a registry's: a file for each, named by its id."""

import os
from typing import Final

from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.registry.settings import SchemaKind

SCHEME: Final = "folder:"
"""What the address of such a registry begins with; the folder's path follows."""
_KINDS: Final[dict[str, SchemaKind]] = {"avsc": "AVRO", "proto": "PROTOBUF", "json": "JSON"}


class FolderRegistry:
    """`ID.avsc`, `ID.proto` and `ID.json` of a folder, each whole in its file."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def get(self, schema_id: int) -> RegisteredSchema:
        """As `convert.registry.registered.Schemas` says."""
        for ending, kind in _KINDS.items():
            try:
                with open(os.path.join(self._folder, f"{schema_id}.{ending}"), encoding="utf-8") as file:
                    return RegisteredSchema(schema_id, kind, file.read())
            except FileNotFoundError:
                continue
        raise InvalidValue(
            f"schema id {schema_id} is not in {self._folder}; put it there as {schema_id}.avsc, .proto or .json"
        )
