"""Keys of the client file: where a worker is, as whom it is asked, whom to trust."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type

_GROUP: Final = "Client"
URL: Final = "url"
USER: Final = "username"
PASSWORD: Final = "password"
CA: Final = "tls.ca.file"
CERTIFICATE: Final = "tls.certificate.file"
CERTIFICATE_KEY: Final = "tls.key.file"
KEY_PASSWORD: Final = "tls.key.password"


def _key(name: str, doc: str, kind: Type = Type.STRING, needs: str = "") -> Key:
    return Key(name, _GROUP, kind, doc, needs=needs, origin=Origin.OWN)


CLIENT_KEYS: Final = (
    _key(URL, "Address of the worker's REST API, with a path if it has one."),
    _key(USER, "Who asks, where the worker wants basic authentication."),
    _key(PASSWORD, "The password.", Type.PASSWORD, needs=USER),
    _key(CA, "PEM file of the authorities that may vouch for the worker."),
    _key(CERTIFICATE, "PEM file of our certificate, where the worker wants one."),
    _key(CERTIFICATE_KEY, "PEM file of its key, when that is not in the same file.", needs=CERTIFICATE),
    _key(KEY_PASSWORD, "The password of that key.", Type.PASSWORD, needs=CERTIFICATE),
)
