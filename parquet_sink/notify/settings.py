"""Keys and settings of notices of accepted files."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

from parquet_sink.config.declared import Milliseconds, declared, filled_by, key
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.kafka.settings import NAME_KEY, TOPIC
from parquet_sink.net.settings import HttpSettings, check_in_clear, wrong_url
from parquet_sink.plugins import named
from parquet_sink.targets.settings import Target

NOTIFY_TOPIC: Final = ems("notify.topic")
NOTIFY_URL: Final = ems("notify.url")
SECRET: Final = ems("notify.secret")
MOST_WAITING: Final = ems("notify.max.waiting")
TIMEOUT: Final = ems("notify.timeout.ms")
SIGNING_PREFIX: Final = "whsec_"
LEAST_SECRET: Final = 16
"""Bytes."""


def _wrong_url(value: Value) -> str | None:
    return wrong_url(str(value), "write it as https://host/path.", f"the credential belongs in {SECRET}.")


def _wrong_secret(value: Value) -> str | None:
    """Standard Webhooks has base64 behind a prefix; any other text is taken as it is."""
    text = value.reveal() if isinstance(value, Secret) else str(value)
    try:
        size = len(signing_key(text))
    except ValueError:
        return f"What stands behind {SIGNING_PREFIX} is not base64; copy the secret again."
    return None if size >= LEAST_SECRET else f"It has fewer than {LEAST_SECRET} bytes; make one of 24 or more."


def signing_key(secret: str) -> bytes:
    """What signatures are made with. Raises ValueError."""
    if not secret.startswith(SIGNING_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SIGNING_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


@declared(group="Notices of accepted files", origin=Origin.OWN, optional=True)
class NotifySettings:
    """Where notices go: a topic, a webhook, or both. producer: the client's settings, with Java's names.

    table: the connector's, of files that have none of their own. waiting: the local folder in which notices wait for
    the webhook. http: how that is reached.
    """

    connector: str = filled_by("name")
    table: str
    waiting: str
    http: Annotated[HttpSettings, "its keys are a connector's already"]
    topic: str | None = key(
        NOTIFY_TOPIC,
        "Write a notice of each accepted file into this topic, before its offsets are committed, so that none is "
        "missing; see [notices.md](../how-to/notices.md). The topic must be there, at the connector's brokers or those "
        "of `producer.override.bootstrap.servers`, and may not be among the connector's own.",
        default=None,
        default_text="no notices there",
        check=TOPIC,
    )
    url: str | None = key(
        NOTIFY_URL,
        "Post a notice of each accepted file to this address, behind the commit, as a CloudEvent. It delays nothing; "
        "what the address does not take in time is given up, which is logged and counted.",
        default=None,
        default_text="no notices there",
        check=Check("an http or https URL", _wrong_url),
    )
    secret: Secret | None = key(
        SECRET,
        "Sign what is posted with it, as Standard Webhooks says (`webhook-signature`): `whsec_` and base64, or any "
        "text of 16 bytes or more.",
        default=None,
        default_text="not signed",
        check=Check("16 bytes or more", _wrong_secret),
        needs=NOTIFY_URL,
    )
    timeout_ms: Milliseconds = key(
        TIMEOUT,
        "How long a notice is tried at that address before it is given up, from when its file was accepted.",
        default=3_600_000,
        minimum=1_000,
        needs=NOTIFY_URL,
    )
    max_waiting: int = key(
        MOST_WAITING,
        "The most notices that may wait for that address, below `connect.ems.tmp.dir`; beyond, the oldest are given "
        "up.",
        default=10_000,
        minimum=1,
        maximum=1_000_000,
        needs=NOTIFY_URL,
    )
    producer: Mapping[str, str | Secret] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As `kafka.settings.ProducerSettings` has it."""
        return f"notices-{self.topic}"

    @property
    def whose(self) -> str:
        """Likewise."""
        return f"producer of notices to {self.topic}"

    def behind(self, target: Target) -> Target:
        """The target, of whose accepted files notices are given; what does that is loaded here, where it is needed."""
        made: Target = named("parquet_sink.notify.target:notified")(target, self)
        return made


def check(values: Values, report: Report) -> None:
    """Report a topic that the connector reads, and an address that would carry notices in clear."""
    topic = values.text(NOTIFY_TOPIC)
    if topic is not None and topic in values.names("topics"):
        report.problem(NOTIFY_TOPIC, f"{values.quoted(NOTIFY_TOPIC)} is named by topics, too; name another topic.")
    if topic is not None and topic == values.text(NAME_KEY):
        report.problem(
            NOTIFY_TOPIC, f"{values.quoted(NOTIFY_TOPIC)} is the dead-letter topic, too; name another topic."
        )
    check_in_clear(values, NOTIFY_URL, report, "notices")
