"""Schemas from a registry, and records that name one."""
