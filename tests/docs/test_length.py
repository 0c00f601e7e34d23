"""Pages stay short enough to be read: what grows is cut, or becomes a page of its own.

A word has a letter or a digit: bars and lines of tables, dashes and brackets that stand alone are not counted.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README_WORDS = 850
WORDS = 45_000
"""Of all pages below docs/ that are written by hand."""
LINES = 400
"""Of each of them."""
TABLE = "| `a.b` | 1 % - of it |\n|---|---|\n"
"""As Markdown has it."""


def by_hand() -> list[str]:
    """The pages below docs/ that no program writes; those that one writes say so at the top."""
    pages = [page.relative_to(ROOT).as_posix() for page in sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if "<!-- Written by" not in text_of(page)[:400]]


def text_of(page: str) -> str:
    """A page."""
    return (ROOT / page).read_text(encoding="utf-8")


def words(text: str) -> int:
    """How many words a text has: what spaces part and has a letter or a digit."""
    return sum(any(map(str.isalnum, token)) for token in text.split())


def test_words_have_letters_or_digits() -> None:
    """Bars, lines and dashes count for nothing, a number and a key for one word each."""
    assert words(TABLE) == 4


def test_the_readme_is_short() -> None:
    """README.md is read in a few minutes; what needs more words has a page."""
    assert words(text_of("README.md")) <= README_WORDS


def test_pages_that_programs_write_are_left_out() -> None:
    """What is counted by hand lacks the pages of keys and commands, and has the home page."""
    pages = by_hand()
    assert {"docs/reference/configuration.md", "docs/reference/cli.md"}.isdisjoint(pages)
    assert "docs/README.md" in pages
    assert len(pages) > 50


def test_all_pages_together_are_short() -> None:
    """Pages written by hand have fewer words together than the bound: who adds a page cuts another."""
    assert sum(words(text_of(page)) for page in by_hand()) <= WORDS


@pytest.mark.parametrize("page", by_hand())
def test_no_page_is_long(page: str) -> None:
    """A page has no more lines than the bound."""
    assert text_of(page).count("\n") <= LINES
