"""The address of a folder: `directory:` and an absolute path."""

import posixpath
from typing import Final

from parquet_sink.config.report import quoted

SCHEME: Final = "directory:"


def is_directory(endpoint: str) -> bool:
    """Whether an address names a folder, rightly or not."""
    return endpoint.lower().startswith(SCHEME)


def folder_of(endpoint: str) -> str:
    """The folder of an address in which nothing is wrong. What follows the scheme is taken as it stands."""
    return posixpath.normpath("/" + endpoint[len(SCHEME) :].lstrip("/"))


def wrong(endpoint: str) -> str | None:
    """Why an address names no folder, with the cure; None when it does."""
    path = endpoint[len(SCHEME) :]
    form = "write directory:/path/to/folder, with the whole path"
    if not path.startswith("/") or (path.startswith("//") and not path.startswith("///")):
        return f"{quoted(endpoint)} names no folder; {form}."
    if not path.isprintable():
        return f"{quoted(endpoint)} holds characters that cannot be printed; {form}."
    if folder_of(endpoint) == "/":
        return f"{quoted(endpoint)} is the root of the file system; name a folder for the files."
    return None
