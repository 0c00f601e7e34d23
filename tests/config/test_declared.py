"""Keys and settings from one declaration."""

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import (
    Bytes,
    LocalPath,
    Long,
    Milliseconds,
    by_key,
    check,
    declared,
    filled_by,
    key,
    keys_of,
    made,
    names_of,
)
from parquet_sink.config.docs import row_of
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.secret import STARS, Secret, dump_with_secrets, load_with_secrets
from parquet_sink.config.values import Values, read
from tests.messages import assert_says, saying

MACHINE = Machine(working_dir="/home/u", tmp_dir="/var/tmp")


@declared(group="Proxy", prefix="shop.proxy.")
class Proxy:
    """A group of keys of which two are needed."""

    host: str = key("host", "Host.", needs="port")
    port: int = key("port", "Port.", minimum=1, maximum=65_535, needs="host")
    scheme: Literal["http", "socks5"] = key("scheme", "Protocol.", default="http", other_choice="http")


@declared(group="Login", prefix="shop.", optional=True)
class Login:
    """Of which both are needed, or neither."""

    user: str = key("user", "User.")
    password: Secret = key("password", "Password.", missing="give the user's password.")


def quick(values: Values, machine: Machine) -> bool:
    """The default is that of another key."""
    return values.flag("shop.quick") if "shop.quick" in values.given else values.number("shop.batch") == 100


def signs(values: Values, machine: Machine) -> Secret | Login | None:
    """By a key, or as somebody."""
    return values.secret("shop.key") or (made(Login, values, machine) if "shop.user" in values.given else None)


@declared(group="Bucket", prefix="shop.", optional=True)
class Bucket:
    """What some files use."""

    bucket: str = key("bucket", "Bucket.", missing="name the bucket.", default_text="required for a bucket")
    login: Login


@declared(group="The shop", prefix="shop.")
class Shop:
    """A field of each kind."""

    table: str = key("table", "Table.", missing="name the table.", check=PRINTABLE)
    token: Secret | None = key("token", "Token.", default=None)
    mode: Literal["insert", "upsert"] = key("mode", "How.", default="upsert")
    batch: int = key("batch", "Rows.", default=10, minimum=1, maximum=100)
    most: Long = key("most", "Rows in all.", default=1 << 40)
    pause_ms: Milliseconds = key("pause.ms", "Pause.", default=500, minimum=0)
    size: Bytes = key("size.bytes", "Size.", default=1 << 33)
    share: float = key("share", "Share.", default=0.5, minimum=0, maximum=1)
    log: bool = key("log", "Whether.", default=False)
    columns: tuple[str, ...] = key("columns", "Columns.", default=())
    folder: LocalPath = key("folder", "Folder.", default="out")
    ca_file: LocalPath | None = key("ca.file", "PEM file.", default=None, default_text="the system's")
    limit: int | None = key("limit", "Limit.", default=None, default_text="none is set", minimum=1)
    quick: bool = key("quick", "Whether.", default=True, default_text="`true` in bulk", computed=quick)
    signs: Secret | Login | None = key("key", "Key.", default=None, type_=Secret, computed=signs)
    dry: ClassVar[bool] = key("dry", "Whether nothing is written.", default=False, origin=Origin.OWN)
    name: str = filled_by("name", default="none")
    proxy: Proxy | None = None
    login: Login | None = None
    started: str = "never"


KEYS = {one.name.removeprefix("shop."): one for one in keys_of(Shop)}


def reading(cls: type, texts: Mapping[str, str], *more: Key) -> tuple[Values, Report]:
    """What a file has, keys without `shop.`."""
    report, full = Report(), {name if name == "name" else f"shop.{name}": text for name, text in texts.items()}
    values = read((*keys_of(cls), *more), Resolved(full, full), report)
    check(cls, values, report)
    return values, report


def shop(**texts: str) -> Shop:
    """Of a file that has what is needed, and these keys with `_` for dots."""
    given = {"table": "t", **{name.replace("_", "."): text for name, text in texts.items()}}
    values, report = reading(Shop, given)
    assert report.problems == []
    return made(Shop, values, MACHINE)


TYPES = {
    "table": Type.STRING,
    "token": Type.PASSWORD,
    "mode": Type.STRING,
    "batch": Type.INT,
    "most": Type.LONG,
    "pause.ms": Type.LONG,
    "size.bytes": Type.LONG,
    "share": Type.DOUBLE,
    "log": Type.BOOLEAN,
    "columns": Type.LIST,
    "folder": Type.STRING,
    "ca.file": Type.STRING,
    "limit": Type.INT,
    "key": Type.PASSWORD,
    "dry": Type.BOOLEAN,
    "proxy.scheme": Type.STRING,
}


@pytest.mark.parametrize("name", TYPES)
def test_the_annotation_is_the_type(name: str) -> None:
    """Also of a field that may be None, and of a key that fills none."""
    assert KEYS[name].type is TYPES[name]


def test_a_key_is_what_the_table_would_have() -> None:
    """Field by field: names in full, the class's section and origin, choices of a Literal."""
    assert KEYS["batch"] == Key(
        "shop.batch", "The shop", Type.INT, "Rows.", default=10, minimum=1, maximum=100, origin=Origin.PLUGIN
    )
    assert KEYS["table"] == Key(
        *("shop.table", "The shop", Type.STRING, "Table."),
        required=True,
        missing="name the table.",
        check=PRINTABLE,
        origin=Origin.PLUGIN,
    )
    assert KEYS["mode"].choices == ("insert", "upsert")
    assert (KEYS["dry"].origin, KEYS["proxy.host"].group) == (Origin.OWN, "Proxy")
    assert (KEYS["proxy.host"].needs, KEYS["proxy.scheme"].other_choice) == ("shop.proxy.port", "http")


def test_keys_come_in_the_order_of_the_declaration() -> None:
    """Those of a group where its field stands; one that is documented elsewhere is none of them."""
    names = [name for name in KEYS if not name.startswith("proxy.")]
    assert names[:3] == ["table", "token", "mode"]
    assert list(KEYS)[-6:] == ["dry", "proxy.host", "proxy.port", "proxy.scheme", "user", "password"]
    assert "name" not in KEYS
    assert [one.name for one in keys_of(Shop, "Login")] == ["shop.user", "shop.password"]


def test_names_are_those_that_settings_depend_on() -> None:
    """Its own, those of groups, and those documented elsewhere."""
    assert names_of(Shop) == {"name", *(one.name for one in keys_of(Shop))}


DOCUMENTED_SHARE = "| number | 0.5 | 0 to 1 |"
"""What the reference's table has of a key: type, default and limits."""


def test_a_default_in_words_documents_what_is_computed() -> None:
    """The table has no value then, and else that of the field."""
    assert (KEYS["quick"].default, KEYS["columns"].default, KEYS["batch"].default) == (None, (), 10)
    assert "| `true` in bulk |" in row_of(KEYS["quick"])
    assert DOCUMENTED_SHARE in row_of(KEYS["share"])


def test_without_keys_the_settings_are_those_of_the_class() -> None:
    """The defaults of the file are the defaults of the fields, paths aside."""
    assert shop() == Shop("t", folder="/home/u/out", quick=False)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("a b", "table", "a b"),
        ("INSERT", "mode", "insert"),
        ("7", "batch", 7),
        ("1099511627777", "most", (1 << 40) + 1),
        ("0.25", "share", 0.25),
        ("1e-1", "share", 0.1),
        ("TRUE", "log", True),
        ("a, b,a", "columns", ("a", "b")),
        ("/x/../y", "folder", "/y"),
        ("ca.pem", "ca_file", "/home/u/ca.pem"),
        ("3", "limit", 3),
        ("s", "token", Secret("s")),
    ],
)
def test_a_text_becomes_the_field(text: str, field: str, value: object) -> None:
    """Read by its type; paths are absolute."""
    assert getattr(shop(**{field: text}), field) == value


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("batch", "0", ('"0"', "less than 1", "give 1 to 100")),
        ("batch", "101", ('"101"', "more than 100", "give 1 to 100")),
        ("batch", "many", ('"many"', "not a whole number", "digits only", "1 to 100")),
        ("most", str(2**63), (f'"{2**63}"', f"more than {2**63 - 1}", "64-bit whole number")),
        ("share", "1.01", ('"1.01"', "more than 1", "give 0 to 1")),
        ("share", "-0.1", ('"-0.1"', "less than 0", "give 0 to 1")),
        ("share", "half", ('"half"', "not a number", "such as 0.5", "0 to 1")),
        ("share", "nan", ('"nan"', "not a number", "such as 0.5", "0 to 1")),
        ("share", "1e999", ('"1e999"', "not a number", "such as 0.5", "0 to 1")),
        ("mode", "updat", ('"updat"', "not one of", "insert, upsert")),
        ("log", "yes", ('"yes"', "neither true nor false", "one of them")),
        ("table", "a\tb", ('"a\\tb"', "control characters", "remove them")),
    ],
)
def test_a_wrong_value_is_a_problem(name: str, text: str, words: tuple[str, ...]) -> None:
    """Each value is judged by its line alone."""
    [problem] = reading(Shop, {"table": "t", name: text})[1].problems
    assert_says(problem, f"Invalid [shop.{name}]", *words)


def test_what_is_missing_is_a_problem() -> None:
    """Told once, with its cure: when a file is read, or by the check of those who use a class that not all files do."""
    (table,) = reading(Shop, {})[1].problems
    assert_says(table, "[shop.table]", "missing", "name the table")
    bucket, password = reading(Bucket, {})[1].problems
    assert_says(bucket, "[shop.bucket]", "missing", "name the bucket")
    assert_says(password, "[shop.password]", "missing", "the user's password")
    assert [(one.required, one.missing) for one in keys_of(Bucket)] == [(False, "")] * 3


def test_half_a_group_is_a_problem() -> None:
    """With the cure of its line, or the usual one; where keys need each other, that is warned about elsewhere."""
    needed = {"table": "t"}
    (password,) = reading(Shop, {**needed, "user": "u"})[1].problems
    assert_says(password, "[shop.password]", "missing", "beside shop.user", "the user's password")
    (user,) = reading(Shop, {**needed, "password": "p"})[1].problems
    assert_says(user, "[shop.user]", "missing", "beside shop.password", "both, or neither")
    assert reading(Shop, {**needed, "proxy.host": "h"})[1].problems == []


def test_a_group_is_none_without_what_it_needs() -> None:
    """And whole with it."""
    assert shop(proxy_host="h").proxy is None
    assert shop(proxy_host="h", proxy_port="1", proxy_scheme="socks5").proxy == Proxy("h", 1, "socks5")


def test_a_computed_field_looks_at_all_of_the_file() -> None:
    """In place of its own key; where it gives nothing, the default holds."""
    assert (shop(batch="100").quick, shop(batch="100", quick="false").quick) == (True, False)
    assert shop(key="k").signs == Secret("k")
    assert shop(user="u", password="p").signs == Login("u", Secret("p"))
    assert shop().signs is None


def test_the_caller_fills_other_fields() -> None:
    """Those that no key fills, and any other in place of its key."""
    values, _ = reading(Shop, {"table": "t"})
    found = made(Shop, values, MACHINE, started="now", table="other", proxy=Proxy("h", 1))
    assert (found.started, found.table, found.proxy) == ("now", "other", Proxy("h", 1))


def test_a_key_documented_elsewhere_fills_a_field() -> None:
    """Where the connector class has it; else the default holds."""
    texts = {"table": "t", "name": "orders"}
    values, _ = reading(Shop, texts, Key("name", "The connector", Type.STRING, "Name.", default="x"))
    assert (made(Shop, values, MACHINE).name, shop().name) == ("orders", "none")


def test_settings_are_frozen_and_cross_processes() -> None:
    """An ordinary dataclass: copied with changes, handed over by value, and secret where it must be."""
    settings = shop(token="canary", proxy_host="h", proxy_port="1")
    with pytest.raises(FrozenInstanceError):
        settings.batch = 3  # type: ignore[misc]
    assert load_with_secrets(dump_with_secrets(settings)) == settings
    assert replace(settings, batch=3).batch == 3
    assert "canary" not in repr(settings)
    assert f"token={STARS}" in repr(settings)
    assert Shop.dry is False


@declared(group="Base", prefix="base.", origin=Origin.OWN, kw_only=True)
class Base:
    """What two classes share."""

    wait_ms: int = key("wait.ms", "Wait.", default=1)
    folder: LocalPath = key("folder", "Folder.", default="a")


@declared(group="Derived", prefix="own.", kw_only=True)
class Derived(Base):
    """With a field of its own before, and another text for one of the base."""

    host: str = key("host", "Host.")
    folder: LocalPath = key("folder", "Another folder.", default="b")


def test_a_subclass_has_the_keys_of_its_base() -> None:
    """One that is declared again stays in its place; the base is as it was."""
    assert [(one.name, one.group, one.doc) for one in keys_of(Derived)] == [
        ("base.wait.ms", "Base", "Wait."),
        ("own.folder", "Derived", "Another folder."),
        ("own.host", "Derived", "Host."),
    ]
    assert [one.name for one in keys_of(Base)] == ["base.wait.ms", "base.folder"]
    assert Derived(host="h", wait_ms=3) == Derived(host="h", wait_ms=3, folder="b")


WRONG: Mapping[str, tuple[object, str]] = {
    "a list that can change": (list[str], "list[str]"),
    "numbers to choose from": (Literal[1, 2], "Literal[1, 2]"),
    "either of two": (str | int, "str | int"),
    "a path object": (Path, "Path"),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_annotation_is_refused(name: str) -> None:
    """When the class is made, with its field and what may be written."""
    annotation, shown = WRONG[name]
    wrong = type("WrongShop", (), {"__annotations__": {"field": annotation}, "field": key("a", "A.")})
    with pytest.raises(TypeError, match=saying("WrongShop.field", shown, "not a type", "write str")):
        declared(group="g")(wrong)


def test_one_key_is_declared_once() -> None:
    """A file has one place for it."""
    fields: dict[str, Any] = {"__annotations__": {"a": str, "b": str}, "a": key("x", "A."), "b": key("x", "B.")}
    with pytest.raises(ValueError, match=saying("Twice", "t.x", "twice")):
        declared(group="g", prefix="t.")(type("Twice", (), fields))


def test_what_no_check_reported_is_never_half_made() -> None:
    """A mistake of the class that makes settings of a file with problems."""
    values, _ = reading(Bucket, {})
    with pytest.raises(AssertionError, match=r"shop\.bucket is missing"):
        made(Bucket, values, MACHINE)


KINDS: Mapping[type, tuple[object, Callable[[st.DataObject], object]]] = {
    int: (int, lambda data: data.draw(st.integers(-(2**31), 2**31 - 1))),
    float: (float, lambda data: data.draw(st.floats(allow_nan=False, allow_infinity=False))),
    bool: (bool, lambda data: data.draw(st.booleans())),
    str: (str, lambda data: data.draw(st.from_regex(r"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True))),
    tuple: (
        tuple[str, ...],
        lambda data: tuple(data.draw(st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), unique=True, min_size=1))),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_is_written_is_what_is_read(kind: type, data: st.DataObject) -> None:
    """Whatever the value, as text in a file it becomes the same value, whether or not None is possible, too."""
    annotation, draw = KINDS[kind]
    value = draw(data)
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    hints = {"one": annotation, "other": annotation | None}  # type: ignore[operator]
    fields = {"__annotations__": hints, "one": key("one", "A."), "other": key("other", "B.", default=None)}
    both: type[Any] = declared(group="g", prefix="shop.")(type("Both", (), fields))
    values, report = reading(both, {"one": text, "other": text})
    assert report.problems == []
    found: Any = made(both, values, MACHINE)
    assert (found.one, found.other, type(found.one)) == (value, value, type(value))


@given(low=st.integers(-1000, 1000), span=st.integers(0, 1000), value=st.integers(-3000, 3000))
def test_limits_hold_at_every_value(low: int, span: int, value: int) -> None:
    """A number is taken exactly from the minimum to the maximum, whole or not."""
    for annotation in (int, Long, float):
        fields = {
            "__annotations__": {"one": annotation},
            "one": key("one", "A.", minimum=low, maximum=low + span),
        }
        limited: type[Any] = declared(group="g", prefix="shop.")(type("Limited", (), fields))
        _, report = reading(limited, {"one": str(value)})
        assert (report.problems == []) is (low <= value <= low + span)


def test_settings_are_told_by_their_keys() -> None:
    """A field without a key by its own name; of a group its keys, and of one that is not there nothing."""
    told = by_key(shop(proxy_host="h", proxy_port="1"))
    assert told["shop.pause.ms"] == 500
    assert told["started"] == "never"
    assert told["name"] == "none"
    assert (told["shop.proxy.host"], told["shop.proxy.port"]) == ("h", 1)
    assert not {"proxy", "login", "shop.user", "shop.dry"} & told.keys()


def test_a_field_may_have_a_default_of_its_own() -> None:
    """Where no file is read; the key keeps its own."""

    @declared(group="Rows", prefix="rows.")
    class Rows:
        many: bool = key(
            *("mode", "How many."),
            default=False,
            absent="one",
            type_=Literal["one", "all"],
            computed=lambda values, machine: values.text("rows.mode") == "all",
        )

    (mode,) = keys_of(Rows)
    values = read((mode,), Resolved({}, {}), Report())
    assert (mode.default, mode.choices, Rows().many) == ("one", ("one", "all"), False)
    assert made(Rows, values, MACHINE) == Rows(many=False)


def test_a_field_that_is_declared_again_without_a_key_has_none() -> None:
    """What the base lets a file say, a subclass may fix."""

    @declared(group="Fixed")
    class Fixed(Shop):
        batch: int = 7

    assert "shop.batch" not in {one.name for one in keys_of(Fixed)}
    values, _ = reading(Shop, {"table": "t", "batch": "9"})
    assert (made(Shop, values, MACHINE).batch, made(Fixed, values, MACHINE).batch) == (9, 7)
