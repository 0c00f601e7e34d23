"""XML to trees: the mapping, what is refused, and documents made to do harm."""

import gc
import re
from collections.abc import Callable
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.xml import decoder as xml
from parquet_sink.addons.formats.xml.decoder import XmlDecoder, parse
from parquet_sink.addons.formats.xml.settings import XmlConverter
from parquet_sink.convert.decoded import Untyped
from parquet_sink.convert.invalid import InvalidValue
from tests.messages import assert_says, saying
from tests.thorough import examples

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'

ORDERS = """
<root>
 <order id="1">
   <item>Item 1</item>
   <item><inner>Item 2</inner></item>
   <different>a</different>
   <item>Item 3</item>
 </order>
 <order id="2">
   <item>Item 1</item>
   <item>Item 2</item>
 </order>
 <other>something else</other>
</root>
"""

MAPPED: list[tuple[str, dict[str, object]]] = [
    (
        ORDERS.strip(),
        {
            "order": [
                {"id": "1", "item": ["Item 1", {"inner": "Item 2"}, "Item 3"], "different": "a"},
                {"id": "2", "item": ["Item 1", "Item 2"]},
            ],
            "other": "something else",
        },
    ),
    ("<r a='1' b='2'/>", {"a": "1", "b": "2"}),
    ("<r><a/><b></b><c> </c><d> x </d></r>", {"a": "", "b": "", "c": " ", "d": " x "}),
    ("<r><a>1</a><a>2</a><a>3</a></r>", {"a": ["1", "2", "3"]}),
    ("<r a='1'><a>2</a></r>", {"a": ["1", "2"]}),
    ("<r><a><![CDATA[<x>]]> &amp; <!-- no -->y<?pi z?></a></r>", {"a": "<x> & y"}),
    ("<r><a u='kg'>5</a></r>", {"a": {"u": "kg", "value": "5"}}),
    ("<r a='1'>5</r>", {"a": "1", "value": "5"}),
    ("<r><a u='kg'> \n </a></r>", {"a": {"u": "kg"}}),
    ("<r>some <b>bold</b> text<i/></r>", {"value": ["some ", " text"], "b": "bold", "i": ""}),
    ("<r><a value='1'>5</a></r>", {"a": {"value": ["1", "5"]}}),
    ("<r xmlns='u'><a xmlns:p='v' p:b='1'/><p:a xmlns:p='w'>x</p:a></r>", {"a": [{"b": "1"}, "x"]}),
    ("<r><a xmlns='u'>x</a></r>", {"a": "x"}),
    ("<p:r><p:a xml:lang='de'>x</p:a></p:r>", {"a": {"lang": "de", "value": "x"}}),
    (f"<r {XSI}><a xsi:nil='true'>x<b/></a><c xsi:nil='false'>x</c></r>", {"a": None, "c": "x"}),
    (f"<r><a {XSI} xsi:nil='1'/><c xsi:nil='true'/></r>", {"a": None, "c": {"nil": "true"}}),
    (f"<r><a {XSI} xsi:nil='1' xsi:type='t' x:b='1' xmlns:x='u'>x<c/></a></r>", {"a": {"b": "1"}}),
    (f"<r {XSI} xsi:nil='true' id='7'><a/></r>", {"id": "7"}),
    (f"<r {XSI}><a xmlns:xsi='u'><b xsi:nil='true'/></a></r>", {"a": {"b": {"nil": "true"}}}),
    (f"<r {XSI} xsi:schemaLocation='u'><a nil='true'/></r>", {"schemaLocation": "u", "a": {"nil": "true"}}),
    ("<r><a>&#x1F600;&#xA;&lt;</a></r>", {"a": "\U0001f600\n<"}),
    ("<größe><länge>ä</länge></größe>", {"länge": "ä"}),
    ("<?xml version='1.0'?>\n<!-- c -->\n<?p i?>\n<r><a>1</a></r>\n<!-- c -->\n", {"a": "1"}),
]


@pytest.mark.parametrize(("document", "tree"), MAPPED)
def test_mapping(document: str, tree: dict[str, object]) -> None:
    """Attributes and elements are fields in order, equal names a list, scalars text, nil null."""
    assert repr(parse(document.encode())) == repr(tree)


ENCODED = [
    ("ä€".encode(), None, "ä€"),
    ("ä".encode("latin-1"), "ISO-8859-1", "ä"),
    ("ä€".encode("cp1252"), "windows-1252", "ä€"),
    ("ä€".encode("iso-8859-15"), "ISO-8859-15", "ä€"),
    ("ア表".encode("shift_jis"), "Shift_JIS", "ア表"),
    ("ä".encode(), "utf8", "ä"),
    (b"a", "US-ASCII", "a"),
]


@pytest.mark.parametrize(("text", "declared", "expected"), ENCODED)
def test_encodings(text: bytes, declared: str | None, expected: str) -> None:
    """A document is in UTF-8 or in the encoding that it declares."""
    head = f"<?xml version='1.0' encoding='{declared}'?>".encode() if declared else b""
    assert parse(head + b"<r><a>" + text + b"</a></r>") == {"a": expected}


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("head", ["", "<?xml version='1.0' encoding='UTF-16'?>"])
def test_marks(codec: str, head: str) -> None:
    """UTF-16 is seen by its mark or its first character; also where a document is longer than one piece."""
    head = "" if codec == "utf-8-sig" else head
    for text in ("ä\U0001f600", "\U0001f600" * 400_000):
        assert parse(f"{head}<r><a>{text}</a></r>".encode(codec)) == {"a": text}


def test_a_nil_record_is_a_tombstone() -> None:
    """A root element that is nil is null, as Kafka's null is."""
    assert parse(f"<r {XSI} xsi:nil='true'><a/></r>".encode()) is None
    assert parse(f"<r {XSI} xsi:nil='true' xsi:schemaLocation='u'/>".encode()) is None


NO_RECORD = ("root element", "neither attributes", "child elements")
ILL_FORMED = ("not XML", "not well-formed")
REFUSED = [
    (b"", ("is empty", "not XML")),
    (b" \n", ("is empty", "not XML")),
    (b"<r/>", NO_RECORD),
    (b"<r>secret</r>", NO_RECORD),
    (b"<r xmlns='u'> </r>", NO_RECORD),
    (b"secret", ("not XML", "syntax error", "line 1, column 1)")),
    (b'{"a":1}', (*ILL_FORMED, "line 1, column 1)")),
    (b"<r>\n <secret></r>", ("not XML", "mismatched tag", "line 2, column 12)")),
    (b"<r><a>", ("not XML", "no element found", "line 1, column 7)")),
    (b"<r a='1'", ("not XML", "unclosed token", "line 1, column 1)")),
    (b"<r a='1'/><s/>", ("not XML", "junk after document", "line 1, column 11)")),
    (b"<r a='1' a='2'/>", ("not XML", "duplicate attribute", "line 1, column 10)")),
    (b"<r><a>&secret;</a></r>", ("not XML", "undefined entity", "line 1, column 7)")),
    (b"<r><a>&#xD800;</a></r>", ("not XML", "invalid character number", "line 1, column 7)")),
    (b"<r><a>&#0;</a></r>", ("not XML", "invalid character number", "line 1, column 7)")),
    (b"<r><a>\x00</a></r>", (*ILL_FORMED, "line 1, column 7)")),
    (b"<r><a>\xff</a></r>", (*ILL_FORMED, "line 1, column 7)")),
    (b"<r><a>\xed\xa0\x80</a></r>", (*ILL_FORMED, "line 1, column 7)")),
    (b"\x1f\x8b\x08\x00secret", (*ILL_FORMED, "line 1, column 1)")),
    (b" <?xml version='1.0'?><r/>", ("not XML", "declaration", "not at start")),
    (b"\xff\xfe<\x00a", ("not XML", "not utf-16 text", "byte 5")),
    ("<r><a>".encode("utf-16-be") + b"\xd8\x00\x00x", ("not XML", "not utf-16-be text", "byte 13")),
    (b"<?xml version='1.0' encoding='UTF-16'?><r/>", ("not XML", "encoding", "declaration")),
    (b"<?xml version='1.0' encoding='EUC-KR'?><r>\xff</r>", ("not XML", "not euc-kr text", "byte 43")),
    (b"<r><:a/></r>", ("name", "colon", "line 1, column 4)")),
    (b"<r><a:/></r>", ("name", "colon", "line 1, column 4)")),
    (b"<r a:b:c='1'/>", ("name", "colon", "line 1, column 1)")),
]


@pytest.mark.parametrize(("document", "reason"), REFUSED)
def test_refused(document: bytes, reason: tuple[str, ...]) -> None:
    """What is not a record has a reason, and where; never content."""
    with pytest.raises(InvalidValue) as error:
        parse(document)
    assert_says(error.value, *reason)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["x-secret", "zip", "rot13", "unicode_escape", "utf-7", "punycode", "idna", "a" * 999])
def test_encodings_that_are_not_supported(name: str) -> None:
    """Only encodings from a list are read: no other of Python's codecs is reached."""
    with pytest.raises(InvalidValue, match=saying("encoding", "not supported")):
        parse(f"<?xml version='1.0' encoding='{name}'?><r a='1'/>".encode())


LAUGHS = "".join(f"<!ENTITY l{n + 1} '{f'&l{n};' * 10}'>" for n in range(9))
DOCUMENT_TYPES = [
    f"<!DOCTYPE r [<!ENTITY l0 'lol'>{LAUGHS}]><r><a>&l9;</a></r>",
    "<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><r><a>&x;</a></r>",
    "<!DOCTYPE r [<!ENTITY % x SYSTEM 'http://127.0.0.1:1/x.dtd'> %x;]><r a='1'/>",
    "<!DOCTYPE r SYSTEM 'file:///etc/passwd'><r a='1'/>",
    "<!DOCTYPE r PUBLIC 'secret' 'http://127.0.0.1:1/x.dtd'><r a='1'/>",
    "<!DOCTYPE r [<!ATTLIST r a CDATA 'secret'>]><r/>",
    f"<!DOCTYPE r [<!ENTITY x '{'x' * 100_000}'>]><r><a>{'&x;' * 100_000}</a></r>",
    "<!DOCTYPE r><r a='1'/>",
    "<?xml version='1.0'?> <!-- > --> <?p <!-- ?>\n<!DOCTYPE r [<!ENTITY x 'secret'>]><r a='&x;'/>",
]


@pytest.mark.parametrize("document", DOCUMENT_TYPES)
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_document_types(document: str, codec: str) -> None:
    """A document type is refused before anything in it is read: no entities, no files, no network."""
    with pytest.raises(InvalidValue, match=saying("document type", "not allowed")) as error:
        parse(document.encode(codec))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("document", DOCUMENT_TYPES)
def test_document_types_are_refused_twice(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would one come past the first look, the parser refuses it."""
    monkeypatch.setattr(xml, "_DOCUMENT_TYPE_BYTES", re.compile(b"(?!)"))
    with pytest.raises(InvalidValue, match=saying("document type", "not allowed")):
        parse(document.encode())


def test_words_of_a_document_type() -> None:
    """Comments and texts may speak of document types."""
    assert parse(b"<!--<!DOCTYPE r>--><r><a><![CDATA[<!DOCTYPE r>]]></a></r>") == {"a": "<!DOCTYPE r>"}


def nested(levels: int) -> bytes:
    """That many elements within each other."""
    return b"<a>" * (levels - 1) + b"<a b=''/>" + b"</a>" * (levels - 1)


def test_depth() -> None:
    """A hundred levels are read; one more ends the reading where it is."""
    tree: object = parse(nested(100))
    for _ in range(99):
        assert isinstance(tree, dict)
        tree = tree["a"]
    assert tree == {"b": ""}
    with pytest.raises(InvalidValue, match=saying("deeper than 100 levels", "line 1, column 301)")):
        parse(nested(101))


SIZE = 1_100_000
BOMBS: list[tuple[str, Callable[[], bytes]]] = [
    ("depth", lambda: b"<a>" * (SIZE // 3)),
    ("an attribute", lambda: b"<r a='" + b"x" * SIZE + b"'/>"),
    ("an open attribute", lambda: b"<r a='" + b"x" * SIZE),
    ("text", lambda: b"<r><a>" + b"x" * SIZE + b"</a></r>"),
    ("lines", lambda: b"<r><a>" + b"\n" * SIZE + b"</a></r>"),
    ("references", lambda: b"<r><a>" + b"&lt;" * (SIZE // 4) + b"</a></r>"),
    ("CDATA sections", lambda: b"<r><a>" + b"<![CDATA[x]]>" * (SIZE // 13) + b"</a></r>"),
    ("comments before the root", lambda: b"<!-- --><?p ?>" * (SIZE // 14) + b"<r a=''/>"),
    ("an open instruction", lambda: b"<?p " * (SIZE // 4)),
    ("an open comment", lambda: b"<r><!--" + b"-x" * (SIZE // 2)),
    ("a name", lambda: b"<r><" + b"n" * SIZE + b"/></r>"),
    ("attributes", lambda: b"<r " + b" ".join(b"a%d=''" % number for number in range(SIZE // 12)) + b"/>"),
    ("elements", lambda: b"<r>" + b"".join(b"<a%d/>" % number for number in range(SIZE // 12)) + b"</r>"),
    ("siblings", lambda: b"<r>" + b"<a/>" * (SIZE // 4) + b"</r>"),
    ("pieces of text", lambda: b"<r>" + b"x<a/>" * (SIZE // 5) + b"</r>"),
    ("namespaces", lambda: b"<r " + b" ".join(b"xmlns:a%d='u'" % n for n in range(SIZE // 18)) + b"/>"),
    (
        "a long namespace, named often",
        lambda: (
            b"<r xmlns:p='" + b"u" * (SIZE // 2) + b"' " + b" ".join(b"p:a%d=''" % n for n in range(SIZE // 24)) + b"/>"
        ),
    ),
]


@pytest.mark.parametrize("bomb", [bomb for _, bomb in BOMBS], ids=[name for name, _ in BOMBS])
def test_bombs(bomb: Callable[[], bytes]) -> None:
    """Whatever there is much of, reading ends, with a tree that is not larger than the document allows."""
    decoded = XmlDecoder(XmlConverter()).decode(pa.array([bomb()]))
    assert all(len(reason) < 200 for reason in decoded.invalid.values())
    assert all(sum(map(len, tree)) <= SIZE for piece in decoded.pieces for tree in piece.trees)  # type: ignore[union-attr]


def parsers() -> int:
    """How many parsers there are."""
    return sum(type(one).__name__ == "xmlparser" for one in gc.get_objects())


def test_failures_leave_nothing_behind() -> None:
    """What a parser holds is given back at once, also after a failure."""
    gc.collect()
    before = parsers()
    gc.disable()
    try:
        for document in (b"<r", b"<r></s>", b"<!DOCTYPE r><r/>", nested(101)):
            with pytest.raises(InvalidValue):
                parse(document)
        assert parsers() == before
    finally:
        gc.enable()


names = st.from_regex(r"[A-Za-z_ä][A-Za-z0-9_.\-ä]{0,3}", fullmatch=True).filter(lambda name: name[:3].lower() != "xml")
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
plain_trees = st.recursive(
    texts,
    lambda below: st.dictionaries(names, below | st.lists(below, min_size=2, max_size=3), min_size=1, max_size=3),
    max_leaves=8,
)


def write(name: str, value: object) -> str:
    """An element, or several for a list; text is sometimes an attribute's, sometimes an element's."""
    if isinstance(value, list):
        return "".join(write(name, item) for item in value)
    if isinstance(value, dict):
        first, *_ = value
        attribute = ""
        if isinstance(value[first], str):
            attribute = f" {first}={quoteattr(value[first])}"
            value = {key: below for key, below in value.items() if key != first}
        return f"<{name}{attribute}>\n{'<!-- -->'.join(write(key, below) for key, below in value.items())}\n</{name}>"
    return f"<{name}>{escape(str(value))}</{name}>"


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(names, plain_trees, min_size=1, max_size=3), st.sampled_from(["utf-8", "utf-16"]))
def test_what_was_written_is_read(tree: dict[str, object], codec: str) -> None:
    """Any tree of text, objects and lists comes back as it was written, in its order."""
    assert repr(parse(write("r", tree).encode(codec, "strict"))) == repr(tree)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.binary(max_size=30)
        | st.text("<>/ar='& x:!-[]?\n", max_size=30).map(lambda text: b"<r a='1'>" + text.encode() + b"</r>"),
        max_size=4,
    )
)
def test_any_bytes(values: list[bytes]) -> None:
    """Each value is a tree, invalid, or nil, by itself; nothing else is raised."""
    padded = pa.array([b"<r a='first'/>", *values, b"<r a='last'/>"])
    decoded = XmlDecoder(XmlConverter()).decode(padded.slice(1))
    (piece,) = decoded.pieces
    assert isinstance(piece, Untyped)
    found = dict(zip(piece.positions.to_pylist(), piece.trees, strict=True))
    assert found.pop(len(values)) == {"a": "last"}
    assert not set(found) & set(decoded.invalid)
    assert all(found.values())
    for position, value in enumerate(values):
        if position in decoded.invalid:
            with pytest.raises(InvalidValue):
                parse(value)
        else:
            assert parse(value) == found.get(position)


def test_nothing_valid_is_no_piece() -> None:
    """No tree gives no piece; a nil record is neither a tree nor invalid."""
    decoded = XmlDecoder(XmlConverter()).decode(pa.array([b"<r", f"<r {XSI} xsi:nil='true'/>".encode()]))
    assert decoded.pieces == ()
    assert set(decoded.invalid) == {0}
