"""A connector file whose target is a folder, so that a command can send and its rows can be read."""

from pathlib import Path


def connector_lines(folder: Path) -> dict[str, str]:
    """Its keys: topic `orders`, JSON, target and temporary files below a folder that is there."""
    return {
        "name": "orders",
        "topics": "orders",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "connect.ems.endpoint": f"directory:{folder / 'out'}",
        "connect.ems.target.table": "T",
        "connect.ems.commit.size.bytes": "1000000",
        "connect.ems.commit.records": "5",
        "connect.ems.commit.interval.ms": "1000",
        "connect.ems.tmp.dir": str(folder / "tmp"),
    }
