"""Places byte for byte as Kafka Connect writes them."""

import pytest

from parquet_sink.addons.sources.offsets import connect_form
from parquet_sink.addons.sources.offsets.connect_form import parsed_key, parsed_value, text_of


def test_a_key_and_its_value_are_connects() -> None:
    """Key and value have no spaces, and the order that the source gave."""
    partition = text_of({"filename": "/tmp/ä \\\x1b.txt"})
    assert connect_form.key('local-"file', partition) == (
        '["local-\\"file",{"filename":"/tmp/ä \\\\\\u001B.txt"}]'.encode()
    )
    assert connect_form.value({"position": 17}) == b'{"position":17}'


def test_characters_beyond_the_bmp_are_escaped() -> None:
    """Kafka Connect of 4.1.2 was seen to write them so, and finds a key by its bytes; both forms are read."""
    key = b'["c",{"filename":"/tmp/\\uD83D\\uDE00"}]'
    assert connect_form.key("c", text_of({"filename": "/tmp/\U0001f600"})) == key
    assert parsed_key(key) == parsed_key('["c",{"filename":"/tmp/\U0001f600"}]'.encode())


def test_no_place_is_a_tombstone() -> None:
    """A place that is removed has no value."""
    assert connect_form.value(None) is None
    assert parsed_value(None) is None


def test_what_was_written_is_read() -> None:
    """A key gives connector and source partition back, a value its place."""
    partition = text_of({"filename": "a"})
    assert parsed_key(connect_form.key("one", partition)) == ("one", partition)
    assert parsed_value(connect_form.value({"position": 3})) == {"position": 3}


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"{}", b'["a"]', b'["a",1]', b'[1,{"a":1}]', b'["a",{},2]'])
def test_keys_of_others_are_passed_over(data: bytes | None) -> None:
    """A key of another form is nobody's."""
    assert parsed_key(data) is None


@pytest.mark.parametrize("data", [b"[]", b"1", b"{", b'{"a":[]}', b'{"a":NaN}', b'{"a":9223372036854775808}'])
def test_values_of_another_form_are_no_places(data: bytes) -> None:
    """A value that is no flat object is no place."""
    assert parsed_value(data) is None
