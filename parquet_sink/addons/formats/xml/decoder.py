"""Decodes XML documents to trees, as the EMS connector's XmlConverter (Jackson's XmlMapper into plain maps) has them.

The root element is the record and its name is dropped. Then, for every element:

- attributes and child elements are fields, in order; prefixes and declarations of namespaces are dropped;
- fields of one name are a list, whether they are elements, attributes or both;
- an element with neither is its text, as it stands: `""` when empty;
- every scalar is text; `xsi:nil="true"` makes an element null, whatever it holds, and `xsi:nil` is not a field; an
  element that is nil and has attributes of its own, outside the namespace of `xsi:nil`, has these alone as fields;
- comments and processing instructions are passed over, CDATA is text.

Text beside attributes or child elements is the field `value`, one for each piece between two elements, unless it is all
white space. Jackson names that field with an empty name, which the connector then refuses. Jackson takes a root element
with nothing but text for a record with such a field, and one with nothing for an empty record; both are invalid here.

Document types, and with them entities and external references, are refused before expat sees them, because it does not
stop where a handler of defusedxml says no, but at the end of what it was given. Depth is counted. Parsing takes time
and memory proportional to the size: CPU of 6 µs for each record and 1.1 µs for each element or attribute, 15 µs for a
record of 158 bytes and 7 fields.
"""

import codecs
import re
from collections.abc import Mapping
from typing import Any
from xml.sax import SAXException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from parquet_sink.convert.custom import OneByOne
from parquet_sink.convert.decoded import MAX_DEPTH, Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.settings import Converter

TEXT = "value"
"""The field of text that stands beside attributes or child elements."""

_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_WHITE_SPACE = " \t\r\n"
_PIECE_BYTES = 2**20
"""Expat takes this much at once, and stops between two pieces only."""

_PROLOG = r"\s++|<\?.*?\?>|<!--.*?-->"
_DOCUMENT_TYPE = re.compile(f"(?:{_PROLOG})*+<!DOCTYPE", re.DOTALL)
_DOCUMENT_TYPE_BYTES = re.compile(f"(?:\xef\xbb\xbf)?(?:{_PROLOG})*+<!DOCTYPE".encode("latin-1"), re.DOTALL)
"""What stands before a document type is white space, comments and processing instructions."""

_NATIVE = frozenset({"utf-8", "utf-16", "utf-16le", "utf-16be", "iso-8859-1", "us-ascii"})
"""Encodings that expat knows itself."""

_DECODED = frozenset(
    {"utf8", "latin1", "ascii", "koi8-r", "koi8-u", "gb2312", "gbk", "gb18030", "big5", "shift_jis", "windows-31j"}
    | {"euc-jp", "euc-kr", "iso-2022-jp", "tis-620"}
    | {f"iso-8859-{part}" for part in (*range(2, 12), 13, 14, 15, 16)}
    | {f"{family}{page}" for family in ("windows-", "cp") for page in range(1250, 1259)}
)
"""Encodings that Python decodes first. Any other is refused: Python keeps every name of a codec that it looked up in
vain, so that records with many such names would take ever more memory.
"""

_UTF_16: Mapping[bytes, str] = {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\x00": "utf-16-le",
    b"\x00<": "utf-16-be",
}
"""How a document in UTF-16 begins. Expat reads it, but takes half a surrogate pair for some character."""

_NO_DOCUMENT_TYPES = "the value has a document type, which is not allowed"

Value = str | dict[str, object] | None


class XmlDecoder(OneByOne):
    """Every tree has text, objects, lists and nulls."""

    def __init__(self, settings: Converter) -> None:
        """There are no settings."""

    def record(self, value: bytes) -> Tree | None:
        return parse(value)


def parse(value: bytes) -> Tree | None:
    """The record in a document; None when its root element is nil. Raises InvalidValue."""
    if not value.strip():
        raise InvalidValue("the value is empty, which is not XML")
    codec = _UTF_16.get(value[:2])
    try:
        root = _parse(value if codec is None else _decode(value, codec))
    except _Encoded as declared:
        root = _parse(_decode(value, declared.codec))
    if isinstance(root, str):
        raise InvalidValue("the root element has neither attributes nor child elements")
    return root


def _decode(value: bytes, codec: str) -> str:
    try:
        return value.decode(codec)
    except UnicodeDecodeError as error:
        raise InvalidValue(f"the value is not XML: not {codec} text (byte {error.start + 1})") from None


def _parse(document: bytes | str) -> Value:
    """The root element. Raises InvalidValue, and _Encoded for bytes that are to be decoded first."""
    pattern: Any = _DOCUMENT_TYPE_BYTES if isinstance(document, bytes) else _DOCUMENT_TYPE
    if pattern.match(document):
        raise InvalidValue(_NO_DOCUMENT_TYPES)
    builder = _Builder()
    reader = _Reader(builder)
    try:
        for start in range(0, len(document), _PIECE_BYTES):
            reader.feed(document[start : start + _PIECE_BYTES])
        reader.close()
    except SAXException as error:
        raise InvalidValue(f"the value is not XML: {error.getMessage()}{reader.where()}") from None
    except DefusedXmlException:
        raise InvalidValue(_NO_DOCUMENT_TYPES) from None
    except _Refused as refused:
        raise InvalidValue(str(refused)) from None
    finally:
        reader.release()
    return builder.root


class _Refused(Exception):
    """What the document has, and may not have."""


class _Encoded(Exception):
    """The document is in an encoding that expat does not know."""

    def __init__(self, codec: str) -> None:
        super().__init__(codec)
        self.codec = codec


class _Reader(DefusedExpatParser):  # type: ignore[misc]  # defusedxml has no types
    """Expat without document types, entities, external references and encodings of all sorts."""

    _parser: Any

    def __init__(self, builder: "_Builder") -> None:
        super().__init__(forbid_dtd=True)
        self._is_text, self._builder = False, builder
        self.setContentHandler(builder)

    def reset(self) -> None:
        super().reset()
        self._parser.buffer_text = True
        self._parser.XmlDeclHandler = self._declared

    def feed(self, data: bytes | str, isFinal: bool = False) -> None:
        self._is_text = isinstance(data, str)
        super().feed(data, isFinal)

    def where(self) -> str:
        """Where parsing stands; lines and columns from 1."""
        return f" (line {self.getLineNumber()}, column {self.getColumnNumber() + 1})"

    def start_element(self, name: str, attrs: dict[str, str]) -> None:
        try:
            self._builder.start(name, attrs)
        except _Refused as refused:
            raise _Refused(f"{refused}{self.where()}") from None

    def release(self) -> None:
        """Give back what expat holds, now and not when the garbage collector comes by."""
        self._parser = None

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        name = (encoding or "utf-8").lower()
        if self._is_text or name in _NATIVE:
            return
        if name not in _DECODED:
            raise _Refused("the value is XML in an encoding that is not supported")
        raise _Encoded(name)


class _Element:
    """An element whose end has not come yet."""

    __slots__ = ("fields", "name", "nil", "prefixes", "text")

    def __init__(self, name: str) -> None:
        """prefixes: those declared here, and whether they stand for the namespace of `xsi:nil`. nil: its attributes."""
        self.name = name
        self.nil: dict[str, object] | None = None
        self.fields: dict[str, object] = {}
        self.prefixes: dict[str, bool] = {}
        self.text: list[str] = []

    def add(self, name: str, value: Value) -> None:
        """One more field; one of the same name makes a list."""
        if name not in self.fields:
            self.fields[name] = value
            return
        known = self.fields[name]
        if isinstance(known, list):
            known.append(value)
        else:
            self.fields[name] = [known, value]

    def end_text(self) -> None:
        """The text up to here stands beside something else."""
        if self.text:
            text = "".join(self.text)
            self.text.clear()
            if text.strip(_WHITE_SPACE):
                self.add(TEXT, text)

    def close(self) -> Value:
        if self.nil is not None:
            return self.nil or None
        if not self.fields:
            return "".join(self.text)
        self.end_text()
        return self.fields


class _Builder(ContentHandler):
    """Builds the tree from what the parser reads."""

    def __init__(self) -> None:
        super().__init__()
        self.root: Value = None
        self._open: list[_Element] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins. Raises _Refused."""
        if self._open:
            self._open[-1].end_text()
        if len(self._open) == MAX_DEPTH:
            raise _Refused(f"elements are nested deeper than {MAX_DEPTH} levels")
        element = _Element(_local(name))
        self._open.append(element)
        # Expat would write out a namespace's name for each name in it: gigabytes, for a document of one megabyte.
        for key, value in attributes.items():
            if key.startswith("xmlns:"):
                element.prefixes[key.removeprefix("xmlns:")] = value == _XSI
        is_nil = False
        for key, value in attributes.items():
            if key.endswith(":nil") and self._is_xsi(key.removesuffix(":nil")):
                is_nil = value in {"true", "1"}
            elif key != "xmlns" and not key.startswith("xmlns:"):
                element.add(_local(key), value)
        if is_nil:
            element.nil = self._find_attributes(attributes)

    def _find_attributes(self, attributes: Mapping[str, str]) -> dict[str, object]:
        """Return the attributes of an element that is nil, without those that are about its type."""
        found = _Element("")
        for key, value in attributes.items():
            prefix = key.partition(":")[0] if ":" in key else ""
            if key != "xmlns" and prefix != "xmlns" and not self._is_xsi(prefix):
                found.add(_local(key), value)
        return found.fields

    def endElement(self, name: str) -> None:
        element = self._open.pop()
        value = element.close()
        if self._open:
            self._open[-1].add(element.name, value)
        else:
            self.root = value

    def characters(self, content: str) -> None:
        self._open[-1].text.append(content)

    def _is_xsi(self, prefix: str) -> bool:
        """Whether the innermost declaration of a prefix gives it the namespace of `xsi:nil`."""
        return next((one.prefixes[prefix] for one in reversed(self._open) if prefix in one.prefixes), False)


def _local(name: str) -> str:
    """A name without its prefix."""
    if ":" not in name:
        return name
    prefix, _, local = name.partition(":")
    if not prefix or not local or ":" in local:
        raise _Refused("a name has a colon where none may be")
    return local
