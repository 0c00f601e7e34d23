"""What each role may do: every row of the table of endpoints, and what a viewer sees of a configuration."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.worker.rest.call import Endpoint, endpoint
from parquet_sink.worker_config.rest.roles import CertificateRole, Role
from parquet_sink.worker_config.rest.settings import RestSettings, Store, TlsSettings
from parquet_sink.worker_config.rest.values import Address
from tests.worker.rest.certificates import Made, make
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, serving

BASIC: Final = {
    "viewer": {"Authorization": "Basic dmlld2VyOnB3"},
    "operator": {"Authorization": "Basic b3BlcmF0b3I6cHc="},
    "admin": {"Authorization": "Basic YWRtaW46cHc="},
    "nobody": {"Authorization": "Basic bm9ib2R5OnB3"},
}
USERS: Final = RestSettings(
    listeners=LOOPBACK,
    users=tuple((name, Secret("pw")) for name in BASIC),
    roles=(("viewer", Role.VIEWER), ("operator", Role.OPERATOR), ("admin", Role.ADMIN)),
)
OPERATOR: Final = {
    "PUT /connectors/{connector}/pause",
    "PUT /connectors/{connector}/resume",
    "PUT /connectors/{connector}/stop",
    "PUT /connectors/{connector}/topics/reset",
    "POST /connectors/{connector}/restart",
    "POST /connectors/{connector}/tasks/{task}/restart",
    "POST /connectors/{connector}/flush",
    "GET /connectors/{connector}/offsets",
    "GET /connectors/{connector}/parked/content",
    "POST /connectors/{connector}/parked/replay",
    "POST /connectors/{connector}/replay",
    "POST /connectors/{connector}/archive/verify",
    "DELETE /connectors/{connector}/jobs/{job}",
}
ADMIN: Final = {
    "POST /connectors",
    "PUT /connectors/{connector}/config",
    "PATCH /connectors/{connector}/config",
    "DELETE /connectors/{connector}",
    "POST /connectors/{connector}/parked/drop",
    "PATCH /connectors/{connector}/offsets",
    "DELETE /connectors/{connector}/offsets",
    "PUT /connector-plugins/{plugin}/config/validate",
    "PUT /admin/loggers/{logger}",
    "DELETE /workers/{worker}",
}
"""All others are for viewers."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeHerder, Client]]:
    """A server whose users have roles; one has none."""
    herder = FakeHerder()
    with serving(herder, USERS) as client:
        yield herder, client


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Of the server, and of a client whose common name is `client`."""
    return make(tmp_path_factory.mktemp("certificates"))


def _rows(client: Client) -> list[tuple[str, str, str]]:
    document = client.ask("GET", "/openapi.json", headers=BASIC["viewer"]).json
    return [
        (method.upper(), path, operation["x-role"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_each_row_of_the_table_needs_what_is_written_here(served: tuple[FakeHerder, Client]) -> None:
    """One that is new is for viewers, unless it is named here: what changes something never is."""
    needed = {f"{method} {path}": role for method, path, role in _rows(served[1])}
    assert {row for row, role in needed.items() if role == "operator"} == OPERATOR
    assert {row for row, role in needed.items() if role == "admin"} == ADMIN
    assert {row.split()[0] for row, role in needed.items() if role == "viewer"} == {"GET"}


@pytest.mark.parametrize("role", ["viewer", "operator", "admin", "nobody"])
def test_each_row_is_refused_to_who_may_not(served: tuple[FakeHerder, Client], role: str) -> None:
    """With the role that it needs, before anything is done; a user without a role is an admin, as ever."""
    herder, client = served
    having = Role.ADMIN if role == "nobody" else Role(role)
    for method, path, needed in _rows(client):
        herder.kept = {"c": Kept({**GOOD, "name": "c"})}
        herder.asked = []
        filled = path.replace("{connector}", "c").replace("{plugin}", "EmsSink").replace("{logger}", "root")
        filled = filled.replace("{task}", "0").replace("{flush}", "f1").replace("{job}", "j1")
        got = client.ask(method, filled, headers=BASIC[role])
        if having.includes(Role(needed)):
            assert got.status != 403, (method, path)
        else:
            assert got.status == 403, (method, path)
            assert needed in got.error[1]
            assert (herder.asked, set(herder.kept)) == ([], {"c"})


SECRETIVE: Final = {
    **GOOD,
    "name": "c",
    "connect.ems.authorization.key": "${env:PUSH_KEY}",
    "consumer.override.ssl.truststore.location": "/etc/kafka/trust.pem",
    "connect.ems.endpoint": "https://user:pw@example.com/push",
    "connect.ems.tmp.dir": "${env:FOLDER}",
    "our.own.note": "the password is 123",
    "errors.tolerance": "",
}


def test_a_viewer_sees_values_that_a_class_declares(served: tuple[FakeHerder, Client]) -> None:
    """Hidden are passwords, placeholders, unknown keys and what goes on by a prefix; everywhere that values stand."""
    herder, client = served
    herder.kept = {"c": Kept(SECRETIVE)}

    def configs(role: str) -> list[dict[str, Any]]:
        ask = lambda path: client.ask("GET", path, headers=BASIC[role]).json  # noqa: E731
        return [
            ask("/connectors/c/config"),
            ask("/connectors/c")["config"],
            ask("/connectors?expand=info")["c"]["info"]["config"],
            ask("/connectors/c/tasks")[0]["config"],
            ask("/connectors/c/tasks-config")["c-0"],
        ]

    for found in configs("viewer"):
        hidden = {key for key, text in found.items() if text == "[hidden]"}
        assert hidden == {
            "connect.ems.authorization.key",
            "consumer.override.ssl.truststore.location",
            "connect.ems.tmp.dir",
            "our.own.note",
        }
        assert found["connect.ems.endpoint"] == "https://user:[hidden]@example.com/push"
        assert found["errors.tolerance"] == ""
    for found in (*configs("operator"), *configs("admin")):
        assert found["connect.ems.authorization.key"] == "${env:PUSH_KEY}"
        assert found["our.own.note"] == "the password is 123"


@pytest.mark.parametrize(
    ("rules", "user", "shown", "paused"),
    [
        ((CertificateRole("commonName", "client", Role.OPERATOR),), None, 200, 202),
        ((CertificateRole("commonName", "client", Role.VIEWER),), None, 200, 403),
        ((CertificateRole("commonName", "other", Role.ADMIN),), None, 403, 403),
        ((CertificateRole("commonName", "client", Role.VIEWER),), "admin", 200, 403),
        ((CertificateRole("commonName", "client", Role.ADMIN),), "viewer", 200, 403),
        ((CertificateRole("", "", Role.OPERATOR),), "admin", 200, 202),
        ((), None, 200, 202),
    ],
)
def test_a_certificate_has_a_role(
    certificates: Made, rules: tuple[CertificateRole, ...], user: str | None, shown: int, paused: int
) -> None:
    """By its subject; with a password the lower of both counts; without rules whoever is let in is an admin."""
    identity = Store("listeners.https.ssl.keystore.location", file=str(certificates.server))
    tls = TlsSettings(identity, authorities=Store("a", file=str(certificates.authority)), client_auth="required")
    settings = replace(
        USERS if user else RestSettings(),
        listeners=(Address("https", "localhost", 0),),
        tls=tls,
        certificate_roles=rules,
    )
    herder = FakeHerder()
    herder.kept = {"c": Kept({**GOOD, "name": "c"})}
    headers = BASIC[user] if user else {}
    with serving(herder, settings, certificates.trusting(certificates.client)) as client:
        assert client.ask("GET", "/connectors", headers=headers).status == shown
        assert client.ask("PUT", "/connectors/c/pause", headers=headers).status == paused
        assert client.ask("GET", "/health", headers=headers).status == 200


def test_a_role_cannot_be_forgotten() -> None:
    """Neither by a declaration nor by an endpoint that is made by hand."""
    with pytest.raises(TypeError):
        endpoint("GET", "/", "", {200: None})  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Endpoint("GET", "/", lambda call: None, "")  # type: ignore[call-arg,arg-type,return-value]
