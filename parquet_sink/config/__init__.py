"""One table of every key: parsing, validation, documentation."""
