"""Whether an archive holds exactly the files that the target accepted, after a crash run."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from integration.oracle.stream import Stream
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.archive.archive import connector_folder, path_of


def keys(archive: Path, kind: str) -> dict[str, str]:
    """Of a connector file. kind: `required` or `behind`."""
    archive.mkdir(exist_ok=True)
    required = str(kind == "required").lower()
    return {"connect.ems.archive.url": f"directory:{archive}", "connect.ems.archive.required": required}


def troubles(archive: Path, streams: Sequence[Stream], client: TargetClient) -> list[str]:
    """What differs, in words; each connector is called as its topic."""
    found: list[str] = []
    for stream in streams:
        topic, table = stream.kind.topic, stream.kind.table
        expected = {path_of(topic, one["name"]): str(one["sha256"]) for one in client.files(table)}
        folder = archive / connector_folder(topic)
        kept = {
            str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.parquet")
        }
        differing = [name for name in kept.keys() & expected.keys() if kept[name] != expected[name]]
        if not expected or kept != expected:
            found.append(
                f"archive of {topic}: {len(expected)} files accepted, {len(expected.keys() - kept.keys())} of them "
                f"missing, {len(kept.keys() - expected.keys())} alien, {len(differing)} altered"
            )
    return found
