"""Cases of a folder: each a file of records, with what is expected of them in a file beside it."""

import base64
import binascii
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from parquet_sink.config.report import quoted
from parquet_sink.errors import InvalidConfiguration

EXPECTED: Final = ".expected.json"
SCHEMAS: Final = "schemas"
TIMESTAMP: Final = 1_700_000_000_000
"""Of records that give none."""
_ENDINGS: Final = (".jsonl", ".json")
_FORMS: Final = ("", "_text", "_hex", "_base64")
_OTHERS: Final = ("topic", "partition", "offset", "timestamp", "headers")
_KEYS: Final = (*_OTHERS, *(f"{part}{form}" for part in ("key", "value") for form in _FORMS))
_MOST: Final = {"partition": 2**31 - 1, "offset": 2**63 - 2, "timestamp": 2**63 - 1}


@dataclass(frozen=True)
class CaseRecord:
    """A record as Kafka has it. timestamp: epoch milliseconds, 0 for none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Case:
    """path: of its records. schemas: the folder of schemas beside it."""

    path: Path

    @property
    def name(self) -> str:
        """Without the ending."""
        return self.path.stem

    @property
    def expected(self) -> Path:
        """What must come out."""
        return self.path.with_name(f"{self.name}{EXPECTED}")

    @property
    def schemas(self) -> Path:
        """Schemas by their ids, in place of a registry's."""
        return self.path.parent / SCHEMAS


def cases_of(paths: Sequence[str]) -> list[Case]:
    """Of folders and files, in the order of their names. Raises InvalidConfiguration."""
    found: list[Case] = []
    problems: list[str] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            own = [Case(one) for one in sorted(path.iterdir()) if _is_case(one)]
            known = {one.expected for one in own}
            problems += [
                f"Invalid [cases]. {one} has no case; add its records as {one.name.removesuffix(EXPECTED)}.jsonl, or "
                "remove it."
                for one in sorted(path.glob(f"*{EXPECTED}"))
                if one not in known
            ]
            if not own:
                problems.append(f"Invalid [cases]. {path} has no file of records; add one, for example first.jsonl.")
            found += own
        elif _is_case(path):
            found.append(Case(path))
        else:
            problems.append(f"Invalid [cases]. There is no case {text}; name a folder, or a .jsonl or .json file.")
    expected = [one.expected for one in found]
    problems += [
        f"Invalid [cases]. Two cases would share {one}; rename one of them."
        for one in dict.fromkeys(expected)
        if expected.count(one) > 1
    ]
    if problems:
        raise InvalidConfiguration(problems)
    return found


def _is_case(path: Path) -> bool:
    return path.is_file() and path.name.endswith(_ENDINGS) and not path.name.endswith(EXPECTED)


def records_of(case: Case, topics: Sequence[str]) -> list[CaseRecord]:
    """The records of a case. topics: of the connector; the only one is that of records that name none.

    Raises InvalidConfiguration for all that is wrong.
    """
    problems: list[str] = []
    found: list[CaseRecord] = []
    next_offset: dict[tuple[str, int], int] = {}
    default = topics[0] if len(topics) == 1 else None
    for place, one in _objects(case.path):
        try:
            record = _record(one, default, next_offset)
        except ValueError as error:
            problems.append(f"Invalid [{place}]. {error}")
            continue
        next_offset[record.topic, record.partition] = record.offset + 1
        found.append(record)
    if problems:
        raise InvalidConfiguration(problems)
    return found


def _objects(path: Path) -> Iterator[tuple[str, object]]:
    """Each object with the place where it stands. Raises InvalidConfiguration."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            whole = json.loads(text)
            if not isinstance(whole, list):
                raise InvalidConfiguration(
                    [f"Invalid [{path}]. It is not a list of records; write [{{…}}, …], or name it .jsonl."]
                )
            yield from ((f"{path}, record {at}", one) for at, one in enumerate(whole))
            return
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfiguration([f"Invalid [{path}]. It cannot be read as JSON ({error}); correct it."]) from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidConfiguration(
                    [f"Invalid [{path}, line {number}]. It is not JSON ({error}); write one record on a line."]
                ) from None


def _record(one: object, topic: str | None, next_offset: Mapping[tuple[str, int], int]) -> CaseRecord:
    """Raises ValueError with the reason and the cure."""
    if not isinstance(one, dict):
        raise ValueError('It is not an object; write {"value": …}.')
    unknown = next((name for name in one if name not in _KEYS), None)
    if unknown is not None:
        raise ValueError(f"{quoted(unknown)} is unknown; known are {', '.join(_KEYS)}.")
    name = one.get("topic", topic)
    if not isinstance(name, str):
        raise ValueError("topic is missing, and the connector does not read one alone; name it.")
    partition = _number(one, "partition", 0)
    first = next_offset.get((name, partition), 0)
    offset = _number(one, "offset", first)
    if offset < first:
        raise ValueError(f"offset {offset} is not behind the one before it; give at least {first}, or leave it out.")
    stamp = 0 if one.get("timestamp", TIMESTAMP) is None else _number(one, "timestamp", TIMESTAMP)
    value, key = _bytes(one, "value", required=True), _bytes(one, "key", required=False)
    return CaseRecord(name, partition, offset, stamp, key, value, _headers(one.get("headers", {})))


def _number(one: Mapping[str, Any], name: str, default: int) -> int:
    found = one.get(name, default)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _MOST[name]:
        raise ValueError(f"{name} is not a whole number from 0 to {_MOST[name]}; correct it.")
    return found


def _bytes(one: Mapping[str, Any], part: str, *, required: bool) -> bytes | None:
    given = [form for form in _FORMS if part + form in one]
    if len(given) > 1:
        raise ValueError(f"{part} is there twice, as {part}{given[0]} and {part}{given[1]}; keep one.")
    if not given:
        if required:
            raise ValueError(f'{part} is missing; give it, or "{part}": null for a tombstone.')
        return None
    found, name = one[part + given[0]], part + given[0]
    if found is None:
        return None
    if not given[0]:
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if not isinstance(found, str):
        raise ValueError(f"{name} is not text; put it between quotation marks.")
    return _decoded(name, given[0], found)


def _decoded(name: str, form: str, text: str) -> bytes:
    try:
        if form == "_hex":
            return bytes.fromhex(text)
        if form == "_base64":
            return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError(f"{name} is not {form[1:]}; correct it.") from None
    return text.encode("utf-8", "surrogatepass")


def _headers(found: object) -> tuple[tuple[str, bytes | None], ...]:
    pairs: list[Any] = list(found.items()) if isinstance(found, dict) else found if isinstance(found, list) else [None]
    made = []
    for pair in pairs:
        if not (isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ValueError('headers is not an object of texts; write {"name": "text"}, or [["name", "text"], …].')
        name, value = pair
        if value is not None and not isinstance(value, str):
            raise ValueError(f"header {quoted(name)} is not text; put it between quotation marks.")
        made.append((name, None if value is None else value.encode()))
    return tuple(made)


def read_expected(case: Case) -> object:
    """What is expected; None where there is no such file. Raises InvalidConfiguration."""
    try:
        return json.loads(case.expected.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfiguration(
            [f"Invalid [{case.expected}]. It cannot be read as JSON ({error}); correct it, or write it with --update."]
        ) from None


def write_expected(case: Case, text: str) -> None:
    """Whole or not at all. Raises InvalidConfiguration."""
    part = case.expected.with_name(f".{case.expected.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, case.expected)
    except OSError as error:
        raise InvalidConfiguration(
            [f"Invalid [{case.expected}]. It cannot be written ({error.strerror or error}); make the folder writable."]
        ) from None
