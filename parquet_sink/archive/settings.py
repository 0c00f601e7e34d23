"""Keys and settings of an archive."""

import posixpath
from typing import Final

from parquet_sink.config.declared import Bytes, declared, filled_by, key
from parquet_sink.config.key import Check, Origin, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.plugins import named
from parquet_sink.targets.settings import Target
from parquet_sink.targets.store import StoreSettings
from parquet_sink.targets.target_class import ARCHIVE, keeps_files, of_address

URL: Final = ARCHIVE
REQUIRED: Final = ems("archive.required")
MAX_WAITING_BYTES: Final = ems("archive.max.waiting.bytes")
_FORM: Final = "write s3://bucket/prefix, or directory:/path/to/folder with the whole path"


def _wrong(url: str) -> str | None:
    """Why an address names no archive, with the cure; None when it does."""
    found = of_address(url)
    if found is None or not keeps_files(found):
        return f"{quoted(url)} names no archive; {_FORM}."
    return found.wrong(url)


def _place(values: Values, machine: Machine) -> StoreSettings | None:
    url = values.text(URL) or ""
    found = of_address(url)
    return None if found is None else found.store(url, values, machine, URL)


@declared(group="Archive", origin=Origin.OWN, optional=True)
class ArchiveSettings:
    """connector: whose files are kept, in a folder of its own within the place.

    required: whether a file's offsets are committed only once it is archived; else it is archived behind that.
    waiting: the local folder in which files wait until then; max_waiting_bytes: the most that may wait there.
    """

    place: StoreSettings = key(
        URL,
        "Keep each accepted file there, too, see [archive.md](../how-to/archive.md): `directory:/path/to/folder`, a "
        "folder that is there, or `s3://bucket/prefix`, reached and signed as the `connect.ems.s3.*` keys say; "
        "another place than the target's.",
        check=Check("`s3://bucket/prefix`, or `directory:` and a path", lambda value: _wrong(str(value))),
        default_text="no archive",
        type_=str,
        computed=_place,
    )
    connector: str = filled_by("name")
    waiting: str
    required: bool = key(
        REQUIRED,
        "Commit the offsets of a file only once it is in the archive; an archive that does not take it is treated as a "
        "target that does not. With `false` a file is archived behind that: a failure is logged, and delays nothing.",
        default=True,
        needs=URL,
    )
    max_waiting_bytes: Bytes = key(
        MAX_WAITING_BYTES,
        "With `connect.ems.archive.required=false`: the most that may wait for the archive below "
        "`connect.ems.tmp.dir`, in bytes. Files beyond are not archived, which is logged.",
        default=1_000_000_000,
        minimum=1_000_000,
        needs=URL,
    )

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self.place.address

    def behind(self, target: Target) -> Target:
        """The target, whose accepted files are archived; what does that is loaded here, where there is an archive."""
        made: Target = named("parquet_sink.archive.target:archived")(target, self)
        return made


def why_same(archive: str, target: str | None, given: str = "") -> str | None:
    """Why an address cannot be the archive's beside a target whose files' addresses begin so; None when it can.

    A target whose files begin with nothing in common takes all of a bucket only where the archive does, too. given: the
    archive's address as the file has it, where it is another.
    """
    (there, path), (of_target, other) = _split(archive), _split(target or "")
    if there != of_target or (other == "/" and path != other):
        return None
    given = quoted(given or archive)
    if path == other:
        return f"{given} is the target's own place, so nothing would be kept a second time; name another one."
    if posixpath.commonpath([path, other]) in (path, other):
        return f"{given} and the target's {target} lie one within the other; name a place apart from it."
    return None


def _split(address: str) -> tuple[str, str]:
    """The scheme, with a host or bucket, and the path."""
    scheme, _, rest = address.partition(":")
    host, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return f"{scheme}:{host}", f"/{path.strip('/')}"
