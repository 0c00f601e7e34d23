"""Beside the core, which reaches them through the registry alone."""
