"""One change event without a schema: what becomes of it. This is the definition; columns are for speed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from parquet_sink.addons.transforms.fields.errors import tree_kind
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import show
from parquet_sink.transform.protocol import RecordFault

OP: Final = "op"
SOURCE: Final = "source"
BEFORE: Final = "before"
AFTER: Final = "after"
TRANSACTION: Final = "transaction"
DELETED: Final = "__deleted"

Deletes: TypeAlias = Literal["drop", "tombstone", "rewrite"]


@dataclass(frozen=True)
class Reference:
    """A field of the event that is added. struct: the object of the event that has it; empty: the event. new: its name.

    Where that object has no such field, the event's own of that name counts.
    """

    struct: str
    field: str
    new: str


@dataclass(frozen=True)
class Unwrapping:
    """What is made of events. tombstones: whether those of the topic stay. route: the field that names the topic.

    drop_header: the header that lists fields to leave out; drop_from_key: of the key, too; only_optional: of records
    with a schema only those that may be null. Nothing is empty.
    """

    deletes: Deletes = "tombstone"
    tombstones: bool = False
    fields: tuple[Reference, ...] = ()
    headers: tuple[Reference, ...] = ()
    route: str = ""
    drop_header: str = ""
    drop_from_key: bool = False
    only_optional: bool = True

    @property
    def rewrites(self) -> bool:
        """Whether rows get the field that says whether they are deleted."""
        return self.deletes == "rewrite"


class Unwrapped(NamedTuple):
    """value: None: a tombstone. topic: None: as it was. headers: one value for each of the settings' headers."""

    value: Tree | None
    topic: str | None
    headers: tuple[object, ...]


def is_event(tree: object) -> bool:
    """Whether a record has the form of a change event: `op`, `source`, and `before` or `after`."""
    if not isinstance(tree, dict) or not (BEFORE in tree or AFTER in tree):
        return False
    return isinstance(tree.get(OP), str) and isinstance(tree.get(SOURCE), dict)


def unwrapped(tree: Tree, settings: Unwrapping, left_out: Collection[str] = ()) -> Unwrapped | None:
    """What becomes of an event; None: it is dropped. left_out: names that the record's header lists.

    Raises RecordFault.
    """
    after, before = (_state(tree, name) for name in (AFTER, BEFORE))
    if after is None and (before is None or settings.deletes == "drop"):
        return None
    headers = tuple(_value(tree, one) for one in settings.headers)
    if after is not None:
        row = _marked(after, "false", settings)
        topic = _topic(row, settings.route)
        return Unwrapped(_kept(_added(row, tree, settings), left_out), topic, headers)
    assert before is not None
    if not settings.rewrites:
        return Unwrapped(None, _topic(before, settings.route), headers)
    row = _marked(before, "true", settings)
    topic = _topic(before, settings.route)
    return Unwrapped(_added(_kept(row, left_out), tree, settings), topic, headers)


def no_row(name: str, kind: str) -> str:
    """Why an event is rejected whose state is not an object."""
    return f"ExtractNewRecordState takes {name} as a row, and it is {kind}; events of MongoDB have text there"


def twice(name: str, cure: str) -> str:
    """Why an event is rejected whose row has a field already."""
    return f"ExtractNewRecordState would add field {show((name,))}, which the row has already; {cure}"


def is_object(reference: Reference) -> str:
    """Why an object is not added."""
    return f"add.fields names {shown(reference)}, which is not a single value; name a field in it"


def no_name(field: str, kind: str) -> str:
    """Why a field cannot name a topic."""
    return f"route.by.field names {show((field,))}, which is {kind}; name a field that holds text"


def shown(reference: Reference) -> str:
    """For a message."""
    return show(tuple(name for name in (reference.struct, reference.field) if name))


CURE_FIELDS: Final = "give it another name in add.fields, or another add.fields.prefix"
CURE_DELETED: Final = "rename it in the table, or choose a delete.tombstone.handling.mode that adds none"


def _state(tree: Mapping[str, object], name: str) -> Tree | None:
    found = tree.get(name)
    if found is not None and not isinstance(found, dict):
        raise RecordFault(no_row(name, tree_kind(found)))
    return found


def _marked(row: Tree, deleted: str, settings: Unwrapping) -> Tree:
    if not settings.rewrites:
        return row
    if DELETED in row:
        raise RecordFault(twice(DELETED, CURE_DELETED))
    return {**row, DELETED: deleted}


def _topic(row: Tree, field: str) -> str | None:
    name = row.get(field) if field else None
    if name is not None and not isinstance(name, str):
        raise RecordFault(no_name(field, tree_kind(name)))
    return name if name and name.strip() else None


def _added(row: Tree, event: Tree, settings: Unwrapping) -> Tree:
    more: Tree = {}
    for one in settings.fields:
        if one.new in row:
            raise RecordFault(twice(one.new, CURE_FIELDS))
        more[one.new] = _value(event, one)
        if isinstance(more[one.new], dict):
            raise RecordFault(is_object(one))
    return {**row, **more}


def _value(event: Tree, reference: Reference) -> object:
    held = event.get(reference.struct) if reference.struct else event
    found = held.get(reference.field) if isinstance(held, dict) else None
    return event.get(reference.field) if found is None else found


def _kept(row: Tree, left_out: Collection[str]) -> Tree:
    return {name: value for name, value in row.items() if name not in left_out} if left_out else row
