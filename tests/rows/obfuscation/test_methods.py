"""Each method of obfuscation, on single texts and on arrays of them."""

import hashlib
import hmac
from collections.abc import Iterator
from itertools import count
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.config.secret import Secret
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.rows.obfuscation import methods
from parquet_sink.rows.obfuscation.methods import TextObfuscator, fresh_uuid
from parquet_sink.rows.settings import ObfuscationSettings
from tests.thorough import examples

FIX = ObfuscationSettings(("a",))
SHA1 = ObfuscationSettings(("a",), method="sha1")
SHA256 = ObfuscationSettings(("a",), method="sha256")
SALTED = ObfuscationSettings(("a",), method="sha512", salt=Secret("pépper"))
KEYED = ObfuscationSettings(("a",), method="hmac-sha256", hmac_key=Secret("schlüssel"))
FRESH = ObfuscationSettings(("a",), method="sha512", random_salt=True)
REPEATABLE = (FIX, SHA1, SHA256, SALTED, KEYED)


def sha512_twice(text: str) -> str:
    """Hexadecimal digits of SHA-512 of the SHA-512 digest."""
    return hashlib.sha512(hashlib.sha512(text.encode()).digest()).hexdigest()


def counting() -> Iterator[str]:
    """Salts that differ and are known."""
    return (f"salt-{number}-" for number in count())


@given(st.text())
def test_each_method_is_what_it_says(text: str) -> None:
    """Every text has the digest of its method, computed here in the plainest way."""
    data = text.encode()
    assert TextObfuscator(FIX).text(text) == "*****"
    assert TextObfuscator(SHA1).text(text) == hashlib.sha1(hashlib.sha1(data).digest()).hexdigest()
    assert TextObfuscator(SHA256).text(text) == hashlib.sha256(data).hexdigest()
    assert TextObfuscator(SALTED).text(text) == sha512_twice("pépper" + text)
    assert TextObfuscator(KEYED).text(text) == hmac.digest("schlüssel".encode(), data, "sha256").hex()
    assert TextObfuscator(FRESH, lambda: "fresh").text(text) == sha512_twice("fresh" + text)


def test_values_stored_by_the_celonis_connector() -> None:
    """What users have stored: the double SHA-1, and what was salted of SHA-512, for every value and not the first."""
    assert TextObfuscator(SHA1).text("bob") == "61584b76f6ece8fb9a328e7cf198094b2fac55c7"
    salted = TextObfuscator(ObfuscationSettings(("a",), method="sha512", salt=Secret("pepper")))
    assert [salted.text("bob"), salted.text("mr")] == [sha512_twice("pepperbob"), sha512_twice("peppermr")]


@pytest.mark.parametrize("how", REPEATABLE, ids=lambda how: how.method)
@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.none() | st.text(max_size=3)), st.integers(0, 5), st.integers(0, 5))
def test_arrays_are_texts_one_by_one(
    how: ObfuscationSettings, texts: list[str | None], before: int, after: int
) -> None:
    """An array, sliced or not, holds what `text` gives for each; null stays null, and the rest is no concern."""
    padded = pa.array([*["x"] * before, *texts, *["y"] * after], pa.string())
    obfuscator = TextObfuscator(how)
    found = obfuscator.array(padded.slice(before, len(texts)))
    found.validate(full=True)
    assert found.type == pa.string()
    assert found.to_pylist() == [text if text is None else obfuscator.text(text) for text in texts]


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.none() | st.text(max_size=3)), st.integers(0, 5))
def test_a_fresh_salt_for_each_value(texts: list[str | None], before: int) -> None:
    """With a random salt every value takes the next one, equal values, too; null takes none."""
    salts, expected = counting(), counting()
    sliced = pa.array([*["x"] * before, *texts], pa.string()).slice(before)
    found = TextObfuscator(FRESH, lambda: next(salts)).array(sliced)
    found.validate(full=True)
    assert found.to_pylist() == [text if text is None else sha512_twice(next(expected) + text) for text in texts]


def test_fresh_salts_are_random() -> None:
    """Unless told otherwise a fresh salt is a random UUID, so equal texts leave as different ones."""
    assert UUID(fresh_uuid()).version == 4
    first, second = TextObfuscator(FRESH).array(pa.array(["a", "a"])).to_pylist()
    assert first != second


def test_only_sha512_is_salted() -> None:
    """A random salt is no concern of the other methods."""
    how = ObfuscationSettings(("a",), method="sha256", random_salt=True)
    assert TextObfuscator(how).text("a") == hashlib.sha256(b"a").hexdigest()


@pytest.mark.parametrize("how", [SALTED, FRESH], ids=["salt", "fresh salt"])
def test_more_than_an_array_holds(how: ObfuscationSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts whose digests would not fit into one array are refused, repeated ones counted as often as they come."""
    monkeypatch.setattr(methods, "_MOST_BYTES", 1_000)
    obfuscator = TextObfuscator(how)
    assert len(obfuscator.array(pa.array(["a"] * 7))) == 7
    with pytest.raises(InvalidValue, match="2 GiB"):
        obfuscator.array(pa.array(["a"] * 8))
