"""Names: of the uploaded file, and of local folders and files.

Whatever a topic or connector is called, a name made here is one plain path component: it holds no separator, is
neither `.` nor `..`, does not start with a dot, and fits into 255 bytes.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import PurePath
from typing import Final
from urllib.parse import quote, unquote

from parquet_sink.model.frames import FrameSlice

LONGEST_COMPONENT: Final = 200  # characters, all ASCII; leaves room for what is added to a name
MARKER_FILE: Final = ".parquet-sink"
LOCK_FILE: Final = ".lock"
CLAIMS_FOLDER: Final = ".claims"
STATE_FILE: Final = ".state.db"
HISTORY_FILE: Final = ".history.db"
INPUT_FILE: Final = ".standard-input"
PARKED_FOLDER: Final = ".parked"
WAITING_FOLDER: Final = ".archive"
NOTICES_FOLDER: Final = ".notices"
REPLAY_FOLDER: Final = ".replay"
REPLAY_JOURNAL_FOLDER: Final = ".replayed"
SOURCE_MEMORY_FILE: Final = ".source-memory.json"
"""All of these are in `durable_state.DURABLE_STATE`."""

_SENT_NAME: Final = re.compile(r"(topic|connector)-(?>.+?_partition-[0-9]++_).+_bytes-[0-9]++_rows-[0-9]++\.parquet")
_FILE_NAME: Final = re.compile(
    r"topic-(.+)_partition-(\d+)_firstOffset-(\d+)_lastOffset-(\d+)_bytes-(\d+)_rows-(\d+)\.parquet"
)
_OWN_NAME: Final = re.compile(r"parquet-sink-[0-9a-f]{32}-[0-9]{6}\.parquet\.part")


def file_name(topic: str, partition: int, first_offset: int, last_offset: int, size_bytes: int, records: int) -> str:
    """The name under which a file is sent: the same for the same rows, however often they are sent.

    `size_bytes` is the true size of the finished file, `records` counts Kafka records, however many rows each has.
    """
    return (
        f"topic-{_encoded(topic)}_partition-{partition}_firstOffset-{first_offset}_lastOffset-{last_offset}"
        f"_bytes-{size_bytes}_rows-{records}.parquet"
    )


@dataclass(frozen=True)
class NameParts:
    """What the name of a file tells, as `file_name` made it; both offsets are within."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    size_bytes: int
    records: int


def parts_of(name: str) -> NameParts | None:
    """The inverse of `file_name`; None for another name."""
    found = _FILE_NAME.fullmatch(name)
    if found is None:
        return None
    parts = NameParts(unquote(found[1], errors="surrogatepass"), *map(int, found.groups()[1:]))
    again = (parts.topic, parts.partition, parts.first_offset, parts.last_offset, parts.size_bytes, parts.records)
    return parts if file_name(*again) == name else None


def is_frame_file(name: str) -> bool:
    """Whether `frame_file_name` made a name, as far as it tells."""
    return name.startswith("connector-") and "_firstRow-" in name and name.endswith(".parquet")


def frame_file_name(
    connector: str, frame: FrameSlice, first_row: int, last_row: int, size_bytes: int, records: int
) -> str:
    """The name of a file with rows of a DataFrame: the same for the same rows. Rows count from 0 in each Spark task.

    The run is part of it, because batches of another checkpoint count from 0, too.
    """
    batch = "" if frame.batch is None else f"_batch-{frame.batch}"
    return (
        f"connector-{_encoded(connector)}_{frame.label}{batch}_partition-{frame.partition}"
        f"_firstRow-{first_row}_lastRow-{last_row}_bytes-{size_bytes}_rows-{records}.parquet"
    )


def is_sent_name(name: str) -> bool:
    """Whether `file_name` or `frame_file_name` may have made this name."""
    return _SENT_NAME.fullmatch(name) is not None


@lru_cache(maxsize=1_000)
def component(text: str) -> str:
    """`text` as one path component; different texts give different components."""
    encoded = _encoded(text) or "%"
    if encoded.startswith("."):
        encoded = "%2E" + encoded[1:]
    if len(encoded) <= LONGEST_COMPONENT:
        return encoded
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{encoded[: LONGEST_COMPONENT - 33]}-{digest[:32]}"


@lru_cache(maxsize=100)
def connector_folder(base: str, connector: str) -> str:
    """Folder of one connector below `tmp.dir`."""
    return str(PurePath(base) / component(connector))


def history_file(base: str, connector: str) -> str:
    """Where a connector's history is: beside its state."""
    return f"{connector_folder(base, connector)}/{HISTORY_FILE}"


def partition_folder(base: str, connector: str, topic: str, partition: int) -> str:
    """Folder of one topic-partition below `tmp.dir`."""
    return f"{connector_folder(base, connector)}/{component(topic)}/{partition}"


def claim_file(base: str, connector: str, topic: str, partition: int) -> str:
    """Lock file of one topic-partition, beside its folder and not in it: kept files are there for people to read."""
    return f"{connector_folder(base, connector)}/{CLAIMS_FOLDER}/{component(topic)}-{partition}"


def parked_folder(base: str, connector: str) -> str:
    """Folder of a connector's parked records where none is configured: no topic's folder is called so."""
    return f"{connector_folder(base, connector)}/{PARKED_FOLDER}"


def waiting_folder(base: str, connector: str) -> str:
    """Where accepted files wait for the archive, of a connector that does not wait for it."""
    return f"{connector_folder(base, connector)}/{WAITING_FOLDER}"


def notices_folder(base: str, connector: str) -> str:
    """Where notices of accepted files wait for the connector's webhook."""
    return f"{connector_folder(base, connector)}/{NOTICES_FOLDER}"


def replay_folder(base: str, connector: str) -> str:
    """Where a replay of parked records makes the files that it sends, apart from those of the running connector."""
    return f"{connector_folder(base, connector)}/{REPLAY_FOLDER}"


def replay_journal_folder(base: str, connector: str) -> str:
    """What is kept of a replay of topics: its plan, how far it got, and the files that it sends."""
    return f"{connector_folder(base, connector)}/{REPLAY_JOURNAL_FOLDER}"


def attempt_name(attempt: str, number: int) -> str:
    """Local name of the `number`-th file of an attempt.

    `attempt` (32 hexadecimal digits) keeps two attempts at one range apart, which may overlap after a crash.
    """
    name = f"parquet-sink-{attempt}-{number:06d}.parquet.part"
    if not is_own_name(name):
        raise ValueError(f"{attempt!r} is not 32 hexadecimal digits")
    return name


def kept_name(last_offset: int) -> str:
    """Local name of an accepted file that is kept."""
    return f"{last_offset}.parquet"


def is_own_name(name: str) -> bool:
    """Whether `attempt_name` made this name."""
    return _OWN_NAME.fullmatch(name) is not None


def _encoded(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")
