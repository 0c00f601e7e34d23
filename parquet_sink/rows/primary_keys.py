"""Primary keys: every listed column exists, and none is null unless that is allowed."""

from collections.abc import Container, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.invalid import InvalidValue, show
from parquet_sink.rows import metadata
from parquet_sink.rows.flatten.trees import column_name
from parquet_sink.rows.settings import ShapeSettings

_KEY = ems("data.primary.key")


class PrimaryKeys:
    """The key columns that come from the payload; those that the sink adds itself are always there."""

    def __init__(self, settings: ShapeSettings) -> None:
        added = metadata.names(settings)
        self._names = tuple(name for name in settings.primary_keys if name not in added)
        self._allow_null = settings.allow_null_primary_keys

    def missing(self, columns: Container[str]) -> list[str]:
        """The key columns that are not among `columns`."""
        return [name for name in self._names if name not in columns]

    def why_missing(self, columns: Iterable[str]) -> str | None:
        """Why records of these columns have no row: it names all key columns that are not there. None: they are."""
        columns = tuple(columns)
        missing = self.missing(columns)
        if not missing:
            return None
        near = [column for column in columns if any(_is_near(column, name) for name in missing)]
        hint = f" (there is {show((near[0],))})" if near else ""
        return f"{_KEY}: {_listed(missing)} missing, so the record has no primary key{hint}"

    def check(self, columns: Mapping[str, object], row: Mapping[str, object]) -> None:
        """Raise InvalidValue, naming all key columns at fault. columns: all of the topic; row: those with a value."""
        if not self._names:
            return
        reason = self.why_missing(columns)
        if reason is not None:
            raise InvalidValue(reason)
        nulls = [name for name in self._names if row.get(name) is None]
        if nulls and not self._allow_null:
            raise InvalidValue(f"{_KEY}: {_listed(nulls)} null, which only {ems('allow.null.pk')}=true permits")

    def nulls_in(self, arrays: Mapping[str, pa.Array], count: int) -> pa.BooleanArray | None:
        """For each of `count` rows whether a key is null where none may be; None when no row has one.

        A column that `arrays` lacks is null throughout.
        """
        found: pa.BooleanArray | None = None
        for name in () if self._allow_null else self._names:
            if name not in arrays:
                return pa.repeat(pa.scalar(True, pa.bool_()), count)
            if arrays[name].null_count:
                mask = arrays[name].is_null()
                found = mask if found is None else pc.or_(found, mask)
        return found


def _is_near(column: str, name: str) -> bool:
    return column_name(column).lower() == column_name(name).lower()


def _listed(names: list[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
