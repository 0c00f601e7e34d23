"""A config provider and a transform of one's own with secrets, for the canary test: files name them by their path."""

import json
from collections.abc import Collection
from pathlib import Path

from parquet_sink.config.key import Key, Type
from parquet_sink.config.values import Values
from parquet_sink.model.records import VALUES_ONLY
from parquet_sink.transform.protocol import Side
from parquet_sink.transform.records import DecodedRecords


class Vault:
    """Gives what a JSON file has, to who knows its token."""

    keys = (
        Key("file", "Test", Type.STRING, "Which.", required=True, missing="give it."),
        Key("token", "Test", Type.PASSWORD, "Who asks.", required=True, missing="give it."),
    )

    def __init__(self, values: Values) -> None:
        self._file, self._token = Path(values.text("file") or ""), values.secret("token")

    def get(self, path: str, keys: Collection[str]) -> dict[str, str]:
        """Raises what quotes the token, for a path that is called `broken`."""
        assert self._token is not None
        held = json.loads(self._file.read_text(encoding="utf-8"))
        if path == "broken":
            raise RuntimeError(f"{self._token.reveal()} opens {held}")
        return {key: held[path][key] for key in keys if key in held[path]}


class Sealed:
    """Leaves records as they are, or fails with words that quote its key."""

    keys = (
        Key("key", "Test", Type.PASSWORD, "Which.", required=True, missing="give it."),
        Key("fails", "Test", Type.BOOLEAN, "Whether it does.", default=False),
    )
    needs = VALUES_ONLY

    def __init__(self, values: Values, side: Side) -> None:
        self._key, self._fails = values.secret("key"), values.flag("fails")

    def apply(self, records: DecodedRecords) -> DecodedRecords:
        assert self._key is not None
        if self._fails:
            raise RuntimeError(f"{self._key.reveal()} does not open this")
        return records
