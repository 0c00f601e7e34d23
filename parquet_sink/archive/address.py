"""The address of an archive: `directory:` and a path, or `s3://bucket/prefix`."""

from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.report import quoted
from parquet_sink.targets.directory import address
from parquet_sink.targets.s3.value_checks import BUCKET_NAME

SCHEME: Final = "s3:"
FORM: Final = "write s3://bucket/prefix, or directory:/path/to/folder with the whole path"


def is_bucket(url: str) -> bool:
    """Whether an address names a bucket, rightly or not."""
    return url.lower().startswith(SCHEME)


def bucket_of(url: str) -> tuple[str, str]:
    """Bucket and prefix of an address in which nothing is wrong."""
    bucket, _, prefix = url[len("s3://") :].partition("/")
    return bucket, prefix.strip("/")


def wrong(url: str) -> str | None:
    """Why it names no archive, with the cure; None when it does."""
    if address.is_directory(url):
        return address.wrong(url)
    if not is_bucket(url) or not url[len(SCHEME) :].startswith("//"):
        return f"{quoted(url)} names no archive; {FORM}."
    if "@" in urlsplit(url).netloc:
        return "It holds a user or password; remove them, credentials have keys of their own."
    bucket, prefix = bucket_of(url)
    if (reason := BUCKET_NAME.test(bucket)) is not None:
        return reason
    if not prefix.isprintable() or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        return f"The prefix of {quoted(url)} has an empty part, dots, or what cannot be printed; {FORM}."
    return None
