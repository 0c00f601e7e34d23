"""Keys of the worker file about hosting connectors: where they are kept, and where plug-ins are."""

from collections.abc import Mapping
from typing import Final

from parquet_sink.config.key import Key, Origin, Type

HOSTING: Final = "Hosting connectors"
STORE_FOLDER: Final = "config.storage.folder"
PLUGIN_PATH: Final = "plugin.path"
TRACKING: Final = "topic.tracking.enable"
TRACKING_RESET: Final = "topic.tracking.allow.reset"

HOSTING_KEYS: Final = (
    Key(
        STORE_FOLDER,
        HOSTING,
        Type.STRING,
        "Folder in which `parquet-sink worker` keeps the connectors that were made by REST, with what each is to do "
        "(run, paused, stopped); one worker at a time. They hold passwords as they were given, so the folder is this "
        "user's alone.",
        default_text="`$STATE_DIRECTORY`, which systemd sets, else `$XDG_STATE_HOME/parquet-sink`, else "
        "`~/.local/state/parquet-sink`",
        origin=Origin.OWN,
    ),
    Key(
        TRACKING,
        HOSTING,
        Type.BOOLEAN,
        "Whether it is kept, and told by REST, of which topics a connector delivered records "
        "(`/connectors/NAME/topics`).",
        default=True,
        origin=Origin.CONNECT,
    ),
    Key(
        TRACKING_RESET,
        HOSTING,
        Type.BOOLEAN,
        "Whether that list may be emptied (`/connectors/NAME/topics/reset`).",
        default=True,
        origin=Origin.CONNECT,
    ),
    Key(
        PLUGIN_PATH,
        HOSTING,
        Type.LIST,
        "Folders with Python packages, as `pip install --target` makes them: connector classes, transforms, predicates "
        "and converters are found there, too. On a cluster they must be installed where executors run. Java plug-ins "
        "cannot be loaded.",
        default=(),
        origin=Origin.CONNECT,
    ),
)


def default_store_folder(environment: Mapping[str, str]) -> str | None:
    """Where a worker's connectors are kept when the worker file does not say; None: nobody knows."""
    given = environment.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return given
    state = environment.get("XDG_STATE_HOME") or (environment.get("HOME") and f"{environment['HOME']}/.local/state")
    return f"{state}/parquet-sink" if state else None
