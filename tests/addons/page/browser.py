"""Debian's Chromium under Playwright, and what a person would see of a page that is not right."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

SCREENS = (
    *("/ui", "/ui?state=failed", "/ui?state=late&find=nothing", "/ui/workers", "/ui/nothing-here"),
    *("/ui/connectors/orders", "/ui/connectors/invoices-refused", "/ui/connectors/archive-2019"),
    *("/ui/connectors/orders/files?topic=orders&partition=0&at=1500", "/ui/connectors/clicks/files?outcome=failed"),
    *("/ui/connectors/orders/diverted", "/ui/connectors/clicks/diverted", "/ui/connectors/orders/config"),
    *("/ui/connectors/orders/diverted/record?topic=orders&partition=0&offset=1241", "/ui/connectors/orders/tuning"),
    *("/ui/connectors/orders/config?as=json", "/ui/connectors/orders/config/edit", "/ui/new", "/ui/new?by=paste"),
    *("/ui/connectors/orders/do/flush", "/ui/connectors/orders/do/stop", "/ui/connectors/orders/replay"),
    *("/ui/connectors/orders/offsets", "/ui/connectors/archive-2019/offsets"),
)
"""All screens that need no answer of another program."""


def chromium() -> str | None:
    """Where it is: what CHROMIUM names, else on the path; None where there is none."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window; root has no sandbox."""
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=as_root)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[tuple[BrowserContext, Page, list[str]]]:
    """A page of its own, and what it complains about: errors, and requests to anybody but the worker."""
    context = browser.new_context(base_url=address, **options)
    page, wrong = context.new_page(), list[str]()
    page.on("console", lambda one: wrong.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda one: wrong.append(str(one)))
    page.on("request", lambda one: None if one.url.startswith(address) else wrong.append(f"asks {one.url}"))
    try:
        yield context, page, wrong
    finally:
        context.close()
