"""Keys and settings of local Parquet files: where and how they are written. Sizes are bytes."""

from typing import ClassVar, Final, Literal

from parquet_sink.config.declared import LocalPath, ShortBytes, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.values import Values

Codec = Literal["snappy", "zstd", "gzip", "lz4", "none"]

TMP_DIR: Final = ems("tmp.dir")
IN_MEMORY: Final = ems("inmemfs.enable")
CODEC: Final = ems("parquet.compression.codec")
ROW_GROUP: Final = ems("parquet.row.group.size.bytes")
KEEP: Final = ems("debug.keep.parquet.files")
_FILE_SIZE: Final = ems("commit.size.bytes")


def _tmp_dir(values: Values, machine: Machine) -> str:
    if values.flag(IN_MEMORY) and machine.memory_dir is not None:
        return machine.memory_dir
    return values.text(TMP_DIR) or machine.tmp_dir


def _row_group(values: Values, machine: Machine) -> int | None:
    """No more than a whole file."""
    file = values.number(_FILE_SIZE) if values.knows(_FILE_SIZE) else None
    group = values.number(ROW_GROUP)
    return group if group is None or file is None else min(group, file)


@declared(group="Local Parquet files", origin=Origin.EMS)
class FileSettings:
    """Where and how local Parquet files are written. `row_group_size_bytes` None: as large as is useful."""

    tmp_dir: LocalPath = key(
        TMP_DIR,
        "Folder for Parquet files until they are uploaded; made when it is not there. Only files of the sink's own are "
        "ever removed from it.",
        default_text="the system's temporary folder; in a worker `connectors` below `config.storage.folder`",
        computed=_tmp_dir,
    )
    in_memory: ClassVar[bool] = key(
        IN_MEMORY,
        "Keep Parquet files in a memory-backed folder (`/dev/shm`) in place of `connect.ems.tmp.dir`; kept files are "
        "off then. An error on a machine that has no such folder. Workers of a group have a folder each.",
        default=False,
    )
    codec: Codec = key(
        CODEC,
        "How Parquet files are compressed.",
        default="snappy",
        default_text="`snappy`; `none` for S3",
        origin=Origin.OWN,
    )
    row_group_size_bytes: ShortBytes | None = key(
        ROW_GROUP,
        "Size of a row group in bytes; more than `connect.ems.commit.size.bytes` is lowered to that. The EMS "
        "connector's default of 10240 makes files three times as large as they need be.",
        default=None,
        default_text="as large as is useful",
        minimum=1,
        computed=_row_group,
    )
    keep_files: bool = key(
        KEEP,
        "Keep a file after its upload in place of deleting it.",
        default=False,
        computed=lambda values, machine: values.flag(KEEP) and not values.flag(IN_MEMORY),
    )
