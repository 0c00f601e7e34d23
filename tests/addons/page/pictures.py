"""`make pictures`: takes the pictures of docs/how-to/page.md, each screen light and dark.

python -m tests.addons.page.pictures docs/pictures
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.addons.page import scene
from tests.addons.page.browser import chromium, launched, visiting

SCREENS: Final = {
    "connectors": "/ui",
    "connector": "/ui/connectors/orders",
    "failed": "/ui/connectors/invoices-refused",
    "files": "/ui/connectors/clicks/files?topic=orders&partition=0&at=1500",
    "file": "",
    "diverted": "/ui/connectors/orders/diverted",
    "record": "/ui/connectors/orders/diverted/record?topic=orders&partition=0&offset=1241",
    "configuration": "/ui/connectors/orders/config",
    "tuning": "/ui/connectors/orders/tuning?aim=freshness&value=20s",
    "stop": "/ui/connectors/orders/do/stop",
    "new": "/ui/new",
}
"""By the name of its picture. That of a file is reached by a click."""
WIDTH, TALLEST = 1400, 1000


def main(folder: Path) -> None:
    """Writes `page-NAME-light.png` and `page-NAME-dark.png` there, and one of a telephone."""
    place = Path(tempfile.gettempdir(), "parquet-sink")  # it is on a picture
    shutil.rmtree(place, ignore_errors=True)
    herder = scene.every_state(place)
    with scene.showing(herder) as client, launched() as browser:
        address = f"http://127.0.0.1:{client.port}"
        for scheme in ("light", "dark"):
            size = {"width": WIDTH, "height": TALLEST}
            with visiting(browser, address, color_scheme=scheme, viewport=size) as (_, page, _):
                for name, path in SCREENS.items():
                    if path:
                        page.goto(path, timeout=90_000)
                    else:
                        page.locator("main tbody a").nth(3).click()
                    page.set_viewport_size({"width": WIDTH, "height": 300})
                    tall = page.evaluate("document.documentElement.scrollHeight")
                    page.set_viewport_size({"width": WIDTH, "height": min(tall, TALLEST)})
                    page.wait_for_timeout(1_200)
                    page.screenshot(path=str(folder / f"page-{name}-{scheme}.png"))
                    page.set_viewport_size(size)
        with visiting(browser, address, viewport={"width": 390, "height": 780}) as (_, page, _):
            page.goto("/ui")
            page.wait_for_timeout(800)
            page.screenshot(path=str(folder / "page-telephone.png"))


if __name__ == "__main__":
    if chromium() is None:
        sys.exit("There is no Chromium: apt-get install chromium, or name one in CHROMIUM.")
    main(Path(sys.argv[1]))
