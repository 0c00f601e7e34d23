"""Keys of a file and the settings that they fill, from one declaration: a frozen dataclass.

    @declared(group="The shop", prefix="shop.")
    class ShopSettings:
        table: str = key("table", "Table that the rows go to.", missing="name the table.")
        token: Secret = key("token", "Token of the shop.", missing="give the token, best as ${env:NAME}.")
        pause_ms: Milliseconds = key("pause.ms", "Pause between tries, in milliseconds.", default=500, minimum=1)
        mode: Literal["insert", "upsert"] = key("mode", "How rows are written.", default="upsert")

A connector class has `keys_of(ShopSettings)` among its keys, calls `check(ShopSettings, values, report)` where it
checks, and `made(ShopSettings, values, machine)` where it makes its settings. Each key is documented, read and checked
by its line alone, and type checkers see an ordinary frozen dataclass.

The annotation is the key's type:

| Annotation | In a file |
|---|---|
| `str` | a text |
| `Literal["a", "b"]` | one of these texts, in any case |
| `LocalPath` | a path, made absolute by the machine's working folder |
| `bool` | true or false |
| `int` | a whole number of 32 bits |
| `Long` | a whole number of 64 bits |
| `Milliseconds`, `ShortMilliseconds` | a duration, of 64 or 32 bits: `30s`, or its milliseconds |
| `Bytes`, `ShortBytes` | a size, of 64 or 32 bits: `10MB`, or its bytes |
| `float` | a number |
| `tuple[str, ...]` | a list, separated by commas |
| `Secret` | what is never shown |
| any of these, or None | likewise; None where the file has no such key, with `default=None` |
| another declared class, or None | a group of keys; None where the file lacks one of those that it cannot do without |
| `ClassVar` of any of these | a key that fills no field |

A subclass has the keys of its base, and may declare a field again: the key stays in its place, with another text or
default, and goes where the field has none. `kw_only=True` for a base lets its subclasses have fields without a default.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from parquet_sink.config.key import Check, Key, NotBuilt, Origin, Type, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.quantity import Unit
from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values

_Settings = TypeVar("_Settings")
_Computed = Callable[[Values, Machine], object]
_PATH: Final = "a path of this machine"
_METADATA: Final = "parquet_sink.key"
_PARTS: Final = "__declared__"
_EITHER: Final = "give both, or neither."
_TYPES: Final[Mapping[object, Type]] = {
    str: Type.STRING,
    bool: Type.BOOLEAN,
    int: Type.INT,
    float: Type.DOUBLE,
    tuple[str, ...]: Type.LIST,
    Secret: Type.PASSWORD,
}

Long = Annotated[int, Type.LONG]
"""A whole number of 64 bits."""
Milliseconds = Annotated[int, Type.LONG, Unit.MILLISECONDS]
"""A duration."""
ShortMilliseconds = Annotated[int, Type.INT, Unit.MILLISECONDS]
"""A duration of at most 24 days, as a number of 32 bits holds it."""
Bytes = Annotated[int, Type.LONG, Unit.BYTES]
"""A size."""
ShortBytes = Annotated[int, Type.INT, Unit.BYTES]
"""A size of less than 2 GiB, as a number of 32 bits holds it."""
LocalPath = Annotated[str, _PATH]
"""A path, made absolute by the machine's working folder."""


@dataclass(frozen=True)
class _Declaration:
    """What a field's line says. key: without what its class and annotation add to it; None: declared elsewhere."""

    name: str
    key: Key | None
    missing: str
    computed: _Computed | None
    type: object
    origin: Origin | None = None


@dataclass(frozen=True)
class _Part:
    """What fills a field. name: of the key, in full. group: the class of several keys that fill it together."""

    name: str = ""
    key: Key | None = None
    missing: str = ""
    computed: _Computed | None = None
    path: bool = False
    group: type | None = None
    optional: bool = False
    default: bool = False
    field: bool = True

    @property
    def needed(self) -> bool:
        """Whether there are no settings without its key."""
        return self.field and not (self.default or self.optional or self.group or self.computed)


def key(
    name: str,
    doc: str,
    *,
    default: object = MISSING,
    absent: object = MISSING,
    default_text: str = "",
    missing: str = "",
    minimum: int | None = None,
    maximum: int | None = None,
    check: Check | None = None,
    needs: str = "",
    computed: _Computed | None = None,
    type_: object = None,
    other_choice: str = "",
    may_be_empty: bool = False,
    not_built: NotBuilt | None = None,
    no_effect: str = "",
    deprecated: str = "",
    group: str = "",
    origin: Origin | None = None,
) -> Any:
    """A field that a key fills; most of it is what `config.key.Key` says.

    name: without the prefix of its class. default: of the key, and of the field where no file is read; without one the
    field must be given. absent: the key's default, where it is another. missing: the cure where the file has no
    such key, which is a problem then. needs: another key, by its short name where it is of the same class.
    computed: makes the field's value from all that the file says, in place of the key's own; with a `default_text` what
    it makes of no key is the default. type_: an annotation for the key, where the field's is not that of a key.
    group, origin: others than those of the class.
    """
    if absent is MISSING:
        absent = None if default is MISSING or (computed is not None and default_text) else default
    one = Key(
        name,
        group,
        Type.STRING,
        doc,
        default=_value(absent),
        default_text=default_text,
        minimum=minimum,
        maximum=maximum,
        check=check,
        needs=needs,
        other_choice=other_choice,
        may_be_empty=may_be_empty,
        not_built=not_built,
        no_effect=no_effect,
        deprecated=deprecated,
    )
    return field(default=default, metadata={_METADATA: _Declaration(name, one, missing, computed, type_, origin)})


def filled_by(name: str, *, default: object = MISSING, missing: str = "", computed: _Computed | None = None) -> Any:
    """A field that a key documented elsewhere fills. name: of the key, in full. All else is as `key` has it."""
    return field(default=default, metadata={_METADATA: _Declaration(name, None, missing, computed, None)})


@dataclass_transform(frozen_default=True, field_specifiers=(key, filled_by, field))
def declared(
    *, group: str, prefix: str = "", origin: Origin = Origin.PLUGIN, optional: bool = False, kw_only: bool = False
) -> Callable[[type[_Settings]], type[_Settings]]:
    """Makes a class a frozen dataclass whose fields are keys; others of its fields are the caller's of `made`.

    group: the title of its keys in the documentation. prefix: what stands before their names. origin: who defined them.
    optional: not every file that may have its keys uses the class, so that only `check` reports what is missing.
    Raises TypeError for an annotation that is none of a key, and ValueError for two keys of one name.
    """

    def make(cls: type[_Settings]) -> type[_Settings]:
        settings: type[_Settings] = dataclass(frozen=True, kw_only=kw_only)(cls)
        parts = dict(_parts(cls))
        hints = get_type_hints(cls, include_extras=True)
        fields: dict[str, Field[object]] = vars(settings)["__dataclass_fields__"]
        own = {name: fields[name] for name in get_annotations(cls)}
        names = {said.name for one in own.values() if (said := one.metadata.get(_METADATA)) and said.key}
        for name, one in own.items():
            full = _Names(group, prefix, origin, optional, names)
            part = _part(f"{cls.__name__}.{name}", hints[name], one, full)
            if part is not None:
                parts[name] = part
            else:
                parts.pop(name, None)
        setattr(settings, _PARTS, parts)
        table = [one.name for one in keys_of(settings)]
        if twice := {one for one in table if table.count(one) > 1}:
            raise ValueError(f"{cls.__name__} declares {', '.join(sorted(twice))} twice.")
        return settings

    return make


def keys_of(cls: type, group: str | None = None) -> tuple[Key, ...]:
    """The keys that a class declares, those of its base and of its groups included. group: of this section only."""
    return tuple(one for one in _keys(cls) if group is None or one.group == group)


def names_of(cls: type) -> frozenset[str]:
    """All keys that settings of a class depend on, those documented elsewhere included, by their full names."""
    found = [{part.name} if part.group is None else names_of(part.group) for part in _parts(cls).values()]
    return frozenset[str]().union(*found)


def by_key(settings: Any) -> dict[str, object]:
    """What settings hold, by the key that fills each field, or by the field's name where none does.

    So what is kept of them outlives new names of classes and fields. A group that is not there has no keys.
    """
    found: dict[str, object] = {}
    for one in fields(settings):
        part, value = _parts(type(settings)).get(one.name, _Part()), getattr(settings, one.name)
        if part.group is None:
            found[part.name or one.name] = value
        elif value is not None:
            found |= by_key(value)
    return found


def check(cls: type, values: Values, report: Report, *others: str) -> None:
    """Report keys that the settings cannot do without, and groups of which a part is given.

    Each key by itself was validated when the file was read. others: fields that `made` is given.
    """
    for name, part in _parts(cls).items():
        if name in others:
            continue
        if part.group is not None:
            _check_group(part, part.group, values, report)
        elif part.missing and part.name not in values.given and not (part.key is not None and part.key.required):
            report.problem(part.name, f"It is missing; {part.missing}")


def made(cls: type[_Settings], values: Values, machine: Machine, /, **others: Any) -> _Settings:
    """The settings, from values about which there was no problem. others: fields that no key fills, or otherwise.

    A field whose key the connector class does not have has its default.
    """
    given = dict(others)
    for name, part in _parts(cls).items():
        if not part.field or name in given:
            continue
        value = _made_group(part, values, machine) if part.group else _made_value(part, values, machine)
        if value is None and not (part.default or part.optional):
            raise AssertionError(f"{part.name} is missing, which no check reported")
        if value is not None or not part.default:
            given[name] = value
    return cls(**given)


@dataclass(frozen=True)
class _Names:
    """What a class says of all its keys. short: their names without prefix."""

    group: str
    prefix: str
    origin: Origin
    optional: bool
    short: set[str]

    def full(self, name: str) -> str:
        """Of a key of the class, or of another."""
        return self.prefix + name if name in self.short else name


def _part(where: str, hint: object, one: Field[object], names: _Names) -> _Part | None:
    """What fills a field; None where that is neither a key nor a group of keys. Raises TypeError."""
    declaration: _Declaration | None = one.metadata.get(_METADATA)
    of_class = get_origin(hint) is ClassVar
    inner, optional = _without_none(get_args(hint)[0] if of_class else hint)
    part = _Part(optional=optional, default=one.default is not MISSING, field=not of_class)
    if declaration is None:
        return replace(part, group=inner) if isinstance(inner, type) and _parts(inner) and one.init else None
    part = replace(part, name=names.full(declaration.name), missing=declaration.missing, computed=declaration.computed)
    annotation = inner if declaration.type is None else _without_none(declaration.type)[0]
    part = replace(part, path=get_origin(annotation) is Annotated and _PATH in get_args(annotation))
    if declaration.key is None:
        return part
    type_, choices = _type_of(where, annotation)
    whole = replace(
        declaration.key,
        name=part.name,
        group=declaration.key.group or names.group,
        type=type_,
        choices=choices,
        unit=_unit_of(annotation),
        needs=names.full(declaration.key.needs),
        required=bool(declaration.missing) and not names.optional,
        missing="" if names.optional else declaration.missing,
        origin=declaration.origin or names.origin,
    )
    return replace(part, key=whole)


def _without_none(hint: object) -> tuple[Any, bool]:
    """An annotation without None, and whether that was in it."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    some = [one for one in get_args(hint) if one is not NoneType]
    return (some[0] if len(some) == 1 else hint), len(some) < len(get_args(hint))


def _type_of(where: str, annotation: Any) -> tuple[Type, tuple[str, ...]]:
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        found = next((one for one in marks if isinstance(one, Type)), None)
        return (found, ()) if found is not None else _type_of(where, inner)
    if get_origin(annotation) is Literal and all(isinstance(one, str) for one in get_args(annotation)):
        return Type.STRING, get_args(annotation)
    try:
        return _TYPES[annotation], ()
    except (KeyError, TypeError):
        kinds = (
            "str, Literal of texts, bool, int, float, Long, LocalPath, tuple[str, ...], Secret, or one of them or None"
        )
        raise TypeError(f"{where} is annotated {annotation}, which is not a type of a key; write {kinds}.") from None


def _unit_of(annotation: Any) -> Unit | None:
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((one for one in marks if isinstance(one, Unit)), None)


def _value(default: object) -> Value:
    """The default as the table of keys has it."""
    assert default is None or isinstance(default, str | int | float | tuple | Secret), default
    return default


def _parts(cls: type) -> Mapping[str, _Part]:
    """By field, those of base classes first."""
    own: Mapping[str, _Part] | None = vars(cls).get(_PARTS)
    if own is not None:
        return own
    found: dict[str, _Part] = {}
    for one in reversed(cls.__mro__):
        found |= vars(one).get(_PARTS, {})
    return found


def _keys(cls: type) -> Iterator[Key]:
    for part in _parts(cls).values():
        if part.group is not None:
            yield from _keys(part.group)
        elif part.key is not None:
            yield part.key


def _check_group(part: _Part, group: type, values: Values, report: Report) -> None:
    """A group is wanted that has no None, or of which something is given; of what needs another key that is warned."""
    needed = [one for one in _parts(group).values() if one.needed]
    given = [one.name for one in needed if one.name in values.given]
    if not part.optional:
        check(group, values, report)
    elif given:
        for one in needed:
            if one.name not in values.given and not (one.key is not None and one.key.needs):
                report.problem(one.name, f"It is missing beside {given[0]}; {one.missing or _EITHER}")


def _made_group(part: _Part, values: Values, machine: Machine) -> object:
    assert part.group is not None
    needed = [one.name for one in _parts(part.group).values() if one.needed]
    if part.optional and any(not values.knows(name) or values.value(name) is None for name in needed):
        return None
    return made(part.group, values, machine)


def _made_value(part: _Part, values: Values, machine: Machine) -> object:
    if part.computed is not None:
        found = part.computed(values, machine)
    else:
        found = values.value(part.name) if values.knows(part.name) else None
    return machine.absolute(found) if part.path and isinstance(found, str) else found
