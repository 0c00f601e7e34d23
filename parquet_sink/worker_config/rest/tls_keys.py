"""Keys of the worker file for the TLS of its REST API, by Java's names."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import quoted

REST_TLS: Final = "REST API: TLS"
TLS: Final = "listeners.https."
ADMIN_TLS: Final = "admin.listeners.https."
_FORM: Final = "Form of that file, which it must have; JKS and PKCS12 stand for each other, as in Java."
_FORMS: Final = ("PEM", "PKCS12", "JKS")


def _protocols(value: Value) -> str | None:
    unknown = [name for name in value if name not in ("TLSv1.2", "TLSv1.3")] if isinstance(value, tuple) else []
    return f"{quoted(unknown[0])} is too old, or no version of TLS; use TLSv1.2 and TLSv1.3." if unknown else None


def _key(
    prefix: str,
    name: str,
    type_: Type,
    doc: str,
    *,
    text: str = "",
    default: Value = None,
    choices: tuple[str, ...] = (),
    check: Check | None = None,
) -> Key:
    return Key(
        f"{prefix}ssl.{name}",
        REST_TLS,
        type_,
        doc,
        default=default,
        default_text=text,
        choices=choices,
        check=check,
        origin=Origin.CONNECT,
    )


def _identity(prefix: str) -> tuple[Key, ...]:
    """The server's certificate and key."""
    return (
        _key(
            prefix,
            "keystore.location",
            Type.STRING,
            "File with the server's certificate, its chain and its key: PEM, PKCS#12, JKS.",
        ),
        _key(prefix, "keystore.password", Type.PASSWORD, "Password of that file; PEM files have none."),
        _key(prefix, "key.password", Type.PASSWORD, "Password of the key in it."),
        _key(prefix, "keystore.type", Type.STRING, _FORM, text="as the file is", choices=_FORMS),
        _key(
            prefix,
            "keystore.certificate.chain",
            Type.STRING,
            "In place of a file: the certificate and its chain in PEM form.",
        ),
        _key(prefix, "keystore.key", Type.PASSWORD, "In place of a file: the key in PEM form."),
    )


def _clients(prefix: str) -> tuple[Key, ...]:
    """Whether and which certificates clients must show."""
    return (
        _key(
            prefix,
            "client.auth",
            Type.STRING,
            "Whether clients must show a certificate that an authority of the truststore signed. `requested` asks for "
            "one, and takes those that have none.",
            default="none",
            choices=("none", "requested", "required"),
        ),
        _key(
            prefix,
            "truststore.location",
            Type.STRING,
            "PEM, PKCS#12 or JKS file with the authorities whose clients are let in.",
        ),
        _key(prefix, "truststore.password", Type.PASSWORD, "Password of that file; PEM files have none."),
        _key(prefix, "truststore.type", Type.STRING, _FORM, text="as the file is", choices=_FORMS),
        _key(prefix, "truststore.certificates", Type.STRING, "In place of a file: the authorities in PEM form."),
    )


def _protocol(prefix: str) -> tuple[Key, ...]:
    """Versions and ciphers; what is Java's alone."""
    return (
        _key(
            prefix,
            "enabled.protocols",
            Type.LIST,
            "Versions of TLS; older ones are refused by name.",
            default=("TLSv1.2", "TLSv1.3"),
            text="`TLSv1.2,TLSv1.3`",
            check=Check("TLSv1.2, TLSv1.3", _protocols),
        ),
        _key(
            prefix,
            "cipher.suites",
            Type.LIST,
            "Cipher suites of TLS 1.2 by OpenSSL's names, the first is preferred.",
            text="those that Python takes for safe",
            default=(),
        ),
        Key(
            f"{prefix}*",
            REST_TLS,
            Type.STRING,
            "Other settings of Java's TLS.",
            no_effect="there is no Java in the server.",
            origin=Origin.CONNECT,
        ),
    )


def _all(prefix: str) -> tuple[Key, ...]:
    return (*_identity(prefix), *_clients(prefix), *_protocol(prefix))


REST_TLS_KEYS: Final = (*_all(TLS), *_all(ADMIN_TLS))
