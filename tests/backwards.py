"""Each second process of `make test` reads the files of tests from the last to the first.

In a fresh copy a file is compiled by whoever reads it first, and kept. Two that begin at different ends meet in the
middle: each compiles half, and finds the other half there. Side by side both would compile all of it.
"""

from collections.abc import Generator
from typing import Final

import pytest

BACKWARDS: Final = "backwards"
"""What a process is told: whether it is one of these."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A folder's files and folders in the order in which they are read."""
    report = yield
    if isinstance(collector, pytest.Directory) and getattr(collector.config, "workerinput", {}).get(BACKWARDS):
        report.result = (report.result or [])[::-1]
    return report
