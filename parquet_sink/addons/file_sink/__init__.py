"""A file, or standard output, as a record sink: a line for each record."""
