"""Transforms made from keys, as a connector file gives them."""

from collections.abc import Mapping
from typing import Any

from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.transform.fields.base import FieldTransform
from parquet_sink.transform.protocol import Side


def made(kind: Any, keys: Mapping[str, str], side: Side = "value") -> FieldTransform:
    """A transform of a class. Fails where a key is wrong."""
    report = Report()
    values = read(kind.keys, Resolved(keys, keys), report)
    assert report.problems == []
    found = kind(values, side)
    assert isinstance(found, FieldTransform)
    return found


def problems(kind: Any, keys: Mapping[str, str]) -> list[str]:
    """What is wrong with keys, one by one."""
    report = Report()
    read(kind.keys, Resolved(keys, keys), report)
    return report.problems
