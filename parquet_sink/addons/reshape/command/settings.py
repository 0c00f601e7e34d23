"""The settings of a reshape: those of the connector file, with another target; and stores reached as it says."""

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from parquet_sink.config.files import read_configuration
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values, read
from parquet_sink.connectors.check import Checked, check_files
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.rows.settings import MODE
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.store import FileStore
from parquet_sink.targets.target_class import ARCHIVE, PUSH, TYPE, TargetClass, of_address

_TABLE: Final = ems("target.table")
_RAW: Final = "It is raw, and so are the files already; give the connector file of a shaped one."


def for_output(connector: str, worker: str | None, address: str) -> SinkSettings:
    """With files at an address, of a table each below it. Raises InvalidConfiguration."""
    target, given = _class_of(address, "--out"), read_configuration(connector).properties
    table = given.get(_TABLE, "").strip() or given.get("name", "").strip()
    named = {_TABLE: table} if table else {}
    checked, settings = _load(connector, worker, {**_keys(target, address, "{table}"), **named})
    return replace(settings, target=target.settings(_values(checked), checked.worker.worker.machine))


class Stores:
    """File stores that a reshape reads or fills, each opened once, as one connector file says. A context manager."""

    def __init__(self, connector: str, worker: str | None) -> None:
        self._connector, self._worker = connector, worker
        self._opened: dict[str, FileStore] = {}

    def open(self, root: str) -> FileStore:
        """root: an address without what is below it. Raises InvalidConfiguration, SetupError without boto3."""
        if root not in self._opened:
            found = _class_of(root, "FILES")
            checked, _ = _load(self._connector, self._worker, _keys(found, root))
            store = found.store(root, _values(checked), checked.worker.worker.machine)
            if store is None:
                raise InvalidConfiguration([f"Invalid [FILES]. {root} names nothing that keeps files."])
            self._opened[root] = store.open()
        return self._opened[root]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._opened.values():
            one.close()


def _class_of(address: str, option: str) -> TargetClass:
    """Raises InvalidConfiguration."""
    found = of_address(address)
    reason = f"{address} names no target of files." if found is None else found.wrong(address)
    if found is None or reason is not None:
        raise InvalidConfiguration([f"Invalid [{option}]. {reason}"])
    return found


def _keys(target: TargetClass, address: str, below: str = "") -> Mapping[str, str]:
    """A class for buckets alone takes no other type, nor does it need one."""
    found = target.at(address, below) or {}
    return {key: text for key, text in found.items() if (key, text) != (TYPE, PUSH)}


def _values(checked: Checked) -> Values:
    """Of the connector file, with what took the place of its own."""
    resolved = checked.connectors[0].resolved
    return read(keys_of(resolved.values), resolved, Report())


def _load(connector: str, worker: str | None, overrides: Mapping[str, str]) -> tuple[Checked, SinkSettings]:
    checked = check_files([connector], worker, overrides={ARCHIVE: "", **overrides})
    (settings,) = checked.require()
    if settings.shape.raw:
        raise InvalidConfiguration([f"Invalid [{MODE}]. {_RAW} (in {connector})"])
    return checked, settings
