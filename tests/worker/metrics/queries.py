"""What alert rules and dashboard ask Prometheus for."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

ROOT = Path(__file__).parents[3]
FILES = ROOT / "config" / "monitoring"
RULES: list[dict[str, Any]] = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((FILES / "grafana-dashboard.json").read_text())
OF_PROMETHEUS = {"up": {}, "ALERTS": {"alertname": set[str](), "alertstate": set[str](), "connector": set[str]()}}
"""Series of its own, with their labels."""


def queries() -> Iterator[tuple[str, str]]:
    """Every query, by where it stands."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            inner = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert inner is not None
            assert variable["query"]["query"] == variable["definition"]
            yield variable["name"], f"count by ({inner[2]}) ({inner[1]})"


def parsed(query: str) -> promql.Expr:
    """As Prometheus reads it, with Grafana's variables filled in."""
    filled = re.sub(r"\$__(rate_interval|range)\b", "5m", query)
    return promql.parse(re.sub(r"\$\w+", "x", filled))


def nodes(query: str) -> list[Any]:
    """All parts of a query."""
    found: list[Any] = []
    promql.walk(parsed(query), found.append)
    return found
