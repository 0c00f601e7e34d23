"""A folder as a class of targets: its address, `directory:` and an absolute path, its settings, and its checks."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import declared, filled_by, keys_of, made, names_of
from parquet_sink.config.key import ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.net.settings import ENDPOINT, HttpSettings
from parquet_sink.plugins import named
from parquet_sink.targets.push.settings import TARGET, PushSettings
from parquet_sink.targets.settings import Target
from parquet_sink.targets.store import FileStore
from parquet_sink.targets.target_class import PUSH, TYPE, TargetClass, archive_keys

SCHEME: Final = "directory:"
LONGEST_NAME: Final = 255
"""Bytes, on most file systems."""
_FORM: Final = "write directory:/path/to/folder, with the whole path"


def folder_of(address: str) -> str:
    """The folder of an address in which nothing is wrong. What follows the scheme is taken as it stands."""
    return posixpath.normpath("/" + address[len(SCHEME) :].lstrip("/"))


@dataclass(frozen=True)
class FolderStore:
    """A folder that keeps files. folder: absolute, and there already. key: of the file that names it."""

    problems_may_pass: ClassVar[bool] = True
    longest_name: ClassVar[int] = LONGEST_NAME
    folder: str
    key: str = ENDPOINT

    @property
    def address(self) -> str:
        """The folder with the scheme."""
        return SCHEME + self.folder

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """Why files cannot be put there, as far as it can be told without writing."""
        if (reason := named("parquet_sink.targets.directory.target:unusable")(self.folder, self.key)) is not None:
            yield f"Invalid [{self.key}]. {reason}"

    def open(self) -> FileStore:
        store: FileStore = named("parquet_sink.targets.directory.target:DirectoryStore")(self)
        return store


@declared(group="The target", optional=True)
class DirectorySettings:
    """folder: absolute, and there already. target_table: names the folder within it that the files are in."""

    problems_may_pass: ClassVar[bool] = True
    longest_name: ClassVar[int] = LONGEST_NAME
    folder: str = filled_by(ENDPOINT, computed=lambda values, machine: folder_of(values.text(ENDPOINT) or ""))
    target_table: str = filled_by(ems("target.table"), missing="give the name of the table that the target fills.")

    @property
    def address(self) -> str:
        """The folder with the scheme."""
        return SCHEME + self.folder

    place = address

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """As of a store."""
        return FolderStore(self.folder).problems(environment)

    def open(self) -> Target:
        target: Target = named("parquet_sink.targets.directory.target:DirectoryTarget")(self)
        return target


class Directory(TargetClass):
    """Files go into a folder of this machine."""

    title = "a folder"
    keys = ()
    settings_class = DirectorySettings

    def check(self, values: Values, report: Report) -> None:
        """A folder needs nothing of HTTP; an archive in a bucket beside it does, and a webhook for notices."""
        check_keys(DirectorySettings, values, report)
        length = {ems("data.fallback.varchar.length")}
        archived = archive_keys(values)
        posted = names_of(HttpSettings) if ems("notify.url") in values.given else frozenset[str]()
        used = archived | posted | (length if ems("flattener.jsonblob.chunks") in values.given else set[str]())
        why = "nothing is sent to a push API" if archived or posted else "nothing is sent over HTTP"
        for one in (*keys_of(PushSettings, TARGET), *keys_of(HttpSettings)):
            if one.name in values.given - used and values.differs(one):
                report.warn(one.name, f"It has no effect: {ENDPOINT} is a folder, and {why}.")

    def settings(self, values: Values, machine: Machine) -> DirectorySettings:
        return made(DirectorySettings, values, machine)

    def wrong(self, address: str) -> str | None:
        path = address[len(SCHEME) :]
        if not path.startswith("/") or (path.startswith("//") and not path.startswith("///")):
            return f"{quoted(address)} names no folder; {_FORM}."
        if not path.isprintable():
            return f"{quoted(address)} holds characters that cannot be printed; {_FORM}."
        if folder_of(address) == "/":
            return f"{quoted(address)} is the root of the file system; name a folder for the files."
        return None

    def at(self, address: str, below: str = "") -> Mapping[str, str]:
        return {TYPE: PUSH, ENDPOINT: address}

    def place(self, values: Values) -> str:
        return SCHEME + folder_of(values.text(ENDPOINT) or "")

    def kept_by(self, values: Values) -> str:
        return f"{ENDPOINT}={values.text(ENDPOINT)}"

    def store(self, address: str, values: Values, machine: Machine, key: str = ENDPOINT) -> FolderStore:
        return FolderStore(folder_of(address), key)
