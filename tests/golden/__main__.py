"""Writes the golden files anew: `python -m tests.golden`, after what they hold was changed on purpose."""

from tests.golden import keys, persisted

keys.FILE.write_text(keys.written(keys.tables()), encoding="utf-8")
persisted.FILE.write_text(persisted.written(persisted.persisted()), encoding="utf-8")
