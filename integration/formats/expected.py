"""What the records of `formats.records` are once they are uploaded: columns with their types, and rows."""

from collections.abc import Mapping
from typing import Any, Final

from integration.formats.records import AT, DAY, PRICE, WHEN

TYPES: Final = {
    "id": "int64",
    "note": "string",
    "Amount": "double",
    "status": "string",
    "customer_name": "string",
    "customer_age": "int32",
    "tags": "string",
    "counts": "string",
    "raw": "binary",
    "code": "binary",
    "price": "decimal128(9, 2)",
    "day": "date32[day]",
    "at": "time32[ms]",
    "placed": "timestamp[ms, tz=UTC]",
    "exactly": "int64",
    "choice_string": "string",
    "choice_int": "int32",
    "ok": "bool",
    "small": "float",
    "choice_0_text": "string",
    "choice_0_number": "int32",
    "unsigned": "int64",
    "tiny": "int32",
    "short": "int32",
}
NESTED_TYPES: Final = {
    "customer": "struct<name: string not null, age: int32>",
    "tags": "list<element: string not null>",
    "counts": "map<string, int32 ('counts')>",  # Parquet has no name of its own for the entries
    "choice": "struct<string: string, int: int32>",
}
FULL: Final[dict[str, Any]] = {
    "id": 2**53 + 1,
    "note": "für Ada",
    "Amount": 0.1,
    "status": "PAID",
    "customer_name": "Ada",
    "customer_age": 36,
    "tags": '["x","ü"]',
    "counts": '{"k":1}',
    "raw": b"\x00\xff",
    "code": b"ab",
    "price": PRICE,
    "day": DAY,
    "at": AT,
    "placed": WHEN,
    "exactly": -750_000,
    "choice_string": None,
    "choice_int": 7,
    "ok": True,
    "small": 0.5,
    "choice_0_text": None,
    "choice_0_number": 7,
    "unsigned": 2**32 - 1,
    "tiny": -128,
    "short": 32_767,
}
NESTED_FULL: Final[dict[str, Any]] = {
    **FULL,
    "customer": {"name": "Ada", "age": 36},
    "tags": ["x", "ü"],
    "counts": [("k", 1)],
    "choice": {"string": None, "int": 7},
    "choice_0": {"text": None, "number": 7},
}
BARE: Final[dict[str, Any]] = {
    "id": -1,
    "note": None,
    "customer_name": None,
    "customer_age": None,
    "tags": "[]",
    "counts": "{}",
    "choice_string": "seven",
    "choice_int": None,
}
NESTED_BARE: Final[dict[str, Any]] = {
    "id": -1,
    "note": None,
    "customer": None,
    "tags": [],
    "counts": [],
    "choice": {"string": "seven", "int": None},
}
UNSET: Final[dict[str, Any]] = {
    "id": 0,
    "note": None,
    "Amount": 0.0,
    "status": "OPEN",
    "customer_name": None,
    "customer_age": None,
    "tags": "[]",
    "counts": "{}",
    "raw": b"",
    "unsigned": 0,
    "placed": None,
    "ok": False,
    "small": 0.0,
    "choice_0_text": "seven",
    "choice_0_number": None,
}
NESTED_UNSET: Final[dict[str, Any]] = {
    **UNSET,
    "customer": None,
    "tags": [],
    "counts": [],
    "choice_0": {"text": "seven", "number": None},
}
HEAD: Final = "id note Amount status"
FLAT_NAMES: Final = {
    "envelope": f"{HEAD} customer_name customer_age tags counts raw price day at placed ok small tiny short",
    "avro": f"{HEAD} customer_name customer_age tags counts raw code price day at placed exactly choice_string "
    "choice_int ok small",
    "protobuf": f"choice_0_text choice_0_number {HEAD} customer_name customer_age tags counts raw unsigned placed ok "
    "small",
    "json_schema": f"{HEAD} customer_name customer_age tags counts price day ok tiny",
}
NESTED_NAMES: Final = {
    "envelope": f"{HEAD} customer tags counts raw price day at placed ok small tiny short",
    "avro": f"{HEAD} customer tags counts raw code price day at placed exactly choice ok small",
    "protobuf": f"choice_0 {HEAD} customer tags counts raw unsigned placed ok small",
    "json_schema": f"{HEAD} customer tags counts price day ok tiny",
}


def picked(format_: str, names: str, *rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of each row what a format has."""
    found = [{name: row[name] for name in names.split()} for row in rows]
    if format_ == "json_schema":
        found = [{**row, "Amount": 1.0} for row in found]
    if format_ == "envelope":
        found[1]["status"] = "OPEN"  # null, and the schema has a default
    return found


def flat_of(format_: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Columns and rows of a format's records, flattened."""
    if format_ == "json":
        columns = {"id": "int64", "Amount": "double", "customer_name": "string", "customer_age": "int64"}
        full = {"id": 2**53 + 1, "Amount": 0.1, "customer_name": "Ada", "customer_age": 36, "ok": None}
        bare = {"id": -1, **dict.fromkeys(["Amount", "customer_name", "customer_age", "tags"]), "ok": True}
        return {**columns, "tags": "string", "ok": "bool"}, [{**full, "tags": '["x","ü",1,null]'}, bare]
    if format_ == "xml":
        full = {"id": "7", "customer_name": "Ada & Co", "tag": '["x","ü"]', "none": ""}
        return dict.fromkeys(full, "string"), [full, {"id": "8", "customer_name": None, "tag": "y", "none": None}]
    names = FLAT_NAMES[format_]
    bare = UNSET if format_ == "protobuf" else {**FULL, **BARE}
    return {name: TYPES[name] for name in names.split()}, picked(format_, names, FULL, bare)


def nested_of(format_: str) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The same without flattening."""
    names = NESTED_NAMES[format_]
    bare = NESTED_UNSET if format_ == "protobuf" else {**NESTED_FULL, **NESTED_BARE}
    types = {**TYPES, **NESTED_TYPES}
    columns = {name: f"{types[name]} required" for name in types if name in names.split()}
    for name in ("note", "customer"):
        columns[name] = types[name]
    if format_ in ("protobuf", "json_schema"):
        columns = {name: type_.removesuffix(" required") for name, type_ in columns.items()}
        columns["customer"] = "struct<name: string, age: int32>"
    if format_ == "protobuf":
        columns |= {"choice_0": "struct<text: string, number: int32>", "tags": "list<element: string>"}
    return {name: columns[name] for name in names.split()}, picked(format_, names, NESTED_FULL, bare)
