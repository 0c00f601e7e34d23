"""How far Protobuf messages may grow on their way to columns: two bytes in a list can be one of 5,000 fields.

A cell is about 8 bytes, in the library's memory as in a column. A record costs the cells of its own fields, which its
schema bounds, and those of the items of its lists and maps, of which it may have FREE_CELLS and CELLS_A_BYTE more for
each of its bytes. They are counted on the wire, before the library makes anything of them, and only where a list has
items that can be that much larger than their bytes.
"""

from typing import Any, Final

CELLS_A_BYTE = 32
FREE_CELLS = 2_500
_CELL_BYTES = 8
_NAME_CELL = 16
"""Characters of a field's name that count as a cell: where lists become text, each item has all names in it."""

_LEAST_BYTES = 2
"""Of an item: a tag and a length of zero."""

_VARINT, _WIDE, _SIZED, _START, _END, _NARROW = range(6)
_MESSAGES = (10, 11)
"""TYPE_GROUP and TYPE_MESSAGE of FieldDescriptor."""

_UNKNOWN: Final = (0, None)


class Growth:
    """What to count of messages of one type."""

    def __init__(self, message: Any) -> None:
        """message: a descriptor."""
        self._root = _Items(message)
        most = _find_items(self._root)
        self._most = most if most > _LEAST_BYTES * CELLS_A_BYTE else 0

    @property
    def counts(self) -> bool:
        """Whether any message of this type can be beyond; of most types none can."""
        return self._most > 0

    def is_beyond(self, data: bytes) -> bool:
        """Whether a message would become too much; what is no message does not."""
        allowed = FREE_CELLS + CELLS_A_BYTE * len(data)
        return self._most * len(data) // _LEAST_BYTES > allowed and _count(data, self._root) > allowed


class _Items:
    """below: by field number, the cells of each item of a list or map (0: no list), and what is in it."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.below: dict[int, tuple[int, _Items]] = {}


def _find_items(root: _Items) -> int:
    """Fill in what is below; the cells of the largest item there is."""
    known = {root.message.full_name: root}
    cells: dict[str, int] = {}
    waiting, most = [root], 0
    while waiting:
        items = waiting.pop()
        for field in items.message.fields:
            if field.type not in _MESSAGES:
                continue
            message = field.message_type
            if message.full_name not in known:
                known[message.full_name] = _Items(message)
                waiting.append(known[message.full_name])
            each = _cells(message, cells) if field.is_repeated else 0
            items.below[field.number] = (each, known[message.full_name])
            most = max(most, each)
    return most


def _cells(message: Any, known: dict[str, int]) -> int:
    """What a message costs, less the items of its lists; a message inside itself is not counted again."""
    name = message.full_name
    if name not in known:
        known[name] = 1
        known[name] = 1 + sum(_field_cells(field, known) + len(field.name) // _NAME_CELL for field in message.fields)
    return known[name]


def _field_cells(field: Any, known: dict[str, int]) -> int:
    if field.is_repeated:
        return 1
    if field.type in _MESSAGES:
        return _cells(field.message_type, known)
    default = field.default_value
    if field.type == field.TYPE_ENUM:
        default = max((value.name for value in field.enum_type.values), key=len)
    return 1 + len(default) // _CELL_BYTES if isinstance(default, str | bytes) else 1


def _count(data: bytes, root: _Items) -> int:
    """Cells of all items in a message; those before the place where it is no message any more."""
    total = 0
    waiting: list[tuple[int, int, _Items | None]] = [(0, len(data), root)]
    while waiting:
        at, end, here = waiting.pop()
        groups: list[_Items | None] = []
        while at < end:
            tag, at = _varint(data, at, end)
            number, wire = tag >> 3, tag & 7
            each, below = here.below.get(number, _UNKNOWN) if here else _UNKNOWN
            if wire == _SIZED:
                size, at = _varint(data, at, end)
                if below is not None and size <= end - at:
                    waiting.append((at, at + size, below))
                at += size
                total += each
            elif wire == _START:
                groups.append(here)
                here = below
                total += each
            elif wire == _END:
                here = groups.pop() if groups else None
            elif wire == _VARINT:
                _, at = _varint(data, at, end)
            else:
                at += 4 if wire == _NARROW else 8
    return total


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number, and where the next thing begins; `end` where there is none."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    return 0, end
