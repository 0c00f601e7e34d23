"""Keys of a bucket: where it is, as whom requests are signed, and how objects are called."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.targets.s3.settings import LARGEST_PUT_BYTES, SMALLEST_PART_BYTES
from parquet_sink.targets.s3.value_checks import BUCKET_NAME, CREDENTIAL, PREFIX_TEMPLATE, REGION_NAME, S3_URL

S3: Final = "S3"

BUCKET: Final = ems("s3.bucket")
ENDPOINT: Final = ems("s3.endpoint")
REGION: Final = ems("s3.region")
PREFIX: Final = ems("s3.prefix")
ACCESS_KEY: Final = ems("s3.access.key.id")
SECRET_KEY: Final = ems("s3.secret.access.key")
SESSION_TOKEN: Final = ems("s3.session.token")
PROFILE: Final = ems("s3.profile")
PATH_STYLE: Final = ems("s3.path.style")
MULTIPART: Final = ems("s3.multipart.threshold.bytes")
PART: Final = ems("s3.multipart.part.bytes")

S3_KEYS: Final = (
    Key(
        BUCKET,
        S3,
        Type.STRING,
        "Bucket that takes the files; it must be there.",
        check=BUCKET_NAME,
        default_text="required for S3",
        origin=Origin.OWN,
    ),
    Key(
        PREFIX,
        S3,
        Type.STRING,
        "What stands before a file's name in its object's name: a path, with `{topic}`, `{partition}`, "
        "`{first_offset}`, `{table}` and, of the first record's timestamp in UTC, `{yyyy}`, `{MM}`, `{dd}`, `{HH}`. "
        "Such as `lake/topic={topic}/date={yyyy}-{MM}-{dd}`; see [s3.md](s3.md).",
        check=PREFIX_TEMPLATE,
        default_text="`{topic}`",
        default="{topic}",
        origin=Origin.OWN,
    ),
    Key(
        ENDPOINT,
        S3,
        Type.STRING,
        "Address of an S3-compatible server, such as `https://minio.example.com:9000`.",
        check=S3_URL,
        default_text="AWS",
        origin=Origin.OWN,
    ),
    Key(
        REGION,
        S3,
        Type.STRING,
        "Region of the bucket, which requests are signed for.",
        check=REGION_NAME,
        default_text="the profile's, else `us-east-1`",
        origin=Origin.OWN,
    ),
    Key(
        PATH_STYLE,
        S3,
        Type.BOOLEAN,
        "Name the bucket in the path of a request and not in the host's name.",
        default_text="`true` with `connect.ems.s3.endpoint`, else `false`",
        origin=Origin.OWN,
    ),
    Key(
        ACCESS_KEY,
        S3,
        Type.STRING,
        "Id of the access key that requests are signed with.",
        check=CREDENTIAL,
        default_text="found by boto3: environment, profile, role of the machine",
        origin=Origin.OWN,
    ),
    Key(
        SECRET_KEY,
        S3,
        Type.PASSWORD,
        "The secret of that access key. Never printed or sent; best given by a config provider, see Secrets.",
        check=CREDENTIAL,
        origin=Origin.OWN,
    ),
    Key(
        SESSION_TOKEN,
        S3,
        Type.PASSWORD,
        "Token of a temporary access key.",
        check=CREDENTIAL,
        needs=ACCESS_KEY,
        origin=Origin.OWN,
    ),
    Key(
        PROFILE,
        S3,
        Type.STRING,
        "Profile of `~/.aws/config` and `~/.aws/credentials` whose credentials are used.",
        origin=Origin.OWN,
    ),
    Key(
        MULTIPART,
        S3,
        Type.LONG,
        "A file of so many bytes or more is sent in parts.",
        default=64 << 20,
        minimum=SMALLEST_PART_BYTES,
        maximum=LARGEST_PUT_BYTES,
        origin=Origin.OWN,
    ),
    Key(
        PART,
        S3,
        Type.LONG,
        "Size of a part in bytes; of a file of more than 10,000 parts they are larger.",
        default=16 << 20,
        minimum=SMALLEST_PART_BYTES,
        maximum=LARGEST_PUT_BYTES,
        origin=Origin.OWN,
    ),
)
