"""Stores that Java's own `keytool` has made are read: what no test of ours has written."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from parquet_sink.kafka.client.security import stores
from parquet_sink.kafka.client.security.stores import StoreUnusable

MADE = Path(__file__).parent / "made_by_keytool"
"""By `keytool` of Java 17; `legacy.p12` by `openssl pkcs12 -legacy`."""


def usable(own: stores.OwnKey) -> bool:
    """Whether the client takes key and certificates, and finds that they belong together."""
    own_key = {"ssl.key.pem": own.key, "ssl.certificate.pem": own.chain}
    Consumer({"group.id": "x", "security.protocol": "SSL", **own_key}).close()
    return True


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_keytool_s_trust_stores_are_read(name: str) -> None:
    """Both forms that it makes."""
    assert stores.trusted(str(MADE / name), "trustpw").count("BEGIN CERTIFICATE") == 1
    with pytest.raises(StoreUnusable) as found:
        stores.trusted(str(MADE / name), "wrong")
    assert found.value.setting == "password"


@pytest.mark.parametrize(
    ("name", "password", "key_password"),
    [("key.jks", "störe12", "keypass1"), ("key.p12", "secret2", None), ("legacy.p12", "secret", None)],
)
def test_keytool_s_key_stores_are_read(name: str, password: str, key_password: str | None) -> None:
    """A password beyond ASCII, one for the key alone, and PKCS#12 with the ciphers of twenty years ago."""
    assert usable(stores.own_key(str(MADE / name), password, key_password))
