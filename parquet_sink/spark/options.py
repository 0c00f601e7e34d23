"""What is wrong with `--master` and `--conf`, told in words: Spark itself answers with a trace, or not at all."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

MASTERS: Final = "local[N,ATTEMPTS], spark://HOST:PORT, k8s://URL or yarn"
_MASTER: Final = re.compile(
    r"local"
    r"|local\[(?:[1-9]\d*|\*)(?:\s*,\s*[1-9]\d*)?\]"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s:/,]+:\d{1,5}(?:,[^\s:/,]+:\d{1,5})*"
    r"|k8s://\S+"
    r"|yarn"
)
_SIZE: Final = re.compile(r"[1-9]\d*(?:b|[kmgtp]b?)?", re.IGNORECASE)
_HEAP: Final = re.compile(r"[1-9]\d*[kmgt]", re.IGNORECASE)
"""Handed to Java as it stands, which takes a number alone for bytes."""
_HEAPS: Final = ("spark.driver.memory", "spark.executor.memory")
_SIZES: Final = (".memory", ".memoryOverhead", ".maxResultSize", ".pyspark.memory", ".offHeap.size")
_WHOLE: Final = re.compile(r"\d+")
_WHOLES: Final = (".cores", ".cores.max", ".maxFailures", ".instances", ".partitions", ".minBatchesToRetain")


def problems(master: str | None, conf: Sequence[tuple[str, str]]) -> list[str]:
    """One line for each, with the option, the value and the cure."""
    found = []
    if master is not None and _MASTER.fullmatch(master) is None:
        found.append(f"Invalid [--master]. {master!r} is no Spark master; write {MASTERS}.")
    return found + [f"Invalid [--conf {key}]. {reason}" for key, value in conf for reason in _reasons(key, value)]


def _reasons(key: str, value: str) -> Iterator[str]:
    if key == "spark.master":
        yield "The master is set with --master; write it there."
    elif key in _HEAPS:
        if _HEAP.fullmatch(value) is None:
            yield f"{value!r} is not a size of a Java heap; write a whole number with m or g, for example 1g."
    elif key.endswith(_SIZES) and _SIZE.fullmatch(value) is None:
        yield f"{value!r} is not a size; write a whole number with k, m or g, for example 512m."
    elif key.endswith(_WHOLES) and _WHOLE.fullmatch(value) is None:
        yield f"{value!r} is not a whole number; write digits only."
