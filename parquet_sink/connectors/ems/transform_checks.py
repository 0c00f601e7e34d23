"""Names that transforms change before the sink looks for them: a field to obfuscate would leave in clear."""

from collections.abc import Callable, Mapping
from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.plugins import PluginUnusable

_FIELDS: Final = ems("obfuscation.fields")
_OTHERWISE: Final[Mapping[str, str]] = {
    _FIELDS: "or it leaves in clear",
    ems("data.primary.key"): "or no record has its primary key",
    ems("order.field.name"): "or no record has its order",
}
_Path = list[str]
_Settings = Mapping[str, str]


def check(values: Values, report: Report) -> None:
    """Warns of names of fields that a transform gives another name, where that is not named."""
    if not values.names("transforms"):
        return
    for key, otherwise in _OTHERWISE.items():
        named = values.names(key) or tuple(filter(None, [values.text(key)]))
        for name in named:
            moved, by = _moved(name, values)
            if moved not in (name, *named):
                report.warn(
                    key,
                    f"{quoted(name)} is a field that {by} makes {quoted(moved)}, and transforms come before; name it "
                    f"so, {otherwise}.",
                )


def _moved(name: str, values: Values) -> tuple[str, str]:
    """What the field of a decoded value is called in the end, and the transform that gave it that name."""
    path, by = name.split("."), ""
    for step in values.names("transforms"):
        prefix = f"transforms.{step}."
        change = _CHANGES.get(_class_of(values.texts.get(f"{prefix}type", "").strip()))
        if change is not None:
            own = {key.removeprefix(prefix): text.strip() for key, text in values.texts.items()}
            found = change(path, own)
            path, by = found, by if found == path else f"transforms.{step}"
    return ".".join(path), by


def _class_of(type_: str) -> str:
    from parquet_sink import plugins
    from parquet_sink.transform.classes import TRANSFORM_CLASSES  # loads Arrow: only where there are transforms

    try:
        return plugins.locate(TRANSFORM_CLASSES, type_).full_name.rpartition(".")[2]
    except PluginUnusable:  # told elsewhere
        return ""


def _renamed(path: _Path, settings: _Settings) -> _Path:
    pairs = [pair.split(":") for pair in settings.get("renames", "").split(",") if pair.count(":") == 1]
    new = {old.strip(): name.strip() for old, name in pairs}
    return path if path[0] in new.values() else [new.get(path[0], path[0]), *path[1:]]


def _hoisted(path: _Path, settings: _Settings) -> _Path:
    field = settings.get("field", "")
    return path if path[0].startswith(field) else [field, *path]


def _extracted(path: _Path, settings: _Settings) -> _Path:
    return path[1:] if len(path) > 1 and path[0] == settings.get("field", "") else path


_CHANGES: Final[Mapping[str, Callable[[_Path, _Settings], _Path]]] = {
    "ReplaceField$Value": _renamed,
    "HoistField$Value": _hoisted,
    "ExtractField$Value": _extracted,
}
