"""Charts of the page, as SVG without styles of its own: classes say what a shape is, and the style sheet its colour."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log10
from typing import Any, Final

from markupsafe import Markup, escape

from parquet_sink.addons.page import words

KINDS: Final = ("records", "size", "interval", "other", "failed")
"""How files are told apart in charts."""
BAR_HEIGHT: Final = 26
_BAR, _STEP = 7, 9
_WIDTH, _HEIGHT, _LEFT, _FOOT, _TOP = 1280, 200, 76, 24, 12
_MOST_TICKS: Final = 8
_TIMES: Final = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 604_800)
"""Seconds that are written at an axis of durations."""


def kind_of(reason: str, outcome: str = "accepted") -> str:
    """Which of KINDS a file is; one that waits to be tried again, or was refused, has failed so far."""
    if outcome != "accepted":
        return "failed"
    return reason if reason in KINDS else "other"


def bars(slots: Sequence[Mapping[str, int]], about: str = "") -> Markup:
    """Files of the last hour, five minutes a bar: stacked by reason. slots: counts by KINDS, the oldest first."""
    most = max((sum(one.values()) for one in slots), default=0)
    paths: dict[str, list[str]] = {}
    for index, slot in enumerate(slots):
        top = float(BAR_HEIGHT)
        for kind in KINDS:
            if count := slot.get(kind, 0):
                height = max(count / most * (BAR_HEIGHT - 2), 2.0)
                top = max(top - height, 0.0)
                paths.setdefault(kind, []).append(f"M{index * _STEP} {top:.1f}h{_BAR}v{height:.1f}h-{_BAR}z")
    width = len(slots) * _STEP
    shapes = "".join(f'<path class="c-{kind}" d="{"".join(found)}"/>' for kind, found in paths.items())
    ground = f'<path class="c-base" d="M0 {BAR_HEIGHT}.5h{width}"/>'
    return Markup(
        f'<svg class="bars" viewBox="0 0 {width} {BAR_HEIGHT + 1}" width="{width}" height="{BAR_HEIGHT + 1}" '
        f'role="img" aria-label="{escape(about)}">{ground}{shapes}</svg>'
    )


def meter(share: float | None, about: str) -> Markup:
    """How full something is. share: 1 is full, and more is shown as full. about: empty where a text says it."""
    width = min(max(share or 0.0, 0.0), 1.0) * 100
    full = " full" if (share or 0.0) > 1.0 else ""
    named = f'role="img" aria-label="{escape(about)}"' if about else 'aria-hidden="true"'
    return Markup(
        f'<svg class="meter{full}" viewBox="0 0 100 4" preserveAspectRatio="none" {named}>'
        f'<rect class="m-back" width="100" height="4"/>'
        f'<rect class="m-fill" width="{width:.1f}" height="4"/></svg>'
    )


def _nice(most: float) -> float:
    """A round number at or above it."""
    scale = 1.0
    while scale * 10 <= most:
        scale *= 10
    return next((step * scale for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * scale >= most), 10 * scale)


def _axes(ticks: Iterable[tuple[float, str]], lines: Iterable[tuple[float, str]], right: float) -> list[str]:
    """ticks: places and texts below; lines: heights and texts at the left."""
    parts = []
    for y, text in lines:
        parts.append(f'<path class="g-line" d="M{_LEFT} {y:.1f}H{right:.0f}"/>')
        parts.append(f'<text class="g-text" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    foot = _HEIGHT - 6
    parts += [f'<text class="g-text" x="{x:.1f}" y="{foot}" text-anchor="middle">{escape(t)}</text>' for x, t in ticks]
    return parts


def _mark(kind: str, x: float, y: float) -> str:
    """A shape of its own for each kind, so that colour is not needed."""
    shapes = {
        "records": f"M{x:.1f} {y - 4:.1f}l4 4-4 4-4-4z",
        "size": f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",
        "other": f"M{x:.1f} {y - 4:.1f}l4 7h-8z",
        "failed": f"M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8",
    }
    if kind == "interval":
        return f'<circle class="c-interval" cx="{x:.1f}" cy="{y:.1f}" r="3.6"/>'
    return f'<path class="c-{kind}{" stroke" if kind == "failed" else ""}" d="{shapes[kind]}"/>'


def timeline(files: Sequence[Mapping[str, Any]], begin_ms: int, end_ms: int, to: Mapping[str, str]) -> Markup:
    """Files by time and size; a click leads to one. to: an address by file name."""
    right, base = _WIDTH - 28, _HEIGHT - _FOOT
    most = _nice(max([one["size_bytes"] for one in files] or [1]))
    span = max(end_ms - begin_ms, 1)

    def across(at_ms: float) -> float:
        return _LEFT + (at_ms - begin_ms) / span * (right - _LEFT)

    ticks = [(across(begin_ms + span * n / 6), words.clock(begin_ms + span * n / 6)[:5]) for n in range(7)]
    lines = [(base - n / 2 * (base - _TOP), words.size(most * n / 2)) for n in range(3)]
    parts = _axes(ticks, lines, right)
    for one in files:
        kind = kind_of(one["reason"], one["outcome"])
        x, y = across(one["at_ms"]), base - one["size_bytes"] / most * (base - _TOP)
        about = (
            f"{words.clock(one['at_ms'])}, {one['topic']} {one['partition']}: {one['rows']:,} rows, "
            f"{words.size(one['size_bytes'])}, {words.reason(one['reason'])}, {one['outcome'].replace('_', ' ')}, "
            f"{words.counted(one['attempts'], 'attempt')}"
        )
        parts.append(
            f'<a href="{escape(to[one["file_name"]])}" class="dot" tabindex="-1"><title>{escape(about)}</title>'
            f'<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="9"/>{_mark(kind, x, y)}</a>'
        )
    return _chart(parts, f"{words.counted(len(files), 'file')} by time and size; the table below has them all")


def _chart(parts: Iterable[str], about: str) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" aria-label="{escape(about)}">'
        f"{''.join(parts)}</svg>"
    )


def legend_mark(kind: str) -> Markup:
    """The shape of a kind of files."""
    return Markup(
        f'<svg class="mark" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">{_mark(kind, 6, 6)}</svg>'
    )


def scatter(points: Sequence[Mapping[str, Any]]) -> Markup:
    """What settings give: files an hour across, freshness up, both logarithmic.

    points: of each `files_per_hour`, `freshness_s`, `about` and `kind` (chosen, now or other).
    """
    right, base = _WIDTH - 24, _HEIGHT - _FOOT
    xs = [max(float(one["files_per_hour"]), 1e-3) for one in points]
    ys = [max(float(one["freshness_s"]), 1e-3) for one in points]
    rates = [step * 10.0**n for n in range(-3, 7) for step in (1, 2, 5)]
    x_of, x_ticks = _log_scale(xs, _LEFT + 12, right, rates)
    y_of, y_ticks = _log_scale(ys, base - 8, _TOP + 4, _TIMES)
    parts = _axes(
        [(x_of(one), f"{words.short(one) if one >= 1 else f'{one:g}'}/h") for one in x_ticks],
        [(y_of(one), words.age(one).replace(".0 s", " s")) for one in y_ticks],
        right,
    )
    order = {"other": 0, "now": 1, "chosen": 2}
    for one, x, y in sorted(zip(points, xs, ys, strict=True), key=lambda item: order[item[0]["kind"]]):
        radius = 3 if one["kind"] == "other" else 6
        parts.append(
            f"<g><title>{escape(one['about'])}</title>"
            f'<circle class="p-{one["kind"]}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="{radius}"/></g>'
        )
        if one["kind"] != "other":
            label = "recommended" if one["kind"] == "chosen" else "as it is"
            at_end = x_of(x) > right - 110
            place, anchor = (x_of(x) - 10, "end") if at_end else (x_of(x) + 10, "start")
            parts.append(
                f'<text class="g-label" x="{place:.1f}" y="{y_of(y) - 6:.1f}" text-anchor="{anchor}">{label}</text>'
            )
    return _chart(parts, "Files an hour and freshness of settings")


def _log_scale(
    values: Sequence[float], low: float, high: float, ticks: Sequence[float]
) -> tuple[Callable[[float], float], list[float]]:
    """From values to places, and those of the ticks that are within, some of them where they are many."""
    first, last = log10(min(values, default=1.0)), log10(max(values, default=1.0))
    if last - first < 0.3:
        first, last = first - 0.3, last + 0.3

    def place(value: float) -> float:
        return low + (log10(value) - first) / (last - first) * (high - low)

    inside = [one for one in ticks if first <= log10(one) <= last]
    return place, inside if len(inside) <= _MOST_TICKS else inside[:: -(-len(inside) // _MOST_TICKS)]
