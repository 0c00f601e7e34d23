"""Stores become text in memory, whatever their form; what is wrong names what to correct, and shows no secret."""

import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from parquet_sink.kafka.client.security import stores
from parquet_sink.kafka.client.security.stores import StoreUnusable
from tests.kafka.client.security.java_stores import jks, key_entry, pair, pkcs12_trust, trusted_entry

ONE, OTHER, AUTHORITY = pair("one"), pair("other"), pair("authority")


def put(folder: Path, content: bytes | str) -> str:
    """A file's path."""
    path = folder / "store"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def refusal(call: object) -> tuple[str, str]:
    """What is to be corrected, and why."""
    with pytest.raises(StoreUnusable) as found:
        call()  # type: ignore[operator]
    return found.value.setting, found.value.reason


def usable(own: stores.OwnKey) -> bool:
    """Whether the client takes key and certificates, and finds that they belong together."""
    own_key = {"ssl.key.pem": own.key, "ssl.certificate.pem": own.chain}
    Consumer({"group.id": "x", "security.protocol": "SSL", **own_key}).close()
    return True


@pytest.mark.parametrize(
    "content",
    [
        jks("secret", trusted_entry("a", ONE), trusted_entry("b", AUTHORITY), trusted_entry("c", ONE)),
        jks("secret", trusted_entry("a", ONE), key_entry("b", "secret", AUTHORITY, OTHER)),
        jks("secret", trusted_entry("a", ONE), trusted_entry("b", AUTHORITY), magic=0xCECECECE),
        pkcs12_trust("secret", ONE, AUTHORITY),
    ],
    ids=["jks", "jks with a key", "jceks", "pkcs12"],
)
def test_a_trust_store_gives_its_certificates(tmp_path: Path, content: bytes) -> None:
    """Each once; of a key's chain only its own, as in Java."""
    assert stores.trusted(put(tmp_path, content), "secret") == ONE.pem + AUTHORITY.pem


@pytest.mark.parametrize(
    ("content", "key_password"),
    [
        (jks("secret", key_entry("me", "secret", ONE, AUTHORITY)), None),
        (jks("secret", key_entry("me", "other", ONE, AUTHORITY), trusted_entry("a", OTHER)), "other"),
        (ONE.pkcs12("secret", AUTHORITY), None),
        (ONE.pkcs12("secret", AUTHORITY), "secret"),
    ],
)
def test_a_key_store_gives_its_key(tmp_path: Path, content: bytes, key_password: str | None) -> None:
    """With the whole chain, its own certificate first; the client can use both."""
    found = stores.own_key(put(tmp_path, content), "secret", key_password)
    assert (found.key, found.chain) == (ONE.key_pem(), ONE.pem + AUTHORITY.pem)
    assert usable(found)
    assert "BEGIN" not in repr(found)


def test_a_renewed_store_is_read_again(tmp_path: Path) -> None:
    """Certificates are renewed while the program runs; a store that did not change is kept."""
    path = put(tmp_path, jks("secret", trusted_entry("a", ONE)))
    assert stores.trusted(path, "secret") == ONE.pem
    os.utime(path, ns=(1, 1))
    put(tmp_path, jks("secret", trusted_entry("a", OTHER)))
    assert stores.trusted(path, "secret") == OTHER.pem


def test_a_store_that_is_torn_while_it_is_renewed_stays_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As it was, with a line in the log; who starts anew is told, and what is renewed well is taken."""
    path, good = put(tmp_path, ONE.pkcs12("secret")), stores.OwnKey(ONE.key_pem(), ONE.pem)
    assert stores.own_key(path, "secret", None) == good
    put(tmp_path, b"\x30")
    for _ in range(3):
        assert stores.own_key(path, "secret", None) == good
    os.unlink(path)
    assert stores.own_key(path, "secret", None) == good
    assert [one.levelname for one in caplog.records] == ["WARNING", "WARNING"]
    put(tmp_path, OTHER.pkcs12("secret", AUTHORITY))
    assert stores.own_key(path, "secret", None).chain == OTHER.pem + AUTHORITY.pem


@pytest.mark.parametrize(
    ("content", "setting", "words"),
    [
        (b"", "location", "neither a JKS nor a PKCS#12"),
        (b"root:x:0:0", "location", "neither a JKS nor a PKCS#12"),
        (b"\x30\x03abc", "location", "no PKCS#12 store"),
        (ONE.pkcs12("secret")[:-20], "location", "no PKCS#12 store"),
        (ONE.pkcs12("canary"), "password", "does not open"),
        (jks("canary", trusted_entry("a", ONE)), "password", "does not open"),
        (jks("secret")[:30], "password", "the file was changed"),
        (ONE.pem, "type", "set it to PEM"),
        (jks("secret", trusted_entry("a", ONE)), "location", "has no private key in it"),
        (pkcs12_trust("secret", ONE), "location", "has no private key"),
        (jks("secret", *(key_entry(name, "secret", ONE) for name in "ab")), "location", "2 private keys (a, b)"),
        (jks("secret", key_entry("a", "canary", ONE)), "key.password", "does not open the key a"),
        (jks("secret", key_entry("a", "x", ONE), magic=0xCECECECE), "location", "JCEKS"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, content: bytes | str, setting: str, words: str) -> None:
    """With the file, what to correct and why."""
    path = put(tmp_path, content)
    found, reason = refusal(lambda: stores.own_key(path, "secret", None))
    assert (found, words in reason, path in reason) == (setting, True, True), reason
    assert "canary" not in reason


@pytest.mark.parametrize("content", [jks("secret"), jks("secret", key_entry("a", "secret", ONE))[:0]])
def test_a_trust_store_without_certificates_is_told(tmp_path: Path, content: bytes) -> None:
    """An empty one would trust nobody, and nobody would know why."""
    assert refusal(lambda: stores.trusted(put(tmp_path, content), "secret"))[0] == "location"


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """Absent ones and folders, in the words of the system."""
    assert "no such file" in refusal(lambda: stores.trusted("/no/such", None))[1]
    assert "is a directory" in refusal(lambda: stores.trusted(str(tmp_path), None))[1]


def test_a_pem_file_has_key_and_certificates(tmp_path: Path) -> None:
    """In any order, with other text between; the key may be encrypted still."""
    key = ONE.key_pem("p")
    found = stores.pem_key_store(put(tmp_path, f"Bag\n{ONE.pem}x\n{key}{AUTHORITY.pem}"))
    assert (found.key, found.chain) == (key, ONE.pem + AUTHORITY.pem)
    for content in (ONE.pem, ONE.key_pem(), ONE.key_pem() + ONE.pem + OTHER.key_pem(), ""):
        setting, reason = refusal(lambda content=content: stores.pem_key_store(put(tmp_path, content)))
        assert (setting, "one key, and its certificate" in reason) == ("location", True)
    assert refusal(lambda: stores.pem_key_store(put(tmp_path, jks("x"))))[0] == "type"


def test_text_in_one_line_becomes_lines() -> None:
    """As it stands in properties files; keys in OpenSSL's old form keep theirs."""
    assert stores.certificates(ONE.pem.replace("\n", " ")) == [ONE.pem]
    assert stores.certificates(ONE.pem.replace("\n", "")) == [ONE.pem]
    key = ONE.key_pem("p")
    assert stores.private_keys(key.replace("\n", " \n ")) == [key]
    old = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X,1\n\nabc\n-----END RSA PRIVATE KEY-----\n"
    )
    assert stores.private_keys(old) == [old]
