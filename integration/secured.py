"""A broker that lets in only who signs in, by every way there is, and only to what rules (ACLs) allow."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from integration import certificates
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.config.secret import Secret

LISTENERS: Final = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "OTHER": "SSL",
    "LOGIN": "SASL_SSL",
    "PLAINLOGIN": "SASL_PLAINTEXT",
}
PASSWORD: Final = 's3"cr;t'
_MODULES: Final = "org.apache.kafka.common.security"
_MECHANISMS: Final = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
Client = dict[str, str | Secret]
Rule = tuple[str, str, str]
"""What may be done on which resource: operation, `topic` or `group` or `cluster`, and its name."""


@dataclass(frozen=True)
class Secured:
    """The broker; whoever comes without a name, over TLS or not, may do everything. folder: of certificates."""

    broker: Broker
    folder: Path

    def user(self, rules: Sequence[Rule], name: str | None = None) -> str:
        """A user who signs in by SCRAM with the one password, and may do this."""
        user = name or f"user-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # one of a user in a request
            change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            admin.alter_user_scram_credentials([change])[user].result(20)
        self.allow(user, rules)
        return user

    def allow(self, user: str, rules: Sequence[Rule]) -> None:
        """Returns when the broker knows them."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        bindings = [
            AclBinding(
                ResourceType[kind.upper().replace("-", "_")] if kind != "cluster" else ResourceType.BROKER,
                "kafka-cluster" if kind == "cluster" else name,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                AclOperation[operation.upper()],
                AclPermissionType.ALLOW,
            )
            for operation, kind, name in rules
        ]
        for future in admin.create_acls(bindings).values() if bindings else ():
            future.result(20)
        time.sleep(0.2)  # the broker takes in what its controller decided; nothing tells when

    def client(self, listener: str, **more: str | Secret) -> Client:
        """Settings of a client of this listener that trusts the right authority; underscores for dots."""
        named = {name.replace("_", "."): value for name, value in more.items()}
        trust: Client = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}
        protocol = LISTENERS.get(listener, "PLAINTEXT")
        address = self.broker.address(listener) if listener in LISTENERS else self.broker.bootstrap_servers
        base: Client = {"bootstrap.servers": address, "security.protocol": protocol}
        return {**base, **(trust if protocol.endswith("SSL") else {}), **named}

    def login(self, user: str, mechanism: str = "SCRAM-SHA-512", password: str = PASSWORD) -> Client:
        """Settings that sign in with a password, over TLS."""
        return self.client("LOGIN", sasl_mechanism=mechanism, sasl_jaas_config=jaas(mechanism, user, password))


def jaas(mechanism: str, user: str, password: str = PASSWORD) -> Secret:
    """The login module's line."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return Secret(f"{_MODULES}.{module}LoginModule required username={quoted(user)} password={quoted(password)};")


def oauth(client: str, secret: str) -> Secret:
    """The login module's line for tokens."""
    options = f"clientId={quoted(client)} clientSecret={quoted(secret)}"
    return Secret(f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required {options};")


def quoted(text: str) -> str:
    """As it stands in a login module's line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    """Starts it. Users of PLAIN are `sink` and `nobody`."""
    certificates.make(folder)
    with Broker(listeners=LISTENERS, properties=_properties(folder)) as broker:
        yield Secured(broker, folder)


def _properties(folder: Path) -> Mapping[str, str]:
    shown = {"TLS": "good", "MUTUAL": "good", "EXPIRED": "expired", "OTHER": "other", "LOGIN": "good"}
    stores = {f"listener.name.{name.lower()}.ssl.keystore.type": "PEM" for name in shown}
    stores |= {
        f"listener.name.{name.lower()}.ssl.keystore.location": str(folder / f"{shows}.pem")
        for name, shows in shown.items()
    }
    found = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        **stores,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": str(folder / "ca.pem"),
    }
    users = f"user_sink={quoted(PASSWORD)} user_nobody={quoted(PASSWORD)}"
    for listener, mechanisms in (("login", _MECHANISMS), ("plainlogin", "SCRAM-SHA-256")):
        found |= {
            f"listener.name.{listener}.sasl.enabled.mechanisms": mechanisms,
            f"listener.name.{listener}.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
        }
    unsigned = f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return found | {
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
        "listener.name.login.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "listener.name.login.oauthbearer.sasl.jaas.config": unsigned,
    }
