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


PROBLEMS: list[tuple[Mapping[str, str | None], str]] = [
    (
        {"transforms.m.type": None},
        "Invalid [transforms.m.type]. It is missing; name the transform's class, for example Cast$Value.",
    ),
    ({"transforms.m.fields": None}, "Invalid [transforms.m.fields]. It is missing; name the fields to hide."),
    ({"transforms.m.length": "0"}, 'Invalid [transforms.m.length]. "0" is less than 1; give 1 or more.'),
    (
        {"transforms.m.negate": "maybe"},
        'Invalid [transforms.m.negate]. "maybe" is neither true nor false; write one of them.',
    ),
    (
        {"transforms.m.negate": "false", "transforms.m.predicate": None},
        "Invalid [transforms.m.negate]. There is no predicate to negate; name one in predicate, or remove the key.",
    ),
    (
        {"transforms.m.predicate": "q"},
        (
            'Invalid [transforms.m.predicate]. "q" is not among predicates; list it there and give predicates.q.type, '
            "or correct it."
        ),
    ),
    ({"predicates.p.name": None}, "Invalid [predicates.p.name]. It is missing; give it."),
    (
        {"predicates.p.type": None},
        "Invalid [predicates.p.type]. It is missing; name the predicate's class, for example TopicNameMatches.",
    ),
    (
        {"transforms": "m,m"},
        'Invalid [transforms]. "m" is named twice; name each transform once.',
    ),
    (
        {"predicates": "p, p"},
        'Invalid [predicates]. "p" is named twice; name each predicate once.',
    ),
    (
        {"transforms.m.type": f"{MODULE}.Is", "transforms.m.name": "x"},
        "Invalid [transforms.m.type]. Its class fails with these settings (TypeError: ",
    ),
    (
        {"transforms.m.type": f"{MODULE}.Nothing"},
        f'Invalid [transforms.m.type]. "{MODULE}.Nothing" cannot be loaded from {MODULE}:Nothing (AttributeError',
    ),
    ({"transforms.m.type": "no.such.Mask"}, 'Invalid [transforms.m.type]. "no.such.Mask" is not a known transform;'),
    (
        {"predicates.p.type": "no.such.Is"},
        'Invalid [predicates.p.type]. "no.such.Is" is not a known predicate;',
    ),
    (
        {"transforms.m.type": "${env:SECRET}"},
        'Invalid [transforms.m.type]. What "${env:SECRET}" stands for is not a usable transform; correct it.',
    ),
    ({"transforms.m.fields": "${env:NO}"}, "Invalid [transforms.m.fields]. ${env:NO}: the environment variable NO is"),
    (
        {"transforms.m.fields": "ugly"},
        f"Invalid [transforms.m.type]. Its class fails with these settings (RuntimeError in {MODULE}.py, line ",
    ),
    ({"transforms.m.type": f"{MODULE}.Half"}, "Invalid [transforms.m.type]. Half lacks tree, typed; write it."),
    (
        {"transforms.m.fields": "salted", "transforms.m.salt": CANARY},
        'Invalid [transforms.m.salt]. "*****" is too salty.',
    ),
]


@pytest.mark.parametrize(("changes", "problem"), PROBLEMS, ids=[text[:50] for _, text in PROBLEMS])
def test_what_is_wrong_is_told_with_the_whole_key(changes: Mapping[str, str | None], problem: str) -> None:
    """Once, with the value and the cure; nothing secret is shown."""
    loaded = load_file({**USED, **changes})
    assert loaded.settings is None
    assert [one[: len(problem)] for one in loaded.problems] == [problem]
    assert CANARY not in str(loaded)


def test_a_class_tells_all_that_is_wrong_together() -> None:
    """Each with its key; a value that a provider gave is not shown."""
    assert load_file({**MASK, "transforms.m.fields": "bad"}).problems == (
        'Invalid [transforms.m.fields]. "bad" has bad in it; leave it out.',
        "Invalid [transforms.m.type]. It cannot do that.",
    )


def test_everything_wrong_is_told_at_once() -> None:
    """Of all transforms and predicates, and of the other keys of the file."""
    loaded = load_file({**USED, "transforms.m.length": "0", "predicates.p.name": None, "topics": None})
    assert len(loaded.problems) == 3


CAST = {"transforms": "c", "transforms.c.type": "Cast", "transforms.c.spec": "a:int8"}
HINTS: list[tuple[Mapping[str, str | None], str]] = [
    (
        {"transforms.c.type": "Filter$Key"},
        "them, or install the Python package that has it. Did you mean org.apache.kafka.connect.transforms.Filter?",
    ),
    ({"transforms.c.type": "sql$Key"}, "Did you mean sql?"),
    ({"transforms.c.type": "RegexRouter$Value"}, "Did you mean org.apache.kafka.connect.transforms.RegexRouter?"),
    (
        {"transforms.c.type": "RecordIsTombstone"},
        ('"RecordIsTombstone" is a predicate: it belongs into predicates.N.type, and N into transforms.M.predicate.'),
    ),
    (
        {"predicates": "p", "predicates.p.type": "Filter", "transforms.c.predicate": "p"},
        '"Filter" is a transform: it belongs into transforms.N.type.',
    ),
    ({"transforms.c.spec": "a:integer"}, "write one of them. Did you mean int32?"),
    ({"transforms.c.spec": "a:long"}, "write one of them. Did you mean int64?"),
    (
        {"transforms.c.spec": "a"},
        (
            'Invalid [transforms.c.spec]. "a" has no type; write field:type, the type being one of int8, int16, '
            "int32, int64, float32, float64, boolean, string."
        ),
    ),
    (
        {"transforms.c.spec": "a:"},
        (
            'The type in "a:" is not one of int8, int16, int32, int64, float32, float64, boolean, string; write one '
            "of them."
        ),
    ),
    (
        {"transforms.c.type": "HeaderFrom", "transforms.c.fields": "a,b", "transforms.c.headers": "h"}
        | {"transforms.c.operation": "copy", "transforms.c.spec": None},
        'Invalid [transforms.c.headers]. "h" names 1, and fields names 2; give one header for each field.',
    ),
]


@pytest.mark.parametrize(("changes", "end"), HINTS, ids=[text[-40:] for _, text in HINTS])
def test_what_is_nearly_right_is_told_with_what_was_meant(changes: Mapping[str, str | None], end: str) -> None:
    """Nobody has to look up what the right word is."""
    (problem,) = load_file({**CAST, **changes}).problems
    assert problem.endswith(end)


def test_only_what_has_the_method_of_a_predicate_is_called_one() -> None:
    """A transform that lacks its keys is no predicate."""
    (problem,) = load_file({**MASK, "transforms.m.type": f"{MODULE}.Keyless"}).problems
    assert problem.endswith("it has no keys; correct the package.")


SILENT: list[tuple[Mapping[str, str | None], str]] = [
    (
        {"transforms": "f", "transforms.f.type": "Filter"},
        ("Warning [transforms.f.type]. It drops every record, because it has no predicate; name one in predicate."),
    ),
    (
        {"header.converter": "JsonConverter", "header.converter.schemas.enabl": "false", **CAST},
        (
            "Warning [header.converter.schemas.enabl]. It is unknown and has no effect. Did you mean "
            "header.converter.schemas.enable?"
        ),
    ),
    (
        {**CAST, "transforms.c.type": None, "transforms.c.typ": "Cast"},
        "Warning [transforms.c.typ]. It is unknown and has no effect. Did you mean transforms.c.type?",
    ),
]


@pytest.mark.parametrize(("changes", "warning"), SILENT, ids=[text[:40] for _, text in SILENT])
def test_what_would_be_silent_is_warned_about(changes: Mapping[str, str | None], warning: str) -> None:
    """A connector that loads nothing, or a key of which nobody says a word, is found when the file is checked."""
    assert load_file(changes).warnings == (warning,)


def test_an_unused_predicate_that_is_wrong_is_told_once() -> None:
    """That it has no effect is no news beside what is wrong with it."""
    loaded = load_file({**USED, "predicates": "p,r"})
    assert len(loaded.problems) == 1
    assert loaded.warnings == ()


WARNINGS: list[tuple[Mapping[str, str], str]] = [
    (
        {"transforms.m.feilds": "a"},
        (
            "Warning [transforms.m.feilds]. It is unknown to this transform and has no effect. Did you mean "
            "transforms.m.fields?"
        ),
    ),
    (
        {"transforms.m.predicat": "p"},
        (
            "Warning [transforms.m.predicat]. It is unknown to this transform and has no effect. Did you mean "
            "transforms.m.predicate?"
        ),
    ),
    (
        {"transforms.mm.fields": "a"},
        (
            'Warning [transforms.mm.fields]. It has no effect: transforms does not name "mm"; list it there, or remove '
            "the key. Did you mean transforms.m.fields?"
        ),
    ),
    (
        {"predicates.other.type": "x"},
        (
            'Warning [predicates.other.type]. It has no effect: predicates does not name "other"; list it there, or '
            "remove the key."
        ),
    ),
    (
        {"predicates": "p,r", "predicates.r.type": f"{MODULE}.Is", "predicates.r.name": "y"},
        "Warning [predicates.r.type]. It has no effect: no transform has it as its predicate.",
    ),
]


@pytest.mark.parametrize(("changes", "warning"), WARNINGS, ids=[text[:50] for _, text in WARNINGS])
def test_what_changes_nothing_is_warned_about(changes: Mapping[str, str], warning: str) -> None:
    """Once; the connector runs."""
    loaded = load_file({**USED, **changes})
    assert (loaded.problems, loaded.warnings) == ((), (warning,))


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
