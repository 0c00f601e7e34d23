"""What `*` with EXCLUDE, REPLACE and RENAME makes of the fields of a record."""

from collections.abc import Sequence

from parquet_sink.addons.sql import fields
from parquet_sink.addons.sql.judged import Star, Worked

Source = str | Worked
"""Where a column comes from: a field, or an expression."""


def laid_out(star: Star, names: Sequence[str]) -> Sequence[tuple[str, Source]]:
    """The columns, in order, of a record with fields of these names; what it lacks and is replaced comes last.

    A name that EXCLUDE has leaves out whatever differs from it in case alone. Raises InvalidValue.
    """
    left = [name for name in names if name.lower() not in star.excluded]
    sources: dict[str, Source] = {name: name for name in left}
    new: list[tuple[str, Source]] = []
    for written, result in star.replaced.items():
        found = fields.matching(left, written, (written,))
        if found is None:
            new.append((written, result))
        else:
            sources[found] = result
    renamed = {fields.matching(left, written, (written,)): name for written, name in star.renamed.items()}
    return [(renamed.get(name, name), source) for name, source in sources.items()] + new


def is_doubtful(star: Star, names: Sequence[str]) -> bool:
    """Whether one of these records may take a field by a name that others of them have for another field."""
    lower = [name.lower() for name in names]
    return any(lower.count(one.lower()) > 1 for one in (*star.replaced, *star.renamed))
