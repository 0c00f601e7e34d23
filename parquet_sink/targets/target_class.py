"""Classes of targets: what a plug-in of that kind has, and which one a connector file means.

`connect.ems.target.type` names a class. The one that it names by default, the push API, gives way to another whose
addresses `connect.ems.endpoint` may be, as a folder's is: such a class is named by the scheme.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from parquet_sink import plugins
from parquet_sink.config.key import Key, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.files.settings import Codec
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.plugins import BUILT_IN, TARGETS, Kind, PluginUnusable
from parquet_sink.targets.settings import TargetSettings
from parquet_sink.targets.store import StoreSettings

TYPE: Final = ems("target.type")
ARCHIVE: Final = ems("archive.url")
PUSH: Final = "push"


@runtime_checkable
class TargetClass(Protocol):
    """A class that `connect.ems.target.type`, or the scheme of an address, may name. A subclass has the defaults.

    title: what it is, for messages. keys: those that it adds to a connector file. hint: what is said of its keys where
    it is not the target. codec: how files are compressed unless the file says; None for what is usual. store_keys:
    names of keys that its store looks at. settings_class: of its settings.
    """

    title: str
    keys: Sequence[Key]
    hint: str = ""
    codec: Codec | None = None
    store_keys: frozenset[str] = frozenset()
    settings_class: type | None = None

    def check(self, values: Values, report: Report) -> None:
        """Report what is wrong between keys; each by itself was checked."""
        ...

    def settings(self, values: Values, machine: Machine) -> TargetSettings:
        """What opens the target, from values about which there was no problem."""
        ...

    def wrong(self, address: str) -> str | None:
        """Why an address of its scheme names nothing, with the cure; None when it does."""
        return None

    def at(self, address: str, below: str = "") -> Mapping[str, str] | None:
        """Keys that send files there; None where no address says it. below: `{table}` for a folder for each table.

        A blank credential is to be given anew.
        """
        return None

    def place(self, values: Values) -> str | None:
        """What the addresses of all files begin with; None where another content under a file's name may be taken."""
        return None

    def kept_by(self, values: Values) -> str | None:
        """The key and value of a place that never takes another content under a name; None for any other."""
        return None

    def store(self, address: str, values: Values, machine: Machine, key: str = "") -> StoreSettings | None:
        """The file store at an address in which nothing is wrong; None where there is none.

        key: names the address where that is not one of the target's keys.
        """
        return None

    def check_store(self, values: Values, report: Report) -> None:
        """As `check`, where the class is not the target, but the archive's."""


TARGET_CLASSES: Final[Kind[TargetClass]] = Kind(TARGETS, "target", (), TargetClass)  # type: ignore[type-abstract]


def find_target(name: str) -> TargetClass:
    """The class of a name. Raises plugins.PluginUnusable."""
    return plugins.find(TARGET_CLASSES, name)


def built_in() -> tuple[TargetClass, ...]:
    """Those that are always there."""
    return tuple(find_target(name) for name in BUILT_IN[TARGETS])


def of_address(address: str) -> TargetClass | None:
    """The class of an address' scheme; None for one of another scheme, such as https. Raises PluginUnusable."""
    scheme, colon, _ = address.partition(":")
    if not colon or scheme.lower() in ("http", "https") or not scheme.isidentifier():
        return None
    try:
        located = plugins.locate(TARGET_CLASSES, scheme.lower())
    except PluginUnusable:
        return None
    return plugins.load(TARGET_CLASSES, located)


def of_endpoint(address: str) -> TargetClass:
    """Likewise, of what stands in `connect.ems.endpoint`; the push API for any other address."""
    found = of_address(address)
    return find_target(PUSH) if found is None or ENDPOINT not in (found.at(address) or ()) else found


def target_of(values: Values) -> TargetClass:
    """The class of a connector file's target, of a type that is wrong by itself the push API. Raises PluginUnusable."""
    named = values.text(TYPE) or PUSH
    return of_endpoint(values.texts.get(ENDPOINT, "").strip()) if named == PUSH else find_target(named)


def keeps_files(target: TargetClass) -> bool:
    """Whether a class has file stores."""
    return getattr(type(target), "store", TargetClass.store) is not TargetClass.store


def archive_class(values: Values) -> TargetClass | None:
    """The class of the archive's address, rightly written or not; None without an archive."""
    return of_address(values.texts.get(ARCHIVE, "").strip())


def archive_keys(values: Values) -> frozenset[str]:
    """Names of keys that the archive's store looks at."""
    found = archive_class(values)
    return frozenset() if found is None else found.store_keys
