"""Writes the golden files anew: `python -m tests.golden`, after what they hold was changed on purpose."""

from tests.golden import keys

keys.FILE.write_text(keys.written(keys.tables()), encoding="utf-8")
