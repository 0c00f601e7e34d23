"""Functions whose result is as long as an argument says: the query itself must say it, and never a record's field."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

LONGEST: Final = 10_000
_LENGTHS: Final = {"lpad": 1, "rpad": 1, "list_resize": 1, "array_resize": 1, "bar": 3, "to_base": 2}
"""Which argument is the length."""
_SPECS: Final = {"format": re.compile(r"\{[^}]*"), "printf": re.compile(r"%[^a-zA-Z%]*")}
"""What says how a value is filled into a text; that is the first argument."""
_OPEN: Final = {"format": re.compile(r"\{[^{}]*\{"), "printf": re.compile(r"%[^a-zA-Z%]*\*")}
"""A width that another argument gives."""


def too_long(function: str, literals: Sequence[Mapping[str, Any]]) -> str | None:
    """Why its length is not bounded, None where it is. literals: of the arguments, {} for what is none."""
    at = _LENGTHS.get(function, len(literals))
    if at < len(literals) and not (literals[at].get("kind") == "INTEGER" and int(literals[at]["text"]) <= LONGEST):
        return f"{function} takes a number of at most {LONGEST:,} for the length, no field"
    if function not in _SPECS or not literals:
        return None
    if literals[0].get("kind") != "STRING":
        return f"{function} takes a text for what it fills, no field"
    text = str(literals[0]["text"]).replace("{{", "").replace("%%", "")
    widths = [int(found) for spec in _SPECS[function].findall(text) for found in re.findall(r"\d+", spec)]
    if _OPEN[function].search(text) or any(width > LONGEST for width in widths):
        return f"{function} takes a number of at most {LONGEST:,} for a width, no field"
    return None
