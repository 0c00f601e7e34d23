"""Text from outside, made fit for a message: bounded, on one line, without secrets."""

from collections.abc import Iterable
from typing import Final

from parquet_sink.config.secret import STARS

EXCERPT_BYTES: Final = 1024
_SHORTEST_SECRET: Final = 4  # shorter words would put stars into ordinary text


def excerpt(body: bytes, secrets: Iterable[str] = ()) -> str:
    """At most 1 KiB of `body` as printable text; secrets that a target echoes become stars."""
    return printable(redact(body.decode("utf-8", "replace"), secrets))


def printable(text: str) -> str:
    """`text` with control and other unprintable characters escaped, cut to 1 KiB of UTF-8."""
    shown = "".join(ch if ch.isprintable() else _escaped(ch) for ch in text[:EXCERPT_BYTES])
    return shown.encode("utf-8", "replace")[:EXCERPT_BYTES].decode("utf-8", "ignore")


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with stars in place of every secret, and of a secret's last word (the key after `AppKey `)."""
    words = {word for secret in secrets for word in (secret, secret.split(" ")[-1]) if len(word) >= _SHORTEST_SECRET}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, STARS)
    return text


def _escaped(ch: str) -> str:
    return ch.encode("unicode_escape").decode("ascii")
