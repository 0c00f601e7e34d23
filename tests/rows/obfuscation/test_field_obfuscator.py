"""Where obfuscation applies: typed rows, trees, columns, and what is named but not there."""

import copy
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.rows.flatten.trees import flatten
from parquet_sink.rows.obfuscation import field_obfuscator
from parquet_sink.rows.obfuscation.field_obfuscator import FieldObfuscator
from parquet_sink.rows.settings import ObfuscationSettings
from tests.messages import saying
from tests.thorough import examples

STARS = "*****"
TEXT, NUMBER = pa.string(), pa.int64()


def obfuscator(*fields: str, flat: bool = True) -> FieldObfuscator:
    """Stars for the fields."""
    return FieldObfuscator(ObfuscationSettings(fields), flat)


def row(arrow: dict[str, pa.DataType], **values: object) -> pa.StructArray:
    """One typed record."""
    return pa.array([values], pa.struct(list(arrow.items())))


CUSTOMER = pa.struct([("name", TEXT), ("age", NUMBER)])
PLAYERS = pa.list_(CUSTOMER)
ADA = {"name": "Ada", "age": 36}
HIDDEN = {"name": STARS, "age": 36}

# named how, columns flattened or not, type of field f, its value, what leaves
NAMED = [
    ("f", True, TEXT, "Ada", STARS),
    ("f", False, TEXT, "", STARS),
    ("f.name", True, CUSTOMER, ADA, HIDDEN),
    ("f.name", False, CUSTOMER, ADA, HIDDEN),
    ("f_name", True, CUSTOMER, ADA, HIDDEN),
    ("f_name", False, CUSTOMER, ADA, ADA),
    ("f.value", True, pa.list_(TEXT), ["a", None, "b"], [STARS, None, STARS]),
    ("f_value", True, pa.list_(TEXT), ["a"], [STARS]),
    ("f.value.name", False, PLAYERS, [ADA, None], [HIDDEN, None]),
    ("f_value_name", True, PLAYERS, [ADA], [HIDDEN]),
    ("f.value.value", True, pa.list_(pa.list_(TEXT)), [["a"], [], None], [[STARS], [], None]),
    ("g", True, TEXT, "Ada", "Ada"),
    ("F", True, TEXT, "Ada", "Ada"),
    ("f.name", True, TEXT, None, None),
    ("f", True, pa.null(), None, None),
    ("f.name", True, pa.null(), None, None),
]


@pytest.mark.parametrize(("named", "flat", "arrow", "value", "leaves"), NAMED)
def test_places(named: str, flat: bool, arrow: pa.DataType, value: object, leaves: object) -> None:
    """Dotted paths always, flattened names where columns are flattened; in trees as in typed rows."""
    hides = obfuscator(named, flat=flat)
    assert hides.tree({"f": value, "x": 1}) == {"f": leaves, "x": 1}
    if value is not None or pa.types.is_null(arrow):
        found = hides.rows(row({"f": arrow, "x": NUMBER}, f=value, x=1))
        assert found.to_pylist() == [{"f": leaves, "x": 1}]


@pytest.mark.parametrize("named", ["a.b", "a_b", "a-b"])
@pytest.mark.parametrize("tree", [{"a": {"b": "x"}}, {"a_b": "x"}, {"a.b": "x"}, {"a b": "x"}])
def test_one_column_one_place(named: str, tree: Tree) -> None:
    """Whatever becomes the column that is named is obfuscated, however the field is written."""
    hidden = obfuscator(named).tree(tree)
    assert flatten(hidden, discard_collections=False) == {"a_b": STARS}


def test_maps() -> None:
    """The values of a map are entered by `value`; its keys stay."""
    arrow = pa.map_(NUMBER, pa.field("value", CUSTOMER, nullable=False))
    found = obfuscator("f.value.name").rows(row({"f": arrow}, f=[(1, ADA), (2, {"name": None, "age": 1})]))
    assert found.type.field("f").type == arrow
    assert found.to_pylist() == [{"f": [(1, HIDDEN), (2, {"name": None, "age": 1})]}]


TAKE_OUT = ("not text", "take it out", "write text")
NOTHING_BELOW = ("nothing below", "take it out")
REFUSED = [
    ("f", NUMBER, 1, ("f is a number", *TAKE_OUT)),
    ("f", pa.float64(), 1.5, ("f is a number", *TAKE_OUT)),
    ("f", pa.bool_(), True, ("f is a boolean", *TAKE_OUT)),
    ("f", CUSTOMER, ADA, ("f is an object", "not text", "name the fields")),
    ("f", pa.list_(TEXT), ["a"], ("f is a list", "not text", "write f.value", "items")),
    ("f_age", CUSTOMER, ADA, ("f_age", "field f.age", "is a number", *TAKE_OUT)),
    ("f.value.age", PLAYERS, [ADA], ("f.value.age is a number", *TAKE_OUT)),
    ("f.name", PLAYERS, [ADA], ("f.name", "through f, a list", "write f.value.name")),
    ("f.name", TEXT, "Ada", ("f.name", "through f, text", "write f,", *NOTHING_BELOW)),
    ("f.name.first", CUSTOMER, ADA, ("f.name.first", "through f.name, text", "write f.name,", *NOTHING_BELOW)),
    ("f.age.value", CUSTOMER, ADA, ("f.age.value", "through f.age, a number", "write f.age,", *NOTHING_BELOW)),
]


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(("named", "arrow", "value", "reason"), REFUSED)
def test_what_is_no_text(named: str, arrow: pa.DataType, value: object, reason: tuple[str, ...], flat: bool) -> None:
    """A setting that names something else than text makes records invalid, with path and kind and no content."""
    if named == "f_age" and not flat:
        named, reason = "f.age", ("f.age is a number", *TAKE_OUT)
    hides = obfuscator("other", named, flat=flat)
    for attempt in (lambda: hides.tree({"f": value}), lambda: hides.rows(row({"f": arrow}, f=value))):
        with pytest.raises(InvalidValue, match=saying("connect.ems.obfuscation.fields", *reason)) as error:
            attempt()
        assert not [content for content in ("Ada", "36", "1.5") if content in str(error.value)]


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.binary(), "bytes"),
        (pa.date32(), "a date"),
        (pa.time32("ms"), "a time"),
        (pa.timestamp("ms", "UTC"), "a timestamp"),
        (pa.decimal128(9, 5), "a number"),
        (pa.decimal256(60, 5), "a number"),
        (pa.map_(TEXT, TEXT), "a map"),
    ],
)
def test_typed_kinds_that_are_no_text(arrow: pa.DataType, kind: str) -> None:
    """So do types that only records with a schema have, also where the values are null: the schema says it."""
    with pytest.raises(InvalidValue, match=saying("obfuscation.fields", f"f is {kind},", "not text")):
        obfuscator("f").rows(row({"f": arrow}, f=None))


def test_paths_into_exploded_records_are_named_as_they_are_configured() -> None:
    """What is wrong in an element is told by the path that the connector file has."""
    hides = obfuscator("other", "m.value.f.name").inside("m")
    named = "m.value.f.name"
    with pytest.raises(InvalidValue, match=saying(named, "through m.value.f, a list", "write m.value.f.value")):
        hides.tree({"f": [ADA]})
    with pytest.raises(InvalidValue, match=saying(f"{named} is a number", "not text")):
        hides.tree({"f": {"name": 1}})


def test_a_map_needs_its_step() -> None:
    """A dotted path enters a map by `value` alone."""
    with pytest.raises(InvalidValue, match=saying("f.name", "through f, a map", "write f.value.name")):
        obfuscator("f.name").rows(row({"f": pa.map_(TEXT, TEXT)}, f=None))


def test_flattened_names_stop_nowhere() -> None:
    """A flattened name is one name: a column that its beginning spells is another column."""
    tree: Tree = {"customer": "Bob", "customer_name": "Bob", "customer_names": ["Bob"]}
    assert obfuscator("customer_name").tree(tree) == {**tree, "customer_name": STARS}


def test_messages_show_paths_safely() -> None:
    """A name with control characters is escaped in a message."""
    with pytest.raises(InvalidValue, match=r"a\\nb is a number"):
        obfuscator("a\nb").tree({"a\nb": 1})


def test_trees_stay_as_they_are() -> None:
    """A tree is not changed; what is not obfuscated is shared with the one given back."""
    tree: Tree = {"a": {"name": "x"}, "b": {"name": "y"}, "l": [{"name": "z"}]}
    before = copy.deepcopy(tree)
    hidden = obfuscator("a.name").tree(tree)
    assert tree == before
    assert hidden["b"] is tree["b"]
    assert obfuscator("nothing").tree(tree) is tree


def test_rows_without_a_match_are_given_back() -> None:
    """Rows of a type that has nothing to obfuscate are the same object; so are rows that are no structs."""
    rows = row({"a": TEXT}, a="x")
    assert obfuscator("b").rows(rows) is rows
    texts = pa.array(["x"])
    assert obfuscator("b").rows(texts) is texts


def field(name: str, arrow: pa.DataType, nullable: bool) -> pa.Field:
    """A field; one that is only ever null is nullable."""
    return pa.field(name, arrow, nullable=nullable or pa.types.is_null(arrow))


types = st.recursive(
    st.sampled_from([TEXT, TEXT, NUMBER, pa.bool_(), pa.null()]),
    lambda below: st.one_of(
        st.tuples(below, st.booleans()).map(lambda of: pa.list_(field("item", *of))),
        st.dictionaries(st.sampled_from("abv"), st.tuples(below, st.booleans()), min_size=1, max_size=3).map(
            lambda of: pa.struct([field(name, *below) for name, below in of.items()])
        ),
    ),
    max_leaves=4,
)
structs = st.dictionaries(st.sampled_from(["a", "b", "a_b", "a.b", "value"]), types, min_size=1, max_size=4).map(
    lambda of: pa.struct(list(of.items()))
)
names = st.lists(st.sampled_from(["a", "b", "v", "value", "a_b"]), min_size=1, max_size=4)
fields = st.lists(names.map(".".join) | names.map("_".join), min_size=1, max_size=3, unique=True).map(tuple)


def values(arrow: pa.DataType, nullable: bool = True) -> st.SearchStrategy[object]:
    """Python values of a type."""
    if pa.types.is_null(arrow):
        return st.none()
    if pa.types.is_struct(arrow):
        found = st.fixed_dictionaries({field.name: values(field.type, field.nullable) for field in arrow})
    elif pa.types.is_list(arrow):
        found = st.lists(values(arrow.value_type, arrow.value_field.nullable), max_size=3)
    else:
        found = {TEXT: st.text(max_size=2), NUMBER: st.integers(0, 9), pa.bool_(): st.booleans()}[arrow]
    return st.none() | found if nullable else found


def refuses(hides: FieldObfuscator, trees: Sequence[Tree]) -> bool:
    """Whether any of the trees is invalid."""
    for tree in trees:
        try:
            hides.tree(tree)
        except InvalidValue:
            return True
    return False


@settings(max_examples=examples(100), deadline=None)
@given(structs, fields, st.booleans(), st.data())
def test_rows_and_trees_agree(arrow: pa.DataType, named: tuple[str, ...], flat: bool, data: st.DataObject) -> None:
    """Rows of any type, sliced or not, leave as their trees do, types, nulls and all else unchanged."""
    trees = data.draw(st.lists(values(arrow, nullable=False), min_size=1, max_size=4))
    start = data.draw(st.integers(0, len(trees)))
    rows = pa.array(trees, arrow).slice(start)
    how = ObfuscationSettings(named)
    try:
        found = FieldObfuscator(how, flat).rows(rows)
    except InvalidValue:
        return  # by type; the trees, if there are such values
    found.validate(full=True)
    assert found.type.equals(arrow)
    assert found.to_pylist() == [FieldObfuscator(how, flat).tree(tree) for tree in trees[start:]]
    assert pa.array(trees, arrow).slice(start).equals(rows)


@settings(max_examples=examples(100), deadline=None)
@given(structs, fields, st.booleans(), st.data())
def test_what_trees_refuse_rows_refuse(
    arrow: pa.DataType, named: tuple[str, ...], flat: bool, data: st.DataObject
) -> None:
    """A value that makes a tree invalid has a type that makes rows invalid."""
    trees = data.draw(st.lists(values(arrow, nullable=False), min_size=1, max_size=3))
    hides = obfuscator(*named, flat=flat)
    if refuses(hides, trees):
        with pytest.raises(InvalidValue):
            hides.rows(pa.array(trees, arrow))


json_trees = st.dictionaries(
    st.sampled_from(["a", "b", "a_b", "a.b"]),
    st.recursive(
        st.none() | st.text(max_size=2) | st.integers(0, 9),
        lambda below: st.dictionaries(st.sampled_from(["a", "b", "v"]), below, min_size=1, max_size=3),
        max_leaves=4,
    ),
    min_size=1,
)


@settings(max_examples=examples(100), deadline=None)
@given(json_trees, fields, st.booleans())
def test_columns_and_trees_agree(tree: Tree, named: tuple[str, ...], flat: bool) -> None:
    """Columns as they were read leave as the tree does, or are left to the tree to judge."""
    hides = obfuscator(*named, flat=flat)
    found = hides.columns({name: pa.array([value]) for name, value in tree.items()})
    if refuses(hides, [tree]):
        assert found is None
    elif found is not None:
        expected = pa.array([hides.tree(tree)]).to_pylist()
        assert [{name: array[0].as_py() for name, array in found.items()}] == expected


def test_columns() -> None:
    """Named columns are obfuscated, others are the same object, and those not there are passed over."""
    arrays = {"a": pa.array(["x", None]), "b": pa.array(["x", "y"]), "c": pa.array([1, 2])}
    found = obfuscator("a").columns(arrays)
    assert found is not None
    assert found["a"].to_pylist() == [STARS, None]
    assert found["b"] is arrays["b"]
    assert arrays["a"].to_pylist() == ["x", None]


@pytest.mark.parametrize("flat", [True, False])
def test_nested_columns(flat: bool) -> None:
    """Columns are entered by dotted paths."""
    arrays = {"f": pa.array([ADA], CUSTOMER)}
    found = obfuscator("f.name", flat=flat).columns(arrays)
    assert found is not None
    assert found["f"].to_pylist() == [HIDDEN]


@pytest.mark.parametrize(("named", "flat"), [("f", True), ("f.name", True), ("f", False), ("f.name", False)])
def test_columns_that_are_no_text(named: str, flat: bool) -> None:
    """A named column that holds numbers or objects is left to the tree; one that holds nothing is no matter."""
    hides = obfuscator(named, flat=flat)
    assert obfuscator("f", flat=flat).columns({"f": pa.array([ADA], CUSTOMER)}) is None
    assert hides.columns({"f": pa.array([None, 1])}) is None
    nothing = {"f": pa.array([None, None], NUMBER)}
    assert hides.columns(nothing) == nothing


def test_fields_below_that_hold_nothing() -> None:
    """Where a named field of an object holds nothing, its type is no matter either."""
    below = {"f": pa.array([None, {"name": None}], pa.struct([("name", NUMBER)]))}
    assert obfuscator("f.name").columns(below) == below
    empty = {"f": pa.array([{}, None, {}], pa.struct([]))}
    assert obfuscator("f.name").columns(empty) == empty
    assert obfuscator("f.g.name").columns({"f": pa.array([{"g": {}}])}) == {"f": pa.array([{"g": {}}])}


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(
    ("named", "texts", "passes"),
    [
        ("f.tags.value", ['["*****"]', None, "[]"], True),
        ("f.tags.value", ['["*****"]', "Ada"], False),
        ("f.tags.name", ['["*****"]'], False),
        ("f.other.value", ["Ada"], True),
    ],
)
def test_lists_that_are_text(named: str, texts: list[str | None], passes: bool, flat: bool) -> None:
    """Text that may be a list's, which was obfuscated before it became text, stays; any other is for the tree."""
    arrays = {"f": pa.array([{"tags": text} for text in texts])}
    hides = obfuscator(named, flat=flat)
    assert hides.columns(arrays, lists_as_text=True) == (arrays if passes else None)
    assert hides.columns(arrays) == (arrays if named == "f.other.value" else None)


UNMATCHED = [
    ("f", True, TEXT, True),
    ("f", True, NUMBER, True),
    ("f.name", False, CUSTOMER, True),
    ("f_name", False, CUSTOMER, False),
    ("f_name", True, CUSTOMER, True),
    ("f.other", True, CUSTOMER, False),
    ("f.value", True, TEXT, True),
    ("f_value_name", True, TEXT, True),
    ("f.value.name", False, TEXT, True),
    ("f.name", True, TEXT, False),
    ("f_values", True, TEXT, False),
    ("f.value.name", False, PLAYERS, True),
    ("f.value.name", False, pa.map_(TEXT, CUSTOMER), True),
    ("f.name", False, PLAYERS, False),
    ("F", True, TEXT, False),
]


@pytest.mark.parametrize(("named", "flat", "arrow", "matches"), UNMATCHED)
def test_unmatched(named: str, flat: bool, arrow: pa.DataType, matches: bool) -> None:
    """A setting is unmatched when no column is named by it, nor is the JSON text of a list that it enters."""
    hides = obfuscator(named, "zz", flat=flat)
    schema = pa.schema([("x", NUMBER), ("f", arrow)])
    assert hides.unmatched(schema) == (("zz",) if matches else (named, "zz"))


def test_unmatched_of_exploded_records() -> None:
    """A setting may begin with a list that no column tells of, where records are exploded."""
    hides = FieldObfuscator(ObfuscationSettings(("m.value.name", "name", "m.value.nmae", "m.name")), flat=True)
    columns = (pa.field("name", pa.string()),)
    assert hides.unmatched(columns, exploded=True) == ("m.value.nmae", "m.name")
    assert hides.unmatched(columns) == ("m.value.name", "m.value.nmae", "m.name")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of fields and types leaves a bounded memory, and changes nothing."""
    monkeypatch.setattr(field_obfuscator, "_MOST_PLACES", 10)
    monkeypatch.setattr(field_obfuscator, "_MOST_TYPES", 3)
    hides = obfuscator("f.value.name", "n")
    for number in range(50):
        tree: Tree = {f"a{number}": "x", "f": [{"name": "x", f"b{number}": 1}], "n": "x", "long" * 100: "x"}
        expected = {**tree, "f": [{"name": STARS, f"b{number}": 1}], "n": STARS}
        assert hides.tree(tree) == expected
        found = hides.rows(row({f"a{number}": TEXT, "n": TEXT}, n="x"))
        assert found.to_pylist() == [{f"a{number}": None, "n": STARS}]
    assert len(hides._places.root.below) <= 10
    assert len(hides._plans) <= 3


def test_salts_come_from_outside() -> None:
    """A fresh salt is asked for once for each value that is obfuscated, and for no other."""
    asked: list[str] = []

    def salt() -> str:
        asked.append("salt")
        return "salt"

    how = ObfuscationSettings(("a",), method="sha512", random_salt=True)
    FieldObfuscator(how, flat=True, fresh_salt=salt).rows(pa.array([{"a": "x"}, {"a": None}, {"a": "x"}]))
    assert len(asked) == 2
