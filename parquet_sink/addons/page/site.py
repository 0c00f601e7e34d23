"""The page's screens put together: what a worker that serves REST hands to its application."""

import time
from collections.abc import Callable

from parquet_sink.addons.page.actions import Actions
from parquet_sink.addons.page.connector import ConnectorScreens
from parquet_sink.addons.page.facts import Facts
from parquet_sink.addons.page.forms import Forms
from parquet_sink.addons.page.frame import Pages, View, Visit, shows
from parquet_sink.addons.page.hour import LastHour
from parquet_sink.addons.page.overview import Overview
from parquet_sink.worker.herder.protocol import Herder


class WorkersScreen:
    """Who is there, and what each has."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    @shows("/ui/workers", live=("table",))
    def all(self, visit: Visit) -> View:
        found = self._herder.workers()
        return View("workers.html", {"workers": found.workers, "waiting": found.waiting, "group": found.group})


class WorkersPage:
    """The page of one worker. listener: takes that worker's events."""

    def __init__(self) -> None:
        self.listener = LastHour()

    def over(self, herder: Herder) -> Pages:
        """The screens."""
        return make_pages(herder, self.listener)


def make_pages(herder: Herder, hours: LastHour, clock: Callable[[], float] = time.time) -> Pages:
    """All screens. hours: a listener of this worker's events. clock: epoch seconds."""
    facts = Facts(herder, hours, clock)
    of_one = ConnectorScreens(herder, facts, clock)
    screens = Actions(of_one), Forms(of_one), of_one, WorkersScreen(herder)
    pages = Pages(herder.worker_id, lambda env: (Overview(herder, facts, env, clock), *screens))
    pages.for_workers = facts.endpoints()
    return pages
