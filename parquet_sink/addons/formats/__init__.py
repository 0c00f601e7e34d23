"""Formats beside JSON, text and bytes: a package for each, whose converter is in the registry."""
