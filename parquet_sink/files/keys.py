"""Keys of flushes and of local Parquet files."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems

FLUSH: Final = "Flush: when a file is uploaded"
FILES: Final = "Local Parquet files"

FLUSH_KEYS: Final = (
    Key(
        ems("commit.size.bytes"),
        FLUSH,
        Type.LONG,
        "Upload when a topic-partition has records for a Parquet file of this size. The finished file exceeds it by at "
        "most one row group.",
        required=True,
        missing="give the size in bytes at which a file is uploaded, for example 10000000.",
        minimum=100_000,
    ),
    Key(
        ems("commit.records"),
        FLUSH,
        Type.INT,
        "Upload when a topic-partition has this many records.",
        required=True,
        missing="give the number of records at which a file is uploaded, for example 100000.",
        minimum=1,
    ),
    Key(
        ems("commit.interval.ms"),
        FLUSH,
        Type.LONG,
        "Upload when the oldest record of a topic-partition that is not uploaded yet arrived this many "
        "milliseconds ago, "
        "on idle and busy topics alike. The EMS connector wants more than 1000; here 1000 itself is possible.",
        required=True,
        missing="give the age in milliseconds at which a file is uploaded, for example 30000.",
        minimum=1_000,
    ),
)

FILE_KEYS: Final = (
    Key(
        ems("tmp.dir"),
        FILES,
        Type.STRING,
        "Folder for Parquet files until they are uploaded; made when it is not there. Only files of the sink's own are "
        "ever removed from it.",
        default_text="the system's temporary folder; in a worker `connectors` below `config.storage.folder`",
    ),
    Key(
        ems("inmemfs.enable"),
        FILES,
        Type.BOOLEAN,
        "Keep Parquet files in a memory-backed folder (`/dev/shm`) in place of `connect.ems.tmp.dir`; kept "
        "files are off "
        "then. An error on a machine that has no such folder.",
        default=False,
    ),
    Key(
        ems("parquet.compression.codec"),
        FILES,
        Type.STRING,
        "How Parquet files are compressed.",
        default="snappy",
        default_text="`snappy`; `none` for S3",
        choices=("snappy", "zstd", "gzip", "lz4", "none"),
        origin=Origin.OWN,
    ),
    Key(
        ems("parquet.row.group.size.bytes"),
        FILES,
        Type.INT,
        "Size of a row group in bytes; more than `connect.ems.commit.size.bytes` is lowered to that. The EMS "
        "connector's "
        "default of 10240 makes files three times as large as they need be.",
        default_text="as large as is useful",
        minimum=1,
    ),
    Key(
        ems("debug.keep.parquet.files"),
        FILES,
        Type.BOOLEAN,
        "Keep a file after its upload in place of deleting it.",
        default=False,
    ),
)
