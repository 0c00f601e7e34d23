"""Transforms of a connector file: what is wrong is told as of any other key, and what is right is settings."""

import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.config.secret import Secret, dump_with_secrets, load_with_secrets
from parquet_sink.transform.settings import StepSettings
from tests.connectors.ems.connector_files import CANARY, load_file, settings_of
from tests.messages import assert_says

MODULE = "transforms_for_a_test"
SOURCE = """
from parquet_sink.config.key import Key, Type
from parquet_sink.model.records import VALUES_ONLY
from parquet_sink.transform.fields.base import FieldTransform
from parquet_sink.transform.protocol import WrongSettings

class Mask:
    \"\"\"Hides fields.\"\"\"
    keys = (
        Key("fields", "Mask", Type.LIST, "Which.", default=(), required=True, missing="name the fields to hide."),
        Key("replacement", "Mask", Type.STRING, "By what.", may_be_empty=True),
        Key("length", "Mask", Type.INT, "How many.", default=3, minimum=1),
        Key("salt", "Mask", Type.PASSWORD, "A secret."),
    )
    needs = VALUES_ONLY
    def __init__(self, values, side):
        self.values, self.side = values, side
        if "bad" in values.names("fields"):
            raise WrongSettings({
                "fields": f"{values.quoted('fields')} has bad in it; leave it out.",
                "type": "It cannot do that.",
            })
        if "ugly" in values.names("fields"):
            raise RuntimeError("not " + (values.text("replacement") or "told"))
        if values.secret("salt") is not None and "salted" in values.names("fields"):
            raise WrongSettings({"salt": f"{values.quoted('salt')} is too salty."})
    def apply(self, records):
        return records

class Is:
    keys = (Key("name", "Is", Type.STRING, "Which.", required=True, missing="give it."),)
    needs = VALUES_ONLY
    def __init__(self, values):
        pass

class Half(FieldTransform):
    keys = ()
    def __init__(self, values, side):
        super().__init__(side)

class Keyless:
    def apply(self, records):
        return records
"""
MASK = {"transforms": "m", "transforms.m.type": f"{MODULE}.Mask", "transforms.m.fields": "a,b"}
IS = {"predicates": "p", "predicates.p.type": f"{MODULE}.Is", "predicates.p.name": "x"}
USED = {**MASK, **IS, "transforms.m.predicate": "p"}


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module with a transform and a predicate."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop(MODULE, None)


def test_a_file_without_transforms_has_none() -> None:
    """Nothing is read or kept for them."""
    assert settings_of().transforms == ()


def test_transforms_come_in_the_order_of_the_list() -> None:
    """Each with its own keys alone, as the file has them."""
    first = {"transforms.b.type": f"{MODULE}.Mask$Key", "transforms.b.fields": "x", "transforms.b.replacement": " "}
    steps = settings_of({**MASK, **first, "transforms": "b, m"}).transforms
    assert steps == (
        StepSettings(ClassSettings("b", f"{MODULE}.Mask$Key", (("fields", "x"), ("replacement", " ")))),
        StepSettings(ClassSettings("m", f"{MODULE}.Mask", (("fields", "a,b"),))),
    )


@pytest.mark.parametrize(("negate", "negated"), [(None, False), ("true", True), ("false", False)])
def test_a_predicate_of_a_transform(negate: str | None, negated: bool) -> None:
    """It is the one that the predicates list and describe."""
    changes = {**USED, **({} if negate is None else {"transforms.m.negate": negate})}
    (step,) = settings_of(changes).transforms
    assert step.predicate == ClassSettings("p", f"{MODULE}.Is", (("name", "x"),))
    assert step.negate is negated


PROBLEMS: list[tuple[Mapping[str, str | None], str, tuple[str, ...]]] = [
    ({"transforms.m.type": None}, "transforms.m.type", ("missing", "the transform's class", "Cast$Value")),
    ({"transforms.m.fields": None}, "transforms.m.fields", ("missing", "name the fields")),
    ({"transforms.m.length": "0"}, "transforms.m.length", ('"0"', "less than 1", "1 or more")),
    ({"transforms.m.negate": "maybe"}, "transforms.m.negate", ('"maybe"', "neither true nor false", "one of them")),
    (
        {"transforms.m.negate": "false", "transforms.m.predicate": None},
        "transforms.m.negate",
        ("no predicate to negate", "name one", "remove the key"),
    ),
    ({"transforms.m.predicate": "q"}, "transforms.m.predicate", ('"q"', "not among predicates", "predicates.q.type")),
    ({"predicates.p.name": None}, "predicates.p.name", ("missing", "give it")),
    ({"predicates.p.type": None}, "predicates.p.type", ("missing", "the predicate's class", "TopicNameMatches")),
    ({"transforms": "m,m"}, "transforms", ('"m"', "twice", "once")),
    ({"predicates": "p, p"}, "predicates", ('"p"', "twice", "once")),
    (
        {"transforms.m.type": f"{MODULE}.Is", "transforms.m.name": "x"},
        "transforms.m.type",
        ("fails", "TypeError", "correct the class"),
    ),
    (
        {"transforms.m.type": f"{MODULE}.Nothing"},
        "transforms.m.type",
        (f'"{MODULE}.Nothing"', "cannot be loaded", f"{MODULE}:Nothing", "AttributeError", "correct the package"),
    ),
    (
        {"transforms.m.type": "no.such.Mask"},
        "transforms.m.type",
        ('"no.such.Mask"', "not a known transform", "install"),
    ),
    ({"predicates.p.type": "no.such.Is"}, "predicates.p.type", ('"no.such.Is"', "not a known predicate", "install")),
    (
        {"transforms.m.type": "${env:SECRET}"},
        "transforms.m.type",
        ('"${env:SECRET}"', "not a usable transform", "correct it"),
    ),
    (
        {"transforms.m.fields": "${env:NO}"},
        "transforms.m.fields",
        ("${env:NO}", "environment variable NO", "not set", "before the start"),
    ),
    (
        {"transforms.m.fields": "ugly"},
        "transforms.m.type",
        ("fails", "RuntimeError", f"{MODULE}.py, line ", "correct the class"),
    ),
    ({"transforms.m.type": f"{MODULE}.Half"}, "transforms.m.type", ("Half", "lacks", "tree, typed", "write")),
    ({"transforms.m.fields": "salted", "transforms.m.salt": CANARY}, "transforms.m.salt", ('"*****"', "too salty")),
]


@pytest.mark.parametrize(("changes", "key", "told"), PROBLEMS, ids=[key for _, key, _ in PROBLEMS])
def test_what_is_wrong_is_told_with_the_whole_key(
    changes: Mapping[str, str | None], key: str, told: tuple[str, ...]
) -> None:
    """Once, with the value and the cure; nothing secret is shown."""
    loaded = load_file({**USED, **changes})
    assert loaded.settings is None
    (problem,) = loaded.problems
    assert_says(problem, f"Invalid [{key}]", *told)
    assert CANARY not in str(loaded)


def test_a_class_tells_all_that_is_wrong_together() -> None:
    """Each with its key; a value that a provider gave is not shown."""
    fields, type_ = load_file({**MASK, "transforms.m.fields": "bad"}).problems
    assert_says(fields, "[transforms.m.fields]", '"bad"', "leave it out")
    assert_says(type_, "[transforms.m.type]", "cannot do that")


def test_everything_wrong_is_told_at_once() -> None:
    """Of all transforms and predicates, and of the other keys of the file."""
    loaded = load_file({**USED, "transforms.m.length": "0", "predicates.p.name": None, "topics": None})
    assert len(loaded.problems) == 3


CAST = {"transforms": "c", "transforms.c.type": "Cast", "transforms.c.spec": "a:int8"}
CASTS = "int8, int16, int32, int64, float32, float64, boolean, string"
HINTS: list[tuple[Mapping[str, str | None], tuple[str, ...]]] = [
    (
        {"transforms.c.type": "Filter$Key"},
        (
            "[transforms.c.type]",
            '"Filter$Key"',
            "install",
            "Did you mean org.apache.kafka.connect.transforms.Filter?",
        ),
    ),
    ({"transforms.c.type": "sql$Key"}, ("[transforms.c.type]", '"sql$Key"', "Did you mean sql?")),
    (
        {"transforms.c.type": "RegexRouter$Value"},
        ("[transforms.c.type]", '"RegexRouter$Value"', "Did you mean org.apache.kafka.connect.transforms.RegexRouter?"),
    ),
    (
        {"transforms.c.type": "RecordIsTombstone"},
        (
            "[transforms.c.type]",
            '"RecordIsTombstone"',
            "is a predicate",
            "into predicates.N.type",
            "N into transforms.M.predicate",
        ),
    ),
    (
        {"predicates": "p", "predicates.p.type": "Filter", "transforms.c.predicate": "p"},
        ("[predicates.p.type]", '"Filter"', "is a transform", "into transforms.N.type"),
    ),
    ({"transforms.c.spec": "a:integer"}, ("[transforms.c.spec]", '"integer"', "Did you mean int32?")),
    ({"transforms.c.spec": "a:long"}, ("[transforms.c.spec]", '"long"', "Did you mean int64?")),
    ({"transforms.c.spec": "a"}, ("[transforms.c.spec]", '"a"', "no type", "write field:type", CASTS)),
    ({"transforms.c.spec": "a:"}, ("[transforms.c.spec]", '"a:"', "not one of", CASTS)),
    (
        {"transforms.c.type": "HeaderFrom", "transforms.c.fields": "a,b", "transforms.c.headers": "h"}
        | {"transforms.c.operation": "copy", "transforms.c.spec": None},
        ("[transforms.c.headers]", '"h"', "names 1", "fields names 2", "one header for each"),
    ),
]


@pytest.mark.parametrize(("changes", "told"), HINTS, ids=[parts[-1] for _, parts in HINTS])
def test_what_is_nearly_right_is_told_with_what_was_meant(
    changes: Mapping[str, str | None], told: tuple[str, ...]
) -> None:
    """Nobody has to look up what the right word is."""
    (problem,) = load_file({**CAST, **changes}).problems
    assert_says(problem, *told)


def test_only_what_has_the_method_of_a_predicate_is_called_one() -> None:
    """A transform that lacks its keys is no predicate."""
    (problem,) = load_file({**MASK, "transforms.m.type": f"{MODULE}.Keyless"}).problems
    assert_says(problem, "[transforms.m.type]", f'"{MODULE}.Keyless"', "no keys", "correct the package")


SILENT: list[tuple[Mapping[str, str | None], tuple[str, ...]]] = [
    (
        {"transforms": "f", "transforms.f.type": "Filter"},
        ("[transforms.f.type]", "drops every record", "no predicate", "name one"),
    ),
    (
        {"header.converter": "JsonConverter", "header.converter.schemas.enabl": "false", **CAST},
        ("[header.converter.schemas.enabl]", "unknown", "Did you mean header.converter.schemas.enable?"),
    ),
    (
        {**CAST, "transforms.c.type": None, "transforms.c.typ": "Cast"},
        ("[transforms.c.typ]", "unknown", "Did you mean transforms.c.type?"),
    ),
]


@pytest.mark.parametrize(("changes", "told"), SILENT, ids=[parts[0] for _, parts in SILENT])
def test_what_would_be_silent_is_warned_about(changes: Mapping[str, str | None], told: tuple[str, ...]) -> None:
    """A connector that loads nothing, or a key of which nobody says a word, is found when the file is checked."""
    (warning,) = load_file(changes).warnings
    assert_says(warning, *told)


def test_an_unused_predicate_that_is_wrong_is_told_once() -> None:
    """That it has no effect is no news beside what is wrong with it."""
    loaded = load_file({**USED, "predicates": "p,r"})
    assert len(loaded.problems) == 1
    assert loaded.warnings == ()


WARNINGS: list[tuple[Mapping[str, str], tuple[str, ...]]] = [
    (
        {"transforms.m.feilds": "a"},
        ("[transforms.m.feilds]", "unknown to this transform", "Did you mean transforms.m.fields?"),
    ),
    (
        {"transforms.m.predicat": "p"},
        ("[transforms.m.predicat]", "unknown to this transform", "Did you mean transforms.m.predicate?"),
    ),
    (
        {"transforms.mm.fields": "a"},
        (
            *("[transforms.mm.fields]", 'does not name "mm"', "list it there", "remove the key"),
            "Did you mean transforms.m.fields?",
        ),
    ),
    (
        {"predicates.other.type": "x"},
        ("[predicates.other.type]", 'does not name "other"', "list it there", "remove the key"),
    ),
    (
        {"predicates": "p,r", "predicates.r.type": f"{MODULE}.Is", "predicates.r.name": "y"},
        ("[predicates.r.type]", "no transform has it"),
    ),
]


@pytest.mark.parametrize(("changes", "told"), WARNINGS, ids=[parts[0] for _, parts in WARNINGS])
def test_what_changes_nothing_is_warned_about(changes: Mapping[str, str], told: tuple[str, ...]) -> None:
    """Once; the connector runs."""
    loaded = load_file({**USED, **changes})
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, "no effect", *told)


def test_one_name_may_begin_like_another() -> None:
    """Keys belong to the longest name that they begin with."""
    other = {"transforms.m.x.type": f"{MODULE}.Mask", "transforms.m.x.fields": "c"}
    steps = settings_of({**MASK, **other, "transforms": "m,m.x"}).transforms
    assert [(step.transform.name, dict(step.transform.texts)) for step in steps] == [
        ("m", {"fields": "a,b"}),
        ("m.x", {"fields": "c"}),
    ]


def test_secrets_of_a_transform_stay_secret() -> None:
    """Those of secret keys, and whatever a provider gave; and they arrive in the processes that need them."""
    loaded = load_file({**MASK, "transforms.m.salt": CANARY, "transforms.m.replacement": "${env:SECRET}"})
    settings = loaded.require()
    texts = dict(settings.transforms[0].transform.texts)
    assert (texts["salt"], texts["replacement"]) == (Secret(CANARY), Secret(CANARY))
    assert CANARY not in repr(loaded)
    assert load_with_secrets(dump_with_secrets(settings)) == settings
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_files_depend_on_transforms() -> None:
    """A range is not repeated as it was after transforms changed, be it in a secret alone."""
    found = {
        settings_of(changes).fingerprint
        for changes in (
            {},
            MASK,
            USED,
            {**USED, "transforms.m.negate": "true"},
            {**MASK, "transforms.m.salt": "one"},
            {**MASK, "transforms.m.salt": "two"},
            {**MASK, "transforms.m.fields": "b,a"},
        )
    }
    assert len(found) == 7
