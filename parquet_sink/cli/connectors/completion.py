"""What the shell offers behind `parquet-sink connectors ACTION` and `parquet-sink status`: names, or files."""

import glob
from argparse import Namespace
from typing import Any, Final

from parquet_sink.errors import SinkError

_PATIENCE_S: Final = 2.0
"""A shell that waits for a worker that is away is worse than no names."""
_ENDINGS: Final = (".properties", ".json")


def complete_target(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """For argcomplete: connector files, and names of the worker's connectors."""
    return complete_file(prefix, parsed_args) + complete_name(prefix, parsed_args)


def complete_name(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """Names of connectors that were not given yet; none when the worker cannot be asked."""
    from parquet_sink.cli.worker_api.opening import open_worker

    given = getattr(parsed_args, "targets", None) or ()
    try:
        with open_worker(Namespace(**{**vars(parsed_args), "timeout": _PATIENCE_S})) as api:
            names = api.get("connectors")
    except SinkError:
        return []
    listed = names if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str) and name.startswith(prefix) and name not in given]


def complete_file(prefix: str, parsed_args: Namespace, **more: Any) -> list[str]:
    """Connector files, and folders to look into."""
    found = glob.glob(glob.escape(prefix) + "*")
    folders = glob.glob(glob.escape(prefix) + "*/")
    return [path for path in found if path.endswith(_ENDINGS)] + folders
