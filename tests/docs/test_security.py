"""SECURITY.md says how to report a vulnerability."""

import re
from pathlib import Path

from tests.messages import assert_says

PAGE = Path(__file__).parents[2] / "SECURITY.md"


def test_a_vulnerability_has_a_private_way() -> None:
    """The repository's own, by the names that its page has; no address that nobody reads."""
    section = PAGE.read_text(encoding="utf-8").split("## Report a vulnerability\n")[1].split("\n## ")[0]
    assert_says(section, "Security", "Report a vulnerability", "private", "not open a public issue", "version")
    assert not re.search(r"\S+@\S+|https?://", section)
