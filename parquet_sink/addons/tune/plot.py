"""A picture of what settings give: freshness against files per hour, both on logarithmic axes.

Drawn by Matplotlib (the extra `plot`), which is loaded only when a picture is asked for.
"""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from parquet_sink.addons.tune.model import Simulated
from parquet_sink.addons.tune.quantities import count_text, duration_text, size_text
from parquet_sink.errors import InvalidConfiguration, SetupError, install

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS: Final = (".png", ".svg", ".pdf")
_TICKS: Final = (0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1_200, 3_600, 7_200, 14_400, 43_200, 86_400)
_GREY, _BLUE, _RED, _ORANGE, _OBJECTIVE = "#c9ced6", "#1f5fa8", "#c0392b", "#d98200", "#7a8799"


@dataclass(frozen=True)
class Picture:
    """What is drawn. tried: all settings that were simulated. limits: as asked for, None where nothing was.

    freshness: name of the percentile of the vertical axis, such as "p99".
    """

    title: str
    tried: Sequence[Simulated]
    front: Sequence[Simulated]
    chosen: Simulated
    present: Simulated | None
    freshness: str = "p99"
    freshness_s: float | None = None
    files_per_hour: float | None = None


def check_plot(path: str) -> None:
    """Raises InvalidConfiguration for a name that no picture can be written to, SetupError without Matplotlib."""
    folder = os.path.dirname(path) or "."
    reason = None
    if not path.lower().endswith(FORMATS):
        reason = f"{path} does not end in {', '.join(FORMATS)}; name the picture so"
    elif os.path.isdir(path):
        reason = f"{path} is a folder; name a file in it"
    elif not os.path.isdir(folder):
        reason = f"There is no folder {folder}; make it, or correct the path"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        reason = f"{path} cannot be written; give this user the right to, or name another"
    if reason is not None:
        raise InvalidConfiguration([f"Invalid [--plot]. {reason}."])
    if find_spec("matplotlib") is None:
        raise SetupError(f"--plot draws with Matplotlib, which is not installed. {install('plot')}")


def write_plot(path: str, picture: Picture) -> None:
    """Raises InvalidConfiguration when the file cannot be written."""
    drawn = io.BytesIO()
    _figure(picture).savefig(drawn, format=os.path.splitext(path)[1][1:].lower(), dpi=110)
    try:
        with open(path, "wb") as file:
            file.write(drawn.getvalue())
    except OSError as error:
        raise InvalidConfiguration([f"Invalid [--plot]. {path} cannot be written: {error.strerror}."]) from None


def _figure(picture: Picture) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    tried = [one for one in picture.tried if _drawable(one)]
    axes.scatter(*_points(tried, picture), s=14, color=_GREY, label=f"{len(tried)} settings tried", zorder=1)
    front = sorted(filter(_drawable, picture.front), key=lambda one: one.files_per_hour)
    axes.plot(*_points(front, picture), "o-", color=_BLUE, ms=5, lw=1.2, label="the front", zorder=2)
    if picture.present is not None and _drawable(picture.present):
        _mark(axes, picture.present, picture, "D", _ORANGE, "as you run now")
    if _drawable(picture.chosen):
        _mark(axes, picture.chosen, picture, "*", _RED, "recommended")
    _objectives(axes, picture)
    _dress(axes, picture)
    return figure


def _drawable(one: Simulated) -> bool:
    return one.freshness is not None and one.files_per_hour > 0


def _freshness_s(one: Simulated, picture: Picture) -> float:
    found = getattr(one.freshness, f"{picture.freshness}_s")
    return max(float(found), 0.001)


def _points(settings: Sequence[Simulated], picture: Picture) -> tuple[list[float], list[float]]:
    return [one.files_per_hour for one in settings], [_freshness_s(one, picture) for one in settings]


def _mark(axes: "Axes", one: Simulated, picture: Picture, marker: str, color: str, name: str) -> None:
    """A point of its own, with its thresholds in the legend."""
    at = one.thresholds
    text = (
        f"{name}: {size_text(at.commit_size_bytes)}, {at.commit_records:,} records, "
        f"{duration_text(at.commit_interval_ms / 1000)}"
    )
    size = 190 if marker == "*" else 60
    x, y = _points([one], picture)
    axes.scatter(x, y, s=size, marker=marker, color=color, edgecolor="white", lw=0.8, label=text, zorder=4)


def _objectives(axes: "Axes", picture: Picture) -> None:
    """What was asked for, as lines, so far as it is near what can be had."""
    line: dict[str, Any] = {"color": _OBJECTIVE, "ls": "--", "lw": 1.0, "zorder": 0}
    if picture.freshness_s is not None:
        text = f"objective: {picture.freshness} of {duration_text(picture.freshness_s)}"
        axes.axhline(picture.freshness_s, label=text, **line)
    if picture.files_per_hour is not None:
        text = f"objective: {count_text(picture.files_per_hour)} files an hour"
        axes.axvline(picture.files_per_hour, label=text, **{**line, "ls": ":"})


def _dress(axes: "Axes", picture: Picture) -> None:
    """Title, labels and ticks that can be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set_title(picture.title, fontsize=10)
    axes.set_xlabel("files an hour, all topic-partitions together")
    axes.set_ylabel(f"freshness {picture.freshness}: from arrival until the target has the file")
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in _TICKS if low <= tick <= high] or [low, high])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration_text(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 500 else (1.0,), numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, which="major", color="#eceff3", zorder=-1)
    axes.legend(fontsize=8, loc="best", framealpha=0.9)
