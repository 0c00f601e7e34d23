"""A sink judged from outside: the load that knows every record, the group's offsets, and the oracle over identities."""
