"""UTF-8 as Java reads it: what is wrong becomes U+FFFD, and nothing fails."""

import re
from typing import Final

_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Halves of a pair, each of which Java replaces as one, where Python replaces every byte of it."""
_BAD_BYTE: Final = b"\xff"


def decoded(data: bytes) -> str:
    """The text of these bytes, one U+FFFD in place of each sequence that is no UTF-8, as Java's `REPLACE` does it."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATES.sub(_BAD_BYTE, data).decode(errors="replace")
