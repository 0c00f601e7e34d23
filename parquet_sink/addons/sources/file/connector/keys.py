"""Keys of the file source."""

from typing import Final

from parquet_sink.addons.sources.connector.keys import OWN_KEYS, SOURCE_KEYS
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.kafka.settings import TOPIC

FILE: Final = "The file"

FILE_SOURCE_KEYS: Final[tuple[Key, ...]] = (
    *OWN_KEYS,
    Key(
        "file",
        FILE,
        Type.STRING,
        "The file whose lines are read, and followed as it grows. It need not be there yet. Relative to the folder in "
        "which the program was started; positions are kept under the name as it is written here.",
        default_text="standard input",
        origin=Origin.CONNECT,
    ),
    Key(
        "topic",
        FILE,
        Type.STRING,
        "The topic that lines are sent to.",
        required=True,
        missing="name the topic that lines are sent to.",
        check=TOPIC,
        origin=Origin.CONNECT,
    ),
    Key(
        "batch.size",
        FILE,
        Type.INT,
        "Lines that are taken from the file at once, at most.",
        default=2000,
        minimum=1,
        origin=Origin.CONNECT,
    ),
    *SOURCE_KEYS,
)
