"""From checked values to the settings of a converter. Nothing is judged here: that was done before. Pure."""

from dataclasses import replace
from typing import Any

from parquet_sink.config.build_registry import build_registry
from parquet_sink.config.chosen import Chosen, Side, choose
from parquet_sink.config.machine import Machine
from parquet_sink.config.setting import REGISTRY
from parquet_sink.config.values import Values
from parquet_sink.convert.settings import ConverterSettings


def build_converter(side: Side, own: Values, worker: Values, machine: Machine) -> ConverterSettings | None:
    """How one side is decoded; None when no converter is set for it. own, worker: values of the two files."""
    chosen = choose(side, own, worker)
    if chosen is None:
        return None
    registry = build_registry(chosen, machine) if chosen.kind in REGISTRY else None
    return replace(ConverterSettings(kind=chosen.kind, registry=registry), **_options(chosen))


def _options(chosen: Chosen) -> dict[str, Any]:
    """Fields of ConverterSettings that the file sets, and that concern the converter."""
    return {setting.fills: chosen.value(name) for name, setting in chosen.settings if setting.fills}
