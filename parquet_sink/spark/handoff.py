"""How a connector's settings reach Spark's Python processes: through a private folder, never as a Spark option.

Options of a data source are visible in query plans, the UI and the event log. So an option carries only the path of a
run folder (mode 0700); the planner, which runs on the driver's machine, reads the settings from it, and they travel to
executors inside the pickled reader and writer.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from parquet_sink.config.secret import dump_with_secrets, load_with_secrets
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.storage import prepare_connector
from parquet_sink.model.instance import Instance
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.state.database import FileIds

S = TypeVar("S", bound=ConnectorSettings)
S_co = TypeVar("S_co", bound=ConnectorSettings, covariant=True)
RUN_FOLDER: Final = "run.folder"
"""The one option of both data sources: the folder that `write` made."""
SETTINGS_FILE: Final = "settings.json"
INSTANCE_FILE: Final = "instance.json"
STATE_FILE: Final = "state.json"


@dataclass(frozen=True)
class Handoff(Generic[S_co]):
    """A connector's settings, its instance, and the folder that its processes share on the driver's machine.

    state_ids: which files the state store of this run is; none where it has no store.
    """

    settings: S_co
    instance: Instance
    folder: str
    state_ids: FileIds = ()

    @property
    def state_path(self) -> Path:
        """Of the state store."""
        return state_path(self.settings)

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """What `write` put into the folder: the settings, the instance, and which files the state store is."""
        return Path(self.folder, SETTINGS_FILE), Path(self.folder, INSTANCE_FILE), Path(self.folder, STATE_FILE)


def state_path(settings: ConnectorSettings) -> Path:
    """Of a connector's state store: in its folder below `tmp.dir`, because it outlives a run."""
    return Path(naming.connector_folder(settings.tmp_dir, settings.name), naming.STATE_FILE)


def write(settings: S, folder: Path, state_ids: FileIds = (), instance: Instance | None = None) -> Handoff[S]:
    """Puts the settings into `folder`, readable by this user alone. instance: whose folder was lost; else a new one.

    Raises StorageFailed when tmp.dir is of no use, OSError when the folder is.
    """
    prepare_connector(settings.tmp_dir, settings.name)
    given = Handoff(settings, instance or Instance.new(), str(folder), state_ids)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    texts = (dump_with_secrets(settings), json.dumps(asdict(given.instance)), json.dumps(state_ids))
    for path, text in zip(given.files, texts, strict=True):
        _private(path, text)
    return given


def read(options: Mapping[str, str]) -> Handoff[Any]:
    """What `write` put there. Raises InvalidConfiguration."""
    given = options.get(RUN_FOLDER)
    if given is None:
        raise InvalidConfiguration(
            [
                (
                    f"Invalid [{RUN_FOLDER}]. Options are missing; give .options(**options) of "
                    "parquet_sink.connector(...) or parquet_sink.dataframes(...)."
                )
            ]
        )
    folder = Path(given)
    try:
        settings = load_with_secrets((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
        instance = Instance(**json.loads((folder / INSTANCE_FILE).read_text(encoding="utf-8")))
        ids = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidConfiguration(
            [
                (
                    f"Invalid [{RUN_FOLDER}]. {given} is gone: the `with` that made these options has ended; keep it "
                    "open while the query runs."
                )
            ]
        ) from None
    except OSError as error:
        raise InvalidConfiguration([f"Invalid [{RUN_FOLDER}]. {given} cannot be read: {error.strerror}"]) from None
    return Handoff(settings, instance, given, tuple(one and (one[0], one[1]) for one in ids))


def _private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
