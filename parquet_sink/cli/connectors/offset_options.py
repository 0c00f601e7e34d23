"""Offsets as an option takes them."""

import argparse
from typing import Final

_LARGEST: Final = (1 << 63) - 1
OffsetSetting = tuple[str, int, int | None]


def offset_setting(text: str) -> OffsetSetting:
    """Topic, topic-partition and offset, None for `none`. Raises argparse.ArgumentTypeError."""
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and _is_number(partition) and (offset == "none" or _is_number(offset))):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no topic, topic-partition and offset, such as orders:3:1200, or orders:3:none"
        )
    return topic, int(partition), None if offset == "none" else int(offset)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _LARGEST
