"""Alert rules, dashboard and page say nothing that the figures do not have, and leave nothing out."""

import re
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import promql_parser as promql
import pytest
import yaml

from parquet_sink.model.events import RangeFlushed
from parquet_sink.model.ranges import AttemptCount
from parquet_sink.worker.herder.values import PartitionProgress, State
from parquet_sink.worker.metrics import connect_names, documentation
from tests.worker.metrics.figures import ACCEPTED, RECEIPT, Page, World, connector, watched
from tests.worker.metrics.queries import DASHBOARD, FILES, OF_PROMETHEUS, ROOT, RULES, nodes, queries

PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
ALERTS = (ROOT / "docs" / "reference" / "alerts.md").read_text(encoding="utf-8")
PROMTOOL = shutil.which("promtool")
OF_THE_TARGET = {"job", "instance"}


@cache
def page() -> Page:
    """Figures of a worker of which every one has a series."""
    partition = PartitionProgress("t", 0, 10, 5.0, 1.0, away=False)
    stands = replace(connector("orders", State.RUNNING, partition, uploaded_s=5.0), planner_silent_s=1.0)
    world = World(stands)
    world.metrics.refresh([watched("orders", 30_000)])
    answers = (AttemptCount("unknown", None, 1), AttemptCount("accepted", 200, 1))
    world.metrics.on_event(replace(ACCEPTED, receipt=replace(RECEIPT, answers=answers)))
    world.metrics.on_event(RangeFlushed("orders", 1.0, "t", 0, 0, 10, 1, 10, 10, 1, read=10))
    return world.page()


def series() -> dict[str, dict[str, set[str]]]:
    """Of each name its labels and their values."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, pairs in page().samples:
        found[name].update({label: found[name][label] | {value} for label, value in pairs})
    return {**found, **OF_PROMETHEUS, **{name: {} for name in page().names() if name not in found}}


@pytest.mark.parametrize(("where", "query"), list(queries()))
def test_queries_ask_for_what_is_there(where: str, query: str) -> None:
    """Every name has a series; every label is one of its own; a value that is spelled out can occur."""
    known = series()
    selectors = [node for node in nodes(query) if isinstance(node, promql.VectorSelector)]
    assert selectors or where == "Since the worker's start"
    own: set[str] = set(OF_THE_TARGET)
    for one in selectors:
        assert one.name in known, f"{where}: nothing is called {one.name}"
        own |= known[one.name].keys()
        for matcher in one.matchers.matchers:
            values = known[one.name].get(matcher.name)
            assert matcher.name in OF_THE_TARGET or values is not None, f"{where}: {one.name} has no {matcher.name}"
            if values and matcher.value != "x":
                assert any(re.fullmatch(matcher.value, value) for value in values), f"{where}: no {matcher.value}"
    grouped = re.findall(r"(?:by|on|without|group_left) \(([\w, ]+)\)", query)
    for group in grouped:
        assert set(group.split(", ")) <= own, f"{where}: unknown {group}"


def test_rates_are_of_counters() -> None:
    """Of a gauge there is no rate, and of a counter no value by itself: it begins anew with each start."""
    counters = {family.name for family in page().families if family.type == "counter"}
    for where, query in queries():
        found = nodes(query)
        calls = [one for one in found if isinstance(one, promql.Call) and one.func.name in {"rate", "increase"}]
        rated = [one.args[0].vector_selector.name for one in calls]
        named = [one.name for one in found if isinstance(one, promql.VectorSelector)]
        growing = [name for name in named if name.removesuffix("_total") in counters or name.endswith("_bucket")]
        assert sorted(rated) == sorted(growing), where


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_to_do(rule: dict[str, Any]) -> None:
    """A summary, a severity that is known, and a section of its own on the page, which its runbook names."""
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook"] == f"docs/reference/alerts.md#{rule['alert'].lower()}"
    section = re.search(rf"^### {rule['alert']}\n\n(.*?)(?=^##|\Z)", ALERTS, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert len(section[1]) > 150


def test_what_alerts_ask_for_is_on_the_dashboard() -> None:
    """Who is woken sees the figure behind it: each has a panel or a line."""
    named: dict[bool, set[str]] = {True: set(), False: set()}
    of_rules = {rule["alert"] for rule in RULES}
    for where, query in queries():
        named[where in of_rules] |= {one.name for one in nodes(query) if isinstance(one, promql.VectorSelector)}
    assert named[True] - named[False] - OF_PROMETHEUS.keys() == set()


def test_the_page_has_no_alert_that_is_not_there() -> None:
    """Sections are of alerts, in the order of the rules, and each one is played through."""
    assert re.findall(r"^### (ParquetSink\w+)$", ALERTS, re.MULTILINE) == [rule["alert"] for rule in RULES]
    played = yaml.safe_load((FILES / "alerts_test.yml").read_text())["tests"]
    fires = {case["alertname"] for one in played for case in one.get("alert_rule_test", ()) if case.get("exp_alerts")}
    assert fires == {rule["alert"] for rule in RULES}


def test_the_page_is_made_of_the_declared_figures() -> None:
    """After a change: python -m parquet_sink.worker.metrics.documentation > docs/reference/metrics.md."""
    assert documentation.markdown() == PAGE


def test_the_page_lists_every_figure() -> None:
    """A running worker has each figure of the page, with its labels, and none beside them."""
    listed = dict(re.findall(r"^\| `(parquet_sink_\w+)` \| ([\w, ]*)\|", PAGE, re.MULTILINE))
    found: dict[str, set[str]] = {}
    for family in page().families:
        if family.name.startswith("parquet_sink_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert {name: set(re.findall(r"\w+", text)) for name, text in listed.items()} == found
    theirs = set(re.findall(r"^\| `(kafka_connect_\w+)` \|", PAGE, re.MULTILINE))
    assert theirs == {family.name for family in page().families if family.name.startswith("kafka_connect_")}
    of_worker = {connect_names.APP, *(name for name, _ in connect_names.OF_THE_WORKER)}
    assert theirs == {one.name for one in connect_names.NAMES} | of_worker


def test_the_dashboard_is_laid_out() -> None:
    """Panels have ids, titles, texts and units of their own; none lies over another; each asks the chosen source."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"].endswith(".")
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert {panel["datasource"]["uid"], *(one["datasource"]["uid"] for one in panel["targets"])} == {
                "${datasource}"
            }
            assert len({one["refId"] for one in panel["targets"]}) == len(panel["targets"])
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    used = {name for _, query in queries() for name in re.findall(r"\$(\w+)", query)} - {"__rate_interval", "__range"}
    assert used | {"datasource"} == variables


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: package prometheus)")
@pytest.mark.parametrize(
    "words", [["check", "rules", "alerts.yml"], ["check", "config", "--syntax-only", "prometheus.yml"],
              ["test", "rules", "alerts_test.yml"]], ids=" ".join,
)  # fmt: skip
def test_prometheus_agrees(words: list[str]) -> None:
    """Rules and configuration are what Prometheus takes, and each alert fires when it should and not otherwise."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *words], cwd=FILES, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: package prometheus)")
def test_prometheus_reads_the_figures() -> None:
    """Its linter finds nothing to say of names and texts, but of those that are Kafka Connect's."""
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=page().text, capture_output=True, text=True, timeout=60, check=False
    )
    said = (done.stdout + done.stderr).splitlines()
    assert [line for line in said if not line.startswith("kafka_connect_")] == []
