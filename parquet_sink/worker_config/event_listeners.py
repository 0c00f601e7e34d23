"""Listeners of events that a worker file names: `event.listeners`, and of each its class and params."""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from parquet_sink import plugins
from parquet_sink.config.class_settings import CLASS, PARAM, ClassCheck, classes_by_name, section, validate
from parquet_sink.config.key import Key
from parquet_sink.config.report import PrefixedReport, Report, printable
from parquet_sink.config.values import Values
from parquet_sink.model.events import Event
from parquet_sink.plugins import LISTENERS, Kind, PluginUnusable

LIST: Final = "event.listeners"


class EventListener(Protocol):
    """Is told what happens to files, ranges, topic-partitions and connectors, by one thread, in the order of each."""

    def on_event(self, event: Event) -> None:
        """Something happened; the worker waits meanwhile. What this raises is logged without its words."""
        ...

    def close(self) -> None:
        """The program ends; nothing comes any more."""
        ...


@runtime_checkable
class ListenerClass(Protocol):
    """What `event.listeners.NAME.class` names: a class, or whatever else is called like one.

    keys: what may stand behind `event.listeners.NAME.param.`, named without that.
    """

    keys: Sequence[Key]

    def __call__(self, values: Values) -> EventListener:
        """A listener, made when the file is checked, too. values: by the names of `keys`. Raises WrongSettings."""
        ...


LISTENER_CLASSES: Final[Kind[ListenerClass]] = Kind(
    LISTENERS,
    "event listener",
    ("EventListener", "Listener"),
    ListenerClass,  # type: ignore[type-abstract]
    called=True,
    by_path=True,
)


def event_listeners(values: Values, report: Report) -> dict[str, EventListener]:
    """By name, in the order of the file. What is wrong goes to the report."""
    found: dict[str, EventListener] = {}
    for name, texts in classes_by_name(LIST, "listener", values.texts, report).items():
        key, class_name = f"{LIST}.{name}.{CLASS}", texts.get(CLASS, "").strip()
        if not class_name:
            report.problem(key, f"It is missing; name the class of the event listener {printable(name)}.")
            continue
        try:
            class_ = plugins.find(LISTENER_CLASSES, class_name)
        except PluginUnusable as error:
            report.problem(key, str(error))
        else:
            _make(name, class_, values, report, found)
    return found


def _make(name: str, class_: ListenerClass, values: Values, report: Report, found: dict[str, EventListener]) -> None:
    prefix = f"{LIST}.{name}.{PARAM}"

    def make(own: Values) -> None:
        found[name] = class_(own)

    params = section(values, [one for one in values.texts if one.startswith(prefix)], prefix)
    check = ClassCheck("event listener", tuple(class_.keys), make, f"{LIST}.{name}.{CLASS}")
    validate(check, params, PrefixedReport(report, prefix))
