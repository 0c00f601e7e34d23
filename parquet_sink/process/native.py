"""Whether the parts in C may be used: `kafka/native_reader.c`, `convert/json/native_json.c`, and that of Protobuf.

None of them is needed.
"""

import os
from importlib.util import find_spec
from typing import Final

SWITCH: Final = "PARQUET_SINK_NATIVE"
"""Environment variable: 0 leaves all to confluent-kafka, Arrow and Protobuf's library."""
JSON: Final = "parquet_sink.convert.json._native_json"
PROTOBUF: Final = "parquet_sink.addons.formats.protobuf._native_protobuf"


def is_turned_off() -> bool:
    """Looked at each time."""
    return os.environ.get(SWITCH, "") == "0"


def not_built(extension: str) -> str:
    """That it is missing, and the cure; "" where it was built. It is not loaded."""
    missing = find_spec(extension) is None
    return f"{extension} was not built: install a C compiler, then parquet-sink again" if missing else ""
