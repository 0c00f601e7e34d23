"""Transforms of whole records: what is key and what value, headers, topics; and predicates."""
