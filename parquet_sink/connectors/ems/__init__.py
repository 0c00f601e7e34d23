"""The EMS connector: its keys, its checks, its settings."""
