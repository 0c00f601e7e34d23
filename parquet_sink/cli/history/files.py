"""Which histories a command is about: those of connector files, or all that are found below a folder."""

import logging
import tempfile
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from parquet_sink.cli.beside import check_beside
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.naming import HISTORY_FILE
from parquet_sink.validate.preflight import inspect

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectorHistory:
    """Where one connector's history is, or would be. enabled: whether it keeps one."""

    connector: str
    path: Path
    enabled: bool = True


def histories(args: Namespace) -> list[ConnectorHistory]:
    """Those that `files` name; without files all that are below `tmp_dir`, else below the system's temporary folder.

    Raises InvalidConfiguration where files are wrong, or nothing is found without them.
    """
    if not args.files:
        return _below(Path(args.tmp_dir or tempfile.gettempdir()))
    if args.tmp_dir is not None:
        raise InvalidConfiguration(
            [f"Invalid [--tmp-dir]. {args.tmp_dir!r} does not go with connector files, which name theirs; remove one."]
        )
    checked = inspect(check_beside(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.debug("%s", warning)
    return [ConnectorHistory(one.name, Path(one.history_file), one.history.enabled) for one in checked.require()]


def _below(folder: Path) -> list[ConnectorHistory]:
    """Of connectors whose `tmp.dir` is this folder. A folder that is called by a shortened name keeps that."""
    found = sorted(folder.glob(f"*/{HISTORY_FILE}"))
    if not found:
        problem = f"None is given, and {str(folder)!r} has no connector's history"
        cure = "name connector files, or their connect.ems.tmp.dir with --tmp-dir"
        raise InvalidConfiguration([f"Invalid [connector.properties]. {problem}; {cure}."])
    return [ConnectorHistory(unquote(path.parent.name, errors="surrogateescape"), path) for path in found]
