"""Names of connectors: what a configuration is called, and what its key `name` is read as, must be the same."""

from typing import Final

from parquet_sink.config.report import quoted

_MISSING: Final = 'Invalid [name]. Missing required configuration "name" which has no default value.'


def problems(name: str | None) -> list[str]:
    """What is wrong with a name beyond what the table of keys says; None: there is none."""
    if name is None:
        return [_MISSING]
    if not name.strip():
        return ["Invalid [name]. It is empty; name the connector."]
    if name != name.strip():
        return [f"Invalid [name]. {quoted(name)} begins or ends with a blank; remove it."]
    return [f"Invalid [name]. {quoted(name)} holds a placeholder; write the name itself."] if "${" in name else []
