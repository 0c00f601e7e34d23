"""Java's own key stores are read as Java reads them; what is torn or locked is told as such."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.client.security import jks
from parquet_sink.kafka.client.security.jks import DamagedStore, WrongPassword
from tests.kafka.client.security.java_stores import jks as written
from tests.kafka.client.security.java_stores import key_entry, pair, trusted_entry

PASSWORD = "störe 12"


def test_certificates_and_keys_are_read() -> None:
    """Trusted certificates in order, and a key under a password of its own with its chain."""
    one, other, authority = pair("one"), pair("other"), pair("authority")
    data = written(
        PASSWORD, trusted_entry("a", one), key_entry("me", "key pass", other, authority), trusted_entry("ü", authority)
    )
    found = jks.parse(data, PASSWORD)
    assert found.trusted == (one.der, authority.der)
    (entry,) = found.keys
    assert (entry.alias, entry.chain) == ("me", (other.der, authority.der))
    assert jks.unlock(entry, "key pass") == other.pkcs8


def test_the_first_version_is_read() -> None:
    """Its certificates have no type."""
    data = written("p", trusted_entry("a", pair("one"), version=1), version=1)
    assert jks.parse(data, "p").trusted == (pair("one").der,)


def test_without_a_password_a_store_opens_unchecked() -> None:
    """As in Java: certificates are no secret."""
    assert jks.parse(written("p", trusted_entry("a", pair("one"))), None).trusted == (pair("one").der,)


@pytest.mark.parametrize("password", ["", "q", "P"])
def test_a_wrong_password_is_told(password: str) -> None:
    """Of the store, and of a key."""
    data = written("p", key_entry("me", "p", pair("one")))
    with pytest.raises(WrongPassword):
        jks.parse(data, password)
    with pytest.raises(WrongPassword):
        jks.unlock(jks.parse(data, "p").keys[0], password)


@given(cut=st.integers(0, 10_000), password=st.sampled_from([None, "p"]))
def test_a_torn_store_is_never_read(cut: int, password: str | None) -> None:
    """Wherever it ends too early, it is refused; no other error comes out."""
    data = written("p", key_entry("me", "p", pair("one")), trusted_entry("a", pair("other")))
    with pytest.raises((DamagedStore, WrongPassword)):
        jks.parse(data[: cut % (len(data) - 1)], password)


@given(st.binary(max_size=300))
def test_anything_else_is_refused(content: bytes) -> None:
    """Bytes that only begin like a store end in no other error, and in no endless work."""
    try:
        jks.parse(jks.JKS + content, None)
    except DamagedStore:
        return
    assert len(content) >= jks.DIGEST_BYTES + 8


def test_a_secret_key_is_for_java_alone() -> None:
    """It is a serialised object of Java's."""
    data = written("p", (3).to_bytes(4) + b"\0\1a" + bytes(8) + b"\xac\xed", magic=0xCECECECE)
    with pytest.raises(DamagedStore, match="secret key"):
        jks.parse(data, "p")
