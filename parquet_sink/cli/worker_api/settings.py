"""Where the worker is and as whom it is asked: from options, a client file, the environment, in this order."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace, _ArgumentGroup
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.declared import declared, key, keys_of, made
from parquet_sink.config.key import Origin
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import Parsed
from parquet_sink.config.providers import resolve
from parquet_sink.config.quantity import seconds
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values, read
from parquet_sink.config.without_effect import suggest, warn_about
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net.settings import is_loopback

DEFAULT_URL: Final = "http://localhost:8083"
URL_VARIABLE: Final = "PARQUET_SINK_URL"
USER_VARIABLE: Final = "PARQUET_SINK_USER"
PASSWORD_VARIABLE: Final = "PARQUET_SINK_PASSWORD"
FILE_VARIABLE: Final = "PARQUET_SINK_CLIENT_FILE"
DEFAULT_TIMEOUT_S: Final = 100.0
"""A worker gives up after 90 s, and then says so."""


@declared(group="Client", origin=Origin.OWN)
class ApiSettings:
    """url: without a slash at its end. others: further workers, asked in turn where one is not reached.

    ca_file None: what the environment or the system trusts.
    """

    url: str = key(
        "url",
        "Address of the worker's REST API, with a path if it has one; of a group several with commas between: the next "
        "is asked where one is not reached.",
    )
    others: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    username: str | None = key("username", "Who asks, where the worker wants basic authentication.", default=None)
    password: Secret | None = key("password", "The password.", default=None, needs="username")
    ca_file: str | None = key("tls.ca.file", "PEM file of the authorities that may vouch for the worker.", default=None)
    certificate_file: str | None = key(
        "tls.certificate.file", "PEM file of our certificate, where the worker wants one.", default=None
    )
    key_file: str | None = key(
        "tls.key.file",
        "PEM file of its key, when that is not in the same file.",
        default=None,
        needs="tls.certificate.file",
    )
    key_password: Secret | None = key(
        "tls.key.password", "The password of that key.", default=None, needs="tls.certificate.file"
    )


CLIENT_KEYS: Final = keys_of(ApiSettings)


def add_options(parser: "ArgumentParser | _ArgumentGroup") -> None:
    """The options by which a command finds the worker."""
    parser.add_argument(
        "--url",
        metavar="URL,…",
        help=f"address of the worker's REST API, or several of a group, with commas between (default: {URL_VARIABLE}, "
        f"else {DEFAULT_URL})",
    )
    parser.add_argument(
        "--client-file",
        metavar="client.properties",
        help="url, username, password, tls.ca.file, tls.certificate.file, tls.key.file, tls.key.password "
        f"(default: {FILE_VARIABLE}); user and password also come from {USER_VARIABLE} and {PASSWORD_VARIABLE}",
    )
    parser.add_argument(
        "--timeout",
        type=duration_s,
        metavar="DURATION",
        default=DEFAULT_TIMEOUT_S,
        help="how long one answer may take (default: %(default)g); a worker itself gives up after 90 s",
    )


def duration_s(text: str) -> float:
    """Seconds: a plain number of them, or with a unit. Raises ArgumentTypeError with the forms."""
    found = seconds(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not a duration; give seconds, or one such as 500ms, 30s, 5m or 1h")
    return found


def settings_of(args: Namespace, machine: Machine, parsed: Parsed | None, source: str) -> tuple[ApiSettings, list[str]]:
    """The settings with warnings about the file. parsed, source: the client file, when there is one.

    Raises InvalidConfiguration, naming option, variable or key.
    """
    report = Report()
    properties = {} if parsed is None else parsed.properties
    values = read(CLIENT_KEYS, resolve(properties, machine, report), report)
    report.warnings += [] if parsed is None else parsed.warnings
    warn_about(CLIENT_KEYS, values, properties, lambda name: f"It is unknown.{suggest(name, CLIENT_KEYS, ())}", report)
    given, origin = _nearest(args.url, values, machine.environ)
    urls = [url.strip().rstrip("/") for url in given.split(",") if url.strip()] or [given]
    wrong = [reason for reason in map(_wrong_url, urls) if reason is not None]
    for reason in wrong:
        report.problem(origin, reason)
    if not args.timeout > 0:
        report.problem("--timeout", f"{args.timeout:g} is not more than 0; give seconds.")
    user, password = _user(values, machine.environ)
    settings = made(
        ApiSettings,
        values,
        machine,
        url=urls[0],
        others=tuple(urls[1:]),
        timeout_s=args.timeout,
        username=user,
        password=password,
    )
    if not wrong and settings.username is not None:
        for url in filter(_in_clear, urls):
            report.problem(origin, _clear_text(url))
    if report.problems:
        raise InvalidConfiguration([_in_file(one, source, values) for one in report.problems])
    return settings, [f"{one} (in {source})" for one in report.warnings]


def _in_file(problem: str, source: str, values: Values) -> str:
    of_file = any(problem.startswith(f"Invalid [{name}]") for name in values.given)
    return f"{problem} (in {source})" if of_file else problem


def _nearest(option: str | None, values: Values, environment: Mapping[str, str]) -> tuple[str, str]:
    """The address and who gave it."""
    found = ((option, "--url"), (values.text("url"), "url"), (environment.get(URL_VARIABLE), URL_VARIABLE))
    return next(((url.strip(), origin) for url, origin in found if url), (DEFAULT_URL, "--url"))


def _user(values: Values, environment: Mapping[str, str]) -> tuple[str | None, Secret | None]:
    """Name and password: those of the file, and what it lacks from the environment; a user with his own password."""
    username, password = values.text("username"), values.secret("password")
    if username is None and environment.get(USER_VARIABLE):
        username, password = environment[USER_VARIABLE], None
    if username is not None and password is None:
        password = Secret(environment.get(PASSWORD_VARIABLE, ""))
    return username, password


def _wrong_url(url: str) -> str | None:
    """Why it is not an address of a worker. A password in it is not shown."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "It is not an address; write one such as http://localhost:8083."
    if parts.username is not None or parts.password is not None:
        return (
            "It holds a user, which others would see in the list of processes; remove it, and give user and password "
            f"by {USER_VARIABLE} and {PASSWORD_VARIABLE}, or in a --client-file."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return f"{quoted(url)} is not an address of a worker; write one such as http://localhost:8083."
    if parts.query or parts.fragment:
        return f"{quoted(url)} has a query or a fragment; remove it."
    return None


def _in_clear(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts)


def _clear_text(url: str) -> str:
    return (
        f"{quoted(url)} would carry the password over the network in clear; use https, or a tunnel to this machine "
        "(ssh -L 8083:localhost:8083 HOST, then --url http://localhost:8083)."
    )
