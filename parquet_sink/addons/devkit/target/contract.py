"""The push API's contract as values: what an upload asks for, what is stored of it, what is answered.

Pure: no network, no file system, no clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol
from uuid import NAMESPACE_URL, uuid5

UPLOAD_PATH: Final = "/continuous-batch-processing/api/v1/{pool}/items"
DEFAULT_AUTHORIZATION: Final = "AppKey demo"
MAX_VARCHAR_LENGTH: Final = 65_000
MAX_NAME_LENGTH: Final = 1_024

UpsertState = Literal["waiting", "upserted", "failed", "discarded"]
Repeats = Literal["recognise", "forget", "refuse"]
"""A file that comes again is recognised and not put in twice, is taken like a new one, or is refused for its name."""


@dataclass(frozen=True)
class Problem:
    """One reason why an upload is refused, in the push API's words."""

    attribute: str
    error: str
    error_code: str = "invalid"


class BadUpload(Exception):
    """The upload breaks the contract: answered with `status` and the list of problems."""

    status: ClassVar[int] = 400

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def as_json(self) -> dict[str, Any]:
        """The body of the answer, as the push API writes it."""
        return {
            "errors": [{"attribute": p.attribute, "error": p.error, "errorCode": p.error_code} for p in self.problems]
        }


class RepeatedName(BadUpload):
    """A file of this name was accepted before, and this target takes a name once."""

    status = 409

    def __init__(self, name: str) -> None:
        super().__init__(Problem("file", f"a file named {name} was accepted before", "duplicate"))


@dataclass(frozen=True)
class UploadParameters:
    """What stands in the address of an upload."""

    pool: str
    target: str
    connection_id: str | None = None
    client_id: str | None = None
    fallback_varchar_length: int | None = None
    primary_keys: tuple[str, ...] = ()
    order_column: str | None = None


@dataclass(frozen=True)
class StoredFile:
    """One accepted file. Times are epoch milliseconds; `rows` is None when a discarded file's name does not say.

    `received_at_ms` is the arrival of the request, `accepted_at_ms` the moment from which the file survives a crash.
    `repeated` counts how often the same file came again and was recognised; `again` is 1 when the same file was there
    before, and this time it was taken like a new one; `altered` is 1 when a file of this name, with other content, was
    there before.
    """

    sequence: int
    id: str
    name: str
    parameters: UploadParameters
    bytes: int
    rows: int | None
    sha256: str | None
    received_at_ms: int
    accepted_at_ms: int
    state: UpsertState
    error: str | None = None
    repeated: int = 0
    altered: int = 0
    again: int = 0

    def as_json(self) -> dict[str, Any]:
        """The file as `GET /files` shows it."""
        return {
            "sequence": self.sequence,
            "id": self.id,
            "name": self.name,
            "target": self.parameters.target,
            "pool": self.parameters.pool,
            "client_id": self.parameters.client_id,
            "primary_keys": list(self.parameters.primary_keys),
            "order_column": self.parameters.order_column,
            "rows": self.rows,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "received_at_ms": self.received_at_ms,
            "accepted_at_ms": self.accepted_at_ms,
            "seconds_to_answer": (self.accepted_at_ms - self.received_at_ms) / 1000,
            "upsert_state": self.state,
            "upsert_error": self.error,
            "repeated": self.repeated,
            "altered": self.altered,
            "again": self.again,
        }


@dataclass(frozen=True)
class Totals:
    """Sums over every accepted file, of all tables or of one.

    repeated, repeated_rows: uploads of files that had come before, recognised or not, and the rows in them. recognised,
    recognised_rows: those of them that were not put into a table again. altered: files whose name came with other
    content.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    repeated: int = 0
    repeated_rows: int = 0
    recognised: int = 0
    recognised_rows: int = 0
    altered: int = 0
    upserts: Mapping[str, int] = field(default_factory=dict)

    def received(self) -> dict[str, int]:
        """What was accepted, upload by upload: a file that came three times is three, with three times its rows."""
        return {
            "files": self.files + self.recognised,
            "rows": self.rows + self.recognised_rows,
            "repeated_files": self.repeated,
            "repeated_rows": self.repeated_rows,
            "recognised_files": self.recognised,
            "recognised_rows": self.recognised_rows,
            "failed_files": self.upserts.get("failed", 0),
        }


class Ledger(Protocol):
    """What was accepted: the journal of stored files, or the memory of discarded ones."""

    def files(self, limit: int, offset: int, target: str | None = None) -> Sequence[StoredFile]: ...

    def file(self, file_id: str) -> StoredFile | None: ...

    def totals(self) -> Totals: ...

    def clear(self) -> None: ...


def parse_parameters(pool: str, query: Mapping[str, str]) -> UploadParameters:
    """Read the query of an upload; all its problems are told at once. Raises BadUpload."""
    problems = [*_target_problems(query.get("targetName", "")), *_varchar_problems(query.get("fallbackVarcharLength"))]
    if problems:
        raise BadUpload(*problems)
    keys = tuple(key for part in query.get("primaryKeys", "").split(",") if (key := part.strip()))
    length = query.get("fallbackVarcharLength")
    return UploadParameters(
        pool=pool,
        target=query["targetName"],
        connection_id=query.get("connectionId") or None,
        client_id=query.get("clientId") or None,
        fallback_varchar_length=int(length) if length else None,
        primary_keys=tuple(dict.fromkeys(keys)),
        order_column=(query.get("duplicateRemovalOrderColumn") or None) if keys else None,
    )


def _target_problems(target: str) -> list[Problem]:
    if not target.strip():
        return [Problem("targetName", "the query parameter targetName is required", "missing")]
    if len(target) > MAX_NAME_LENGTH or not target.isprintable():
        return [Problem("targetName", f"must be at most {MAX_NAME_LENGTH} printable characters")]
    return []


def _varchar_problems(length: str | None) -> list[Problem]:
    if not length or (length.isascii() and length.isdigit() and 1 <= int(length[:9]) <= MAX_VARCHAR_LENGTH):
        return []
    return [Problem("fallbackVarcharLength", f"must be an integer from 1 to {MAX_VARCHAR_LENGTH}")]


def answer(file: StoredFile, parameters: UploadParameters) -> dict[str, Any]:
    """The JSON of a 2xx; a repeated upload gets the id of the file that is stored already."""
    return {
        "id": file.id,
        "fileName": file.name,
        "bucketId": str(uuid5(NAMESPACE_URL, f"{parameters.pool}/{parameters.target}")),
        "flushStatus": "NEW",
        "clientId": parameters.client_id,
        "fallbackVarcharLength": parameters.fallback_varchar_length,
        "upsertStrategy": "UPSERT_WITH_NULLIFICATION" if parameters.primary_keys else None,
    }
