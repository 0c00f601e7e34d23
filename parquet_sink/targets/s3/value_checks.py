"""The checks of single values of a bucket's keys: each says why a value is wrong and the cure, or None."""

import re
from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.key import Check, Value
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret
from parquet_sink.targets.s3 import prefix

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_REGION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")


def _bucket(value: Value) -> str | None:
    text = str(value)
    if text.lower().startswith(("s3:", "s3a:", "http:", "https:", "arn:")):
        return f"{quoted(text)} is an address; write the bucket's name alone."
    if _BUCKET.fullmatch(text) is None or ".." in text:
        return f"{quoted(text)} is no name of a bucket; write 3 or more of letters, digits, dots and hyphens."
    return None


def _region(value: Value) -> str | None:
    if _REGION.fullmatch(str(value)) is None:
        return f"{quoted(str(value))} is no region; write one such as eu-central-1."
    return None


def _url(value: Value) -> str | None:
    text, form = str(value), "write it as https://host:port."
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        return f"It is no valid URL; {form}"
    if "@" in url.netloc:
        return "It holds a user or password; remove them, credentials have keys of their own."
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not _plain(text):
        return f"{quoted(text)} is no valid URL; {form}"
    if url.path.strip("/") or url.query or url.fragment:
        return f"{quoted(text)} has a path; {form} Bucket and prefix have keys of their own."
    return None


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _credential(value: Value) -> str | None:
    text = value.reveal() if isinstance(value, Secret) else str(value)
    if not _plain(text):
        return "It holds characters that no credential of S3 has; write printable ASCII without blanks."
    return None


BUCKET_NAME: Final = Check("a bucket's name", _bucket)
REGION_NAME: Final = Check("letters, digits, hyphens", _region)
S3_URL: Final = Check("a URL without a path: https, or http to a loopback address", _url)
PREFIX_TEMPLATE: Final = Check("names between slashes, fields in braces", lambda value: prefix.wrong(str(value)))
CREDENTIAL: Final = Check("printable ASCII without blanks", _credential)
