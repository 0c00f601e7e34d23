"""Whether the parts in C may be used: `kafka/native_reader.c`, `convert/json/native_json.c`. Neither is needed."""

import os
from typing import Final

SWITCH: Final = "PARQUET_SINK_NATIVE"
"""Environment variable: 0 leaves all to confluent-kafka and Arrow."""


def is_turned_off() -> bool:
    """Looked at each time."""
    return os.environ.get(SWITCH, "") == "0"
