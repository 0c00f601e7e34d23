"""The site that `make docs-site` builds: each page is in its navigation, each link leads to a page of it."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from parquet_sink import api, spark

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in DOCS.rglob("*.md"))


def hook_of() -> ModuleType:
    """docs/site/hook.py, as MkDocs loads it."""
    spec = importlib.util.spec_from_file_location("docs_site_hook", DOCS / "site" / "hook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOK = hook_of()


def pages_in(entries: list[Any]) -> list[str]:
    """The pages of a navigation, in order."""
    found = []
    for one in entries:
        value = one if isinstance(one, str) else next(iter(one.values()))
        found.extend([value] if isinstance(value, str) else pages_in(value))
    return found


def test_the_navigation_has_every_page_once() -> None:
    """Each page below docs/ and each page at the top is in the navigation, which is that of docs/README.md."""
    found = pages_in(HOOK.navigation((DOCS / "README.md").read_text(encoding="utf-8")))
    expected = [HOOK.site_path(page) for page in (*PAGES, *HOOK.TOP)]
    assert sorted(found) == sorted(expected)


def test_the_navigation_has_four_groups() -> None:
    """Tutorials, how-to guides, reference, explanation; those of docs/README.md that list no page are left out."""
    found = HOOK.navigation((DOCS / "README.md").read_text(encoding="utf-8"))
    assert found[0] == "README.md"
    assert [next(iter(one)) for one in found[1:]] == ["Tutorials", "How-to guides", "Reference", "Explanation"]


@pytest.mark.parametrize("page", [*PAGES, *HOOK.TOP])
def test_links_within_the_repository_lead_to_pages_of_the_site(page: str) -> None:
    """What a page links to in the repository, a file outside of docs/ and a folder too, is on the site."""
    on_site = {HOOK.site_path(one) for one in (*PAGES, *HOOK.outside(PAGES))}
    linked = set(HOOK.linked(page, (ROOT / page).read_text(encoding="utf-8")))
    pictures = {one for one in linked if one.endswith((".png", ".svg"))}
    assert {HOOK.site_path(one) for one in linked - pictures} - on_site == set()


def test_links_are_rewritten_and_code_is_not() -> None:
    """A link to a file becomes one to its page, with its anchor; addresses and code blocks stay."""
    text = "[a](../../ARCHITECTURE.md#top) [b](s3.md) [c](https://example.org/x.md) [d](../../deploy)\n"
    code = "```python\n[a](s3.md)[0](../../deploy)\n```\n"
    found = HOOK.with_links("docs/how-to/raw.md", text + code)
    assert found == (
        "[a](../files/ARCHITECTURE.md#top) [b](s3.md) [c](https://example.org/x.md) [d](../files/deploy/index.md)\n"
        + code
    )
    assert HOOK.with_links("ARCHITECTURE.md", "[a](docs/how-to/s3.md)") == "[a](../how-to/s3.md)"


def test_labels_of_fences_are_titles() -> None:
    """What stands behind a fence's language, by which tests find examples, is shown above the code."""
    assert HOOK.with_links("docs/a.md", "```json input\n{}\n```\n```json\n```") == (
        '```json title="input"\n{}\n```\n```json\n```'
    )


def test_a_file_that_is_no_page_becomes_one() -> None:
    """A configuration is shown as it stands, under its path; a folder lists its files."""
    assert "name=orders" in HOOK.page_of("config/orders.properties")
    assert "# config/orders.properties" in HOOK.page_of("config/orders.properties")
    assert "- [shop_csv.py](shop_csv.py.md)" in HOOK.page_of("docs/examples/own-converter")


def test_the_python_api_is_complete() -> None:
    """docs/reference/python-api.md has each name of parquet_sink.api and of parquet_sink.spark once, and no other."""
    page = HOOK.with_signatures((DOCS / HOOK.API_PAGE).read_text(encoding="utf-8"))
    found = [line.removeprefix("::: ") for line in page.splitlines() if line.startswith("::: ")]
    expected = [f"parquet_sink.api.{name}" for name in api.__all__]
    assert sorted(found) == sorted(expected + [f"parquet_sink.spark.program.{name}" for name in spark.__all__])
