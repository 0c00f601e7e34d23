"""The schema registry over real HTTP: credentials, TLS, several addresses, faults, time, caches, references."""

import base64
import datetime as dt
import ipaddress
import json
import logging
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from integration import scripted_target as script
from integration.registry import APICURIO, RegistryServer, Trouble
from integration.scripted_target import Behaviour, ScriptedTarget
from integration.wire import client_of, encode_avro, encode_json, widened
from parquet_sink.config.secret import Secret
from parquet_sink.convert.decoded import SchemaColumns
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.client import Registry, probe
from parquet_sink.convert.registry.registered import Referenced, RegisteredSchema
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import InvalidConfiguration, RegistryFailed
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Health
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.validate.probe import probe_registries
from parquet_sink.validate.probe_kafka import Finding
from tests.messages import assert_says, saying

TEXT = '{"type":"record","name":"order","fields":[{"name":"x","type":"int"}]}'
USER = RegistrySettings((), username="ada", password=Secret("canary:1"))
BASIC = "Basic " + base64.b64encode(b"ada:canary:1").decode()
TOKEN = RegistrySettings((), bearer_token=Secret("canary-token"))
BEARER = "Bearer canary-token"


def settings_for(*urls: str, base: RegistrySettings | None = None, **more: object) -> RegistrySettings:
    """Impatient settings."""
    quick = replace(base or RegistrySettings(()), urls=urls, timeout_ms=2_000, max_retries=2)
    return replace(quick, **more)  # type: ignore[arg-type]


def registry_at(*urls: str, base: RegistrySettings | None = None, **more: object) -> Registry:
    """A registry that does not pause between rounds."""
    return Registry(settings_for(*urls, base=base, **more), sleep=lambda _: None)


def failure(registry: Registry, schema_id: int = 1) -> str:
    """What is said when the registry does not give a schema; never a secret."""
    with pytest.raises(RegistryFailed) as caught:
        registry.get(schema_id)
    assert "canary" not in str(caught.value)
    assert BASIC.split()[1] not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def server(registry: RegistryServer) -> RegistryServer:
    """A registry with one schema, of id 1."""
    assert registry.register("t-value", TEXT) == 1
    return registry


def test_a_schema_is_asked_for_once(server: RegistryServer) -> None:
    """It comes as it was registered, and again without a request."""
    registry = registry_at(server.url)
    assert registry.get(1) == RegisteredSchema(1, "AVRO", TEXT)
    assert registry.get(1) == RegisteredSchema(1, "AVRO", TEXT)
    assert [each.path for each in server.asked] == ["/schemas/ids/1"]
    assert "authorization" not in server.asked[0].headers


def test_what_a_producer_registers_is_what_we_get(server: RegistryServer) -> None:
    """Confluent's client registers, ours reads; both kinds that go without a compiler."""
    [avro] = encode_avro(server, "a", TEXT, [{"x": 1}])
    [json_] = encode_json(server, "j", '{"type":"object"}', [{"x": 1}])
    registry = registry_at(server.url)
    assert registry.get(int.from_bytes(avro[1:5], "big")).text == TEXT
    assert registry.get(int.from_bytes(json_[1:5], "big")) == RegisteredSchema(2, "JSON", '{"type":"object"}')
    with client_of(server) as client:
        assert sorted(client.get_subjects()) == ["a-value", "j-value", "t-value"]
        assert client.get_latest_version("a-value").schema_id == 1


def test_below_a_path_as_apicurio_has_it(server: RegistryServer) -> None:
    """The address may have a path."""
    assert registry_at(server.url + APICURIO + "/").get(1).text == TEXT
    assert server.asked[0].path == f"{APICURIO}/schemas/ids/1"


def test_an_unknown_id_is_the_records_fault(server: RegistryServer) -> None:
    """The registry's own word counts, at once; an id of 0 has a hint."""
    registry = registry_at(server.url)
    with pytest.raises(InvalidValue, match=saying("schema id 17", "is not registered", server.url)):
        registry.get(17)
    assert server.count() == 1
    with pytest.raises(InvalidValue, match=saying("id of 0", "first half", "8 bytes")):
        registry.get(0)


@pytest.mark.parametrize(("base", "wanted"), [(USER, BASIC), (TOKEN, BEARER)])
def test_credentials(base: RegistrySettings, wanted: str) -> None:
    """User and password, or a bearer token without a Confluent Cloud cluster; wrong ones are told, not shown."""
    with RegistryServer(authorization=wanted) as server:
        server.register("t-value", TEXT)
        assert registry_at(server.url, base=base).get(1).text == TEXT
        assert "target-sr-cluster" not in server.asked[0].headers
        before = server.count()
        wrong = replace(base, password=Secret("canary2"), bearer_token=base.bearer_token and Secret("canary3"))
        said = failure(registry_at(server.url, base=wrong))
        assert_says(said, f"{server.url}: answered 401", "Correct basic.auth.user.info", "bearer.auth.token")
        assert server.count() == before + 1
        assert "answered 401" in failure(registry_at(server.url))


def test_credentials_of_the_address() -> None:
    """A URL may hold user and password; no message shows them."""
    with RegistryServer(authorization=BASIC) as server:
        server.register("t-value", TEXT)
        host = server.url.removeprefix("http://")
        assert registry_at(f"http://ada:canary%3A1@{host}").get(1).text == TEXT
        assert server.url in failure(registry_at(f"http://ada:canary@{host}"))


def test_a_secret_that_a_registry_echoes_is_not_shown(server: RegistryServer) -> None:
    """Whatever it says, a message has stars."""
    server.trouble(Trouble(403, json.dumps({"error_code": 40301, "message": f"no {BASIC}, canary:1"}).encode()))
    assert_says(failure(registry_at(server.url, base=USER)), "answered 403", "40301: no Basic *****, *****")


def test_nothing_is_logged_of_credentials(server: RegistryServer, caplog: pytest.LogCaptureFixture) -> None:
    """Not at any level, by whichever library."""
    with caplog.at_level(logging.DEBUG):
        server.trouble(Trouble(503), Trouble(cut=True))
        registry_at(server.url, base=USER).get(1)
    logged = "\n".join(record.getMessage() + repr(record.args) for record in caplog.records)
    assert "answered 503" in logged
    assert "canary" not in logged
    assert BASIC.split()[1] not in logged


@pytest.mark.parametrize("kind", ["refused", "503", "cut", "401", "html"])
def test_the_next_address_is_asked(server: RegistryServer, kind: str) -> None:
    """Whatever ails the first one; and the one that answered is asked first from then on."""
    troubles = {"503": Trouble(503), "cut": Trouble(cut=True), "401": Trouble(401), "html": Trouble(body=b"<html>")}
    with RegistryServer() as first, script.closed_port() as port:
        first.trouble(*[troubles[kind]] * 10 if kind in troubles else ())
        url = f"http://127.0.0.1:{port}" if kind == "refused" else first.url
        registry = registry_at(url, server.url)
        server.register("u-value", '"int"')
        assert (registry.get(1).text, registry.get(2).text) == (TEXT, '"int"')
        assert first.count() == (0 if kind == "refused" else 1)


def test_all_addresses_are_told(server: RegistryServer) -> None:
    """Each with its cause; cures are not repeated; passing troubles are tried again as often as set."""
    server.trouble(*[Trouble(500, b'{"error_code":50001,"message":"store away"}')] * 10)
    with script.closed_port() as port:
        said = failure(registry_at(f"http://127.0.0.1:{port}", server.url))
    assert_says(said, "not give schema id 1", f"http://127.0.0.1:{port}: no answer: Connection refused")
    assert_says(said, f"{server.url}: answered 500 (50001: store away)", "Check schema.registry.url", "registry's log")
    assert said.count("Check") == 1
    assert server.count() == 3


def test_a_passing_trouble_passes(server: RegistryServer) -> None:
    """Three attempts: two fail, the third answers."""
    server.trouble(Trouble(503), Trouble(429))
    assert registry_at(server.url).get(1).text == TEXT
    assert server.count() == 3


FINAL = {
    "wrong path": (Trouble(404, b"<html>no such page"), "answered 404"),
    "wrong path in JSON": (Trouble(404, b'{"error_code":404,"message":"HTTP 404"}'), "answered 404 (404: HTTP 404)"),
    "forbidden": (Trouble(403), "answered 403"),
    "a page": (Trouble(200, b"<html>sign in"), "no schema registry gives"),
    "nothing": (Trouble(200, b" "), "no schema registry gives"),
    "a list": (Trouble(200, b"[1]"), "no schema registry gives"),
    "a text": (Trouble(200, b'"x"'), "no schema registry gives"),
    "depth": (Trouble(200, b"[" * 100_000), "no schema registry gives"),
    "no text": (Trouble(200, b'{"schema": 3}'), "without a schema"),
    "odd references": (Trouble(200, b'{"schema": "x", "references": [{"name": 1}]}'), "a reference that names no"),
    "size": (Trouble(size=9_000_000), "more than 8 MiB"),
    "gzip": (Trouble(200, b"x", {"content-encoding": "gzip"}), "compressed"),
    "redirect": (Trouble(307, b"x", {"location": "http://127.0.0.1:9/x"}), "a redirect"),
}


@pytest.mark.parametrize("name", FINAL)
def test_answers_that_will_not_change_fail_at_once(server: RegistryServer, name: str) -> None:
    """One request, and the answer's fault is told."""
    trouble, said = FINAL[name]
    server.trouble(trouble)
    assert said in failure(registry_at(server.url))
    assert server.count() == 1


def test_a_redirect_takes_no_credentials_elsewhere(server: RegistryServer) -> None:
    """Where it points to hears nothing."""
    with RegistryServer() as elsewhere:
        for status in (301, 302, 307, 308):
            server.trouble(Trouble(status, b"x", {"location": f"{elsewhere.url}/schemas/ids/1"}))
            assert f"answered {status}" in failure(registry_at(server.url, base=USER))
        assert elsewhere.count() == 0


SLOW: dict[str, Behaviour] = {
    "hangs": script.hang,
    "drips its headers": script.drip(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "drips its body": script.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
def test_time_is_bounded(name: str) -> None:
    """A request ends in its time however slowly the answer comes, and all of them together do."""
    with ScriptedTarget(*[SLOW[name]] * 20) as slow:
        registry = registry_at(f"http://127.0.0.1:{slow.port}", timeout_ms=200, max_retries=10)
        started = time.monotonic()
        assert "no answer in time" in failure(registry)
        assert 0.2 < time.monotonic() - started < 30
        assert 1 <= len(slow.requests) <= 2


def test_proxies_of_the_environment_are_not_used(server: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials go to the registry alone."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert registry_at(server.url).get(1).text == TEXT


def test_references_are_resolved(server: RegistryServer) -> None:
    """Through others, each after those that it needs; also those whose subject was deleted since."""
    server.register("day", '"string"')
    server.register("money", '{"m":1}')
    server.register("money", '{"m":2}', references=[("com.acme.Day", "day", 1)])
    server.register("a/b ü", '{"a":1}', references=[("com.acme.Money", "money", 2), ("com.acme.Day", "day", 1)])
    last = server.register("t-value", '{"t":1}', references=[("com.acme.A", "a/b ü", 1), ("Latest", "money", -1)])
    server.registered.deleted.add("day")
    assert registry_at(server.url).get(last) == RegisteredSchema(
        last,
        "AVRO",
        '{"t":1}',
        (
            Referenced("com.acme.Day", '"string"'),
            Referenced("com.acme.Money", '{"m":2}'),
            Referenced("com.acme.A", '{"a":1}'),
            Referenced("Latest", '{"m":2}'),
        ),
    )
    assert server.count() == 5


def test_a_reference_that_is_not_there_is_the_schemas_fault(server: RegistryServer) -> None:
    """The registry says that it has none; its records are invalid, with both names."""
    server.trouble(Trouble(200, b'{"schema":"x","references":[{"name":"n","subject":"gone","version":3}]}'))
    with pytest.raises(InvalidValue, match=saying("schema id 5", "subject gone version 3", "not registered")):
        registry_at(server.url).get(5)


def test_a_reference_without_an_answer_is_the_registrys_fault(server: RegistryServer) -> None:
    """Nothing is kept: the next time all is asked again."""
    server.register("money", '"int"')
    schema_id = server.register("o", '{"o":1}', references=[("M", "money", 1)])
    registry = registry_at(server.url, max_retries=0)
    server.trouble(Trouble(delay_s=0, answers=False), Trouble(500))
    assert_says(failure(registry, schema_id), f"schema id {schema_id}", "subject money version 1")
    assert registry.get(schema_id).references == (Referenced("M", '"int"'),)


def test_a_kind_that_nobody_reads(server: RegistryServer) -> None:
    """A registry may have other kinds of schemas."""
    server.trouble(Trouble(200, b'{"schema":"x","schemaType":"THRIFT"}'))
    with pytest.raises(InvalidValue, match=saying("schema id 1", "neither of", "AVRO, PROTOBUF, JSON")):
        registry_at(server.url).get(1)


def test_the_cache_is_bounded(server: RegistryServer) -> None:
    """More schemas than it holds are asked for again; Confluent's client keeps none behind our back."""
    server.register("u-value", '"int"')
    registry = registry_at(server.url, cache_size=1)
    for schema_id in (1, 2, 1):
        registry.get(schema_id)
    assert server.count() == 3


# Decoders


def test_two_micro_batches_ask_once(server: RegistryServer) -> None:
    """The decoder of a process survives micro-batches, and so do schemas."""
    values = pa.array(encode_avro(server, "t", TEXT, [{"x": 1}, {"x": 2}]), pa.binary())
    before = server.count()
    for _ in range(2):
        decoder = decoder_for(ConverterSettings("avro", settings_for(server.url)))
        assert decoder is not None
        [piece] = decoder.decode(values).pieces
        assert piece.positions.to_pylist() == [0, 1]
    assert server.count() == before + 1


def test_ids_of_eight_bytes(server: RegistryServer) -> None:
    """As Apicurio's serializers write them."""
    values = pa.array([widened(value) for value in encode_avro(server, "t", TEXT, [{"x": 1}])], pa.binary())
    wide = decoder_for(ConverterSettings("avro", settings_for(server.url, id_bytes=8)))
    assert wide is not None
    assert not wide.decode(values).invalid
    narrow = decoder_for(ConverterSettings("avro", settings_for(server.url)))
    assert narrow is not None
    assert_says(narrow.decode(values).invalid[0], "id of 0", "first half")


def test_schema_of_another_kind(server: RegistryServer) -> None:
    """Its records are invalid, the others are not."""
    values = pa.array(
        [*encode_json(server, "j", '{"type":"object"}', [{"x": 1}]), *encode_avro(server, "t", TEXT, [{"x": 1}])],
        pa.binary(),
    )
    decoder = decoder_for(ConverterSettings("avro", settings_for(server.url)))
    assert decoder is not None
    decoded = decoder.decode(values)
    assert list(decoded.invalid) == [0]
    assert_says(decoded.invalid[0], "schema id 2", "registered as JSON", "reads AVRO")
    assert [piece.positions.to_pylist() for piece in decoded.pieces] == [[1]]


def fates(kind: str, registry: RegistrySettings, values: list[bytes]) -> list[object]:
    """For each value its row, why it has none, or None."""
    decoder = decoder_for(ConverterSettings(kind, registry))
    assert decoder is not None
    decoded = decoder.decode(pa.array(values, pa.binary()))
    found: dict[int, object] = dict(decoded.invalid)
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        found |= zip(piece.positions.to_pylist(), piece.rows.to_pylist(), strict=True)
    return [found.get(place) for place in range(len(values))]


@pytest.mark.parametrize("kind", ["avro", "json_schema"])
def test_schemas_may_alternate(server: RegistryServer, kind: str) -> None:
    """A record fares in a block of several schemas, with bad ones among them, as it does alone."""
    numbers = [{"x": index} for index in range(40)]
    if kind == "avro":
        first = encode_avro(server, "a", TEXT, numbers)
        second = encode_avro(server, "b", TEXT.replace("int", "double"), numbers)
    else:
        first, second = (
            encode_json(server, name, json.dumps({"type": "object", "properties": {"x": {"type": name}}}), numbers)
            for name in ("integer", "number")
        )
    mixed = [value for pair in zip(first, second, strict=True) for value in pair]
    mixed[7:7] = [b"{}", mixed[0][:5], b""]
    registry = settings_for(server.url)
    assert fates(kind, registry, mixed) == [fates(kind, registry, [value])[0] for value in mixed]
    assert fates(kind, registry, mixed[:1]) == [{"x": 0}]


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of it for this machine, another host and a client, each with its key in one file."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test CA")])
    _write(folder / "ca.pem", _certificate(issuer, issuer, authority, authority, authority=True), None)
    addresses = {
        "server": x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        "other": x509.DNSName("other.test"),
        "client": x509.DNSName("client.test"),
    }
    for name, address in addresses.items():
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _certificate(subject, issuer, key, authority, address)
        _write(folder / f"{name}.pem", made, key)
        if name == "client":
            _write(folder / "locked.pem", made, key, b"canary-key")
    return folder


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    address: x509.GeneralName | None = None,
    *,
    authority: bool = False,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    builder = x509.CertificateBuilder(
        issuer, subject, key.public_key(), x509.random_serial_number(), now - day, now + day
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(identifier, critical=False)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    if address is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _write(
    path: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey | None, password: bytes | None = None
) -> None:
    text = certificate.public_bytes(serialization.Encoding.PEM)
    if key is not None:
        locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        text += key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    path.write_bytes(text)


def test_own_certificate_authority(certificates: Path) -> None:
    """A certificate of the CA that is named is accepted, with credentials behind it; of an unknown one it is not."""
    with RegistryServer(certificate=str(certificates / "server.pem"), authorization=BASIC) as server:
        server.register("t-value", TEXT)
        assert registry_at(server.url, base=USER, ca_file=str(certificates / "ca.pem")).get(1).text == TEXT
        said = failure(registry_at(server.url, base=USER))
        assert_says(said, "TLS failed", "local issuer certificate", "schema.registry.ssl.truststore")
        assert server.count() == 1


def test_certificate_of_another_host(certificates: Path) -> None:
    """The name must be the one in the address."""
    with RegistryServer(certificate=str(certificates / "other.pem")) as server:
        said = failure(registry_at(server.url, ca_file=str(certificates / "ca.pem")))
    assert "TLS failed: IP address mismatch" in said


@pytest.mark.parametrize(("file", "password"), [("client.pem", None), ("locked.pem", Secret("canary-key"))])
def test_client_certificate(certificates: Path, file: str, password: Secret | None) -> None:
    """A registry that asks for our certificate gets it, its key locked or not."""
    ca = str(certificates / "ca.pem")
    with RegistryServer(certificate=str(certificates / "server.pem"), client_ca=ca) as server:
        server.register("t-value", TEXT)
        mine = str(certificates / file)
        assert registry_at(server.url, ca_file=ca, certificate_file=mine, key_password=password).get(1).text == TEXT


def test_no_client_certificate(certificates: Path) -> None:
    """Where the registry asks for one, its refusal is told with the key to set, and not tried again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with ScriptedTarget(tls=context) as strict:
        said = failure(registry_at(f"https://127.0.0.1:{strict.port}", ca_file=str(certificates / "ca.pem")))
        assert strict.state.connections == 1
    assert "TLS failed: " in said
    assert "schema.registry.ssl.keystore" in said


def test_wrong_password_of_a_key(certificates: Path) -> None:
    """A wrong one, or none, is told at once, without asking on the terminal."""
    for password in (None, Secret("canary")):
        with pytest.raises(InvalidConfiguration, match="schema.registry.ssl.keystore") as caught:
            registry_at("https://x", certificate_file=str(certificates / "locked.pem"), key_password=password)
        assert "canary" not in str(caught.value)


def test_http_at_an_https_port(certificates: Path) -> None:
    """And the other way round: an end, and no hang."""
    with RegistryServer(certificate=str(certificates / "server.pem")) as server:
        assert "did not give schema id 1" in failure(registry_at(server.url.replace("https:", "http:")))
    with RegistryServer() as server:
        assert "TLS failed" in failure(registry_at(server.url.replace("http:", "https:")))


# check --connect


def findings(value: RegistrySettings | None, key: RegistrySettings | None = None) -> list[Finding]:
    """What `check --connect` finds for a connector with these registries."""
    connector = SinkSettings(
        "c",
        KafkaSettings(),
        FlushSettings(1, 1, 1),
        ShapeSettings(),
        FileSettings("/tmp"),
        PushSettings("http://127.0.0.1:9", Secret("k"), "t"),
        ConverterSettings("avro", value) if value else ConverterSettings(),
        ConverterSettings("avro", key) if key else None,
    )
    return list(probe_registries(connector))


def test_check_asks_each_registry_once(server: RegistryServer) -> None:
    """That of values and that of keys, when they differ."""
    settings, apicurio = settings_for(server.url), settings_for(server.url + APICURIO)
    assert findings(None) == []
    [found] = findings(settings, settings)
    assert (found.health, found.item) == (Health.OK, f"schema registry {server.url}")
    assert_says(found.text, "answers when asked", "AVRO, JSON, PROTOBUF")
    assert [found.item for found in findings(settings, apicurio)] == [
        f"schema registry {server.url}",
        f"schema registry {server.url}{APICURIO}",
    ]


def test_check_needs_no_schema_to_be_there(registry: RegistryServer) -> None:
    """An empty registry answers; an old one may not tell its kinds."""
    assert_says(probe(settings_for(registry.url)), "answers when asked", "knows")
    registry.trouble(Trouble(answers=False), Trouble(404))
    older = probe(settings_for(registry.url))
    assert ("answers when asked" in older, "knows" in older) == (True, False)


def test_check_tells_what_run_would_fail_with(server: RegistryServer) -> None:
    """Nobody there, wrong path, wrong password, no URL: a finding that failed, with its cure."""
    with script.closed_port() as port:
        [found] = findings(settings_for(f"http://ada:canary@127.0.0.1:{port}", max_retries=0))
    assert found.health is Health.FAILED
    assert found.item == f"schema registry http://127.0.0.1:{port}"
    assert "Connection refused" in found.text
    [found] = findings(settings_for(server.url + "/elsewhere"))
    assert "answered 404" in found.text
    server.trouble(Trouble(401))
    [found] = findings(settings_for(server.url, base=USER))
    assert "answered 401" in found.text
    [found] = findings(settings_for("nowhere"))
    assert (found.health, found.item) == (Health.FAILED, "schema registry")
    assert_says(found.text, "[schema.registry.url]", "not a valid URL", "https://<host>:<port>")


def test_a_name_that_nobody_knows() -> None:
    """The resolver's words are told."""
    assert "no answer: " in failure(registry_at("http://no-such-host.invalid", max_retries=0))
