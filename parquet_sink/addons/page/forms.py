"""Forms of configurations: edited, or of a new connector; what is wrong and what differs is said before it is done."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from parquet_sink.addons.page.connector import ONE, ConnectorScreens, address, rest, stored
from parquet_sink.addons.page.frame import Done, Shown, View, Visit, does, shows
from parquet_sink.config.properties import as_properties, parse_properties
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.connector_class import DEFAULT_CLASS
from parquet_sink.connectors.hidden import hide
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.worker.rest.call import RestError, require
from parquet_sink.worker_config.rest.roles import Role

_FIELD: Final = "k."
"""Before the name of a key in a form."""
_OPEN: Final = frozenset({"The target"})
_FIRST: Final = ("name", "connector.class")
_CHANGED: Final = (
    "It was changed by somebody else since this form was opened. What differs from it now is shown; check it once more."
)
Config = Mapping[str, str]


class Forms:
    """screens: those of a connector."""

    def __init__(self, screens: ConnectorScreens) -> None:
        self._screens = screens

    @shows(f"{ONE}/config/edit")
    def edit(self, visit: Visit) -> View:
        require(visit.api.role, Role.ADMIN)
        config = stored(visit)
        return self._edit(visit, {"text": as_properties(config), "was": _digest(config), "found": None})

    @does(f"{ONE}/config/edit")
    def save(self, visit: Visit) -> Shown:
        """What is wrong and what differs; with `do` it is done, where nothing is wrong."""
        before, text = stored(visit), visit.form.get("text", "")
        found = self._judged(visit, lambda: _parsed(text, visit.connector), before)
        if visit.form.get("do") == "yes" and not found["problems"] and _digest(before) != visit.form.get("was"):
            found["problems"] = [_CHANGED]
        elif visit.form.get("do") == "yes" and not found["problems"]:
            try:
                visit.api.ask("PUT", rest(visit, "/config"), found["config"])
                said = "Saved. It takes effect once the flush in progress is finished."
                return Done(f"{address(visit.connector)}/config", said)
            except RestError as error:
                found["problems"] = error.message.splitlines()
        return self._edit(visit, {"text": text, "was": _digest(before), "found": found})

    def _edit(self, visit: Visit, context: Mapping[str, Any]) -> View:
        return View("edit.html", {**self._screens.head(visit, "config"), **context, "makes": False})

    @does("/ui/check")
    def check(self, visit: Visit) -> View:
        """The same for who types: only what is wrong and what differs. connector: the one that is edited, if any."""
        name = visit.form.get("connector", "")
        before = visit.api.ask("GET", f"/connectors/{quote(name, safe='')}/config") if name else {}
        found = self._judged(visit, lambda: _of_form(visit.form, name), before)
        return View("findings.html", {"found": found, "makes": not name})

    @shows("/ui/new")
    def new(self, visit: Visit) -> View:
        """by: `paste` for a file as text. class: whose keys make the form."""
        require(visit.api.role, Role.ADMIN)
        return self._new(visit, visit.query.get("by", "form"), {"class": visit.query.get("class", "")}, None)

    @does("/ui/new")
    def make(self, visit: Visit) -> Shown:
        found = self._judged(visit, lambda: _of_form(visit.form, ""), {})
        if visit.form.get("do") == "yes" and not found["problems"]:
            name = found["config"]["name"]
            try:
                visit.api.ask("POST", "/connectors", {"name": name, "config": found["config"]})
                return Done(address(name), f"Connector {name} is made, and begins now.")
            except RestError as error:
                found["problems"] = error.message.splitlines()
        return self._new(visit, visit.form.get("by", "form"), visit.form, found)

    def _new(self, visit: Visit, by: str, given: Mapping[str, str], found: Any) -> View:
        classes = [one["class"] for one in visit.api.ask("GET", "/connector-plugins")]
        chosen = given.get("class") or given.get(f"{_FIELD}connector.class") or DEFAULT_CLASS
        keys = visit.api.ask("GET", f"/connector-plugins/{quote(chosen, safe='')}/config") if by == "form" else []
        context = {
            "by": by,
            "class": chosen,
            "classes": sorted({*classes, chosen}),
            "groups": _groups(keys),
            "given": {name.removeprefix(_FIELD): text for name, text in given.items() if name.startswith(_FIELD)},
            "text": given.get("text", ""),
            "found": found,
            "makes": True,
        }
        return View("new.html", context)

    def _judged(self, visit: Visit, parse: Any, stored: Config) -> dict[str, Any]:
        """problems, warnings, and what differs from what is stored, passwords hidden. config: as it would be sent."""
        require(visit.api.role, Role.ADMIN)
        try:
            config = parse()
        except (InvalidConfiguration, ValueError) as error:
            return {"problems": str(error).splitlines(), "warnings": [], "changes": [], "config": {}}
        problems = (
            [] if config.get("name", "").strip() else ["Invalid [name]. It is missing; give the connector a name."]
        )
        warnings: list[str] = []
        try:
            which = quote(config.get("connector.class", "") or DEFAULT_CLASS, safe="")
            judged = visit.api.ask("PUT", f"/connector-plugins/{which}/config/validate", config)
            problems += [text for one in judged["configs"] for text in one["value"]["errors"]]
            warnings = judged.get("warnings", [])
        except RestError as error:
            problems += error.message.splitlines()
        found = {"problems": list(dict.fromkeys(problems)), "warnings": warnings, "config": config}
        return {**found, "changes": _changes(stored, config)}


def _parsed(text: str, name: str) -> dict[str, str]:
    """A configuration as properties, or JSON as REST takes it. Raises InvalidConfiguration, ValueError."""
    if text.lstrip().startswith("{"):
        try:
            whole = json.loads(text)
        except RecursionError:
            raise ValueError("It is nested too deeply; write keys and values.") from None
        whole = whole["config"] | {"name": whole.get("name", name)} if isinstance(whole.get("config"), dict) else whole
        found = {key: value if isinstance(value, str) else json.dumps(value) for key, value in whole.items()}
    else:
        found = dict(parse_properties(text, "what was typed").properties)
    return {**({"name": name} if name else {}), **found}


def _of_form(form: Mapping[str, str], name: str) -> dict[str, str]:
    """Of a text, or of fields with further keys as a text."""
    if form.get("by", "text") != "form":
        return _parsed(form.get("text", ""), name)
    fields = {key.removeprefix(_FIELD): text for key, text in form.items() if key.startswith(_FIELD) and text.strip()}
    return {**fields, **_parsed(form.get("text", ""), "")}


def _changes(stored: Config, config: Config) -> list[dict[str, str]]:
    """Key by key, in alphabetical order."""
    keys = keys_of(config)
    before, after = hide(stored, keys), hide(config, keys)
    found = []
    for key in sorted({*stored, *config}):
        if stored.get(key) != config.get(key):
            kind = "added" if key not in stored else "removed" if key not in config else "changed"
            found.append({"key": key, "kind": kind, "was": before.get(key, ""), "now": after.get(key, "")})
    return found


def _digest(config: Config) -> str:
    return sha256(json.dumps(dict(config), sort_keys=True).encode()).hexdigest()


def _groups(keys: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Keys by group; those that most connectors have are in the first one."""
    plain = [one for one in keys if "*" not in one["name"] and one["name"] not in _FIRST]
    usual = [one for one in plain if one["required"] or one["importance"] == "HIGH"]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in plain:
        if one not in usual:
            groups.setdefault(one["group"] or "Others", []).append(one)
    first = [{"name": "Needed and usual", "keys": usual, "open": True}] if usual else []
    return [*first, *({"name": name, "keys": found, "open": name in _OPEN} for name, found in groups.items())]
