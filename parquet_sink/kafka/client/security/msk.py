"""AWS_MSK_IAM: tokens that are signed with AWS credentials, for librdkafka's OAUTHBEARER."""

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from parquet_sink.config.secret import plain
from parquet_sink.kafka.client_settings import Client, Translation

MECHANISM: Final = "AWS_MSK_IAM"
MODULE: Final = "IAMLoginModule"
HANDLERS: Final = ("IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler")
"""Java classes that do what is done here."""
_SIGNER: Final = "aws_msk_iam_sasl_signer"
_PROFILE, _ROLE, _SESSION = "awsProfileName", "awsRoleArn", "awsRoleSessionName"
_OPTIONS: Final = (_PROFILE, _ROLE, _SESSION)
_SILENT: Final = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")
"""Options of the login module that change nothing here."""
_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
_ENVIRONMENT: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_LEFT_S: Final = 300.0
"""A token with less time left is not given to another client. The signer's hold for 900 s."""


class NoToken(Exception):
    """No token could be signed. The text says why, and the cure."""


_lock: Final = threading.Lock()
_kept: Final[dict["TokenSource", tuple[str, float]]] = {}
"""Clients of one process share tokens: roles are asked for over the network."""


@dataclass(frozen=True)
class TokenSource:
    """What librdkafka calls for a token, in a thread of its own. profile, role, session: empty for none."""

    region: str
    profile: str = ""
    role: str = ""
    session: str = ""

    def __call__(self, config: str) -> tuple[str, float]:
        """The token, and when it ends, in epoch seconds. Raises NoToken."""
        with _lock:
            token, end = _kept.get(self, ("", 0.0))
            if end - time.time() < _LEFT_S:
                token, end = self._signed()
                _kept[self] = token, end
            return token, end

    def _signed(self) -> tuple[str, float]:
        provider: Any = import_module(f"{_SIGNER}.MSKAuthTokenProvider")
        try:
            if self.role:
                found = provider.generate_auth_token_from_role_arn(self.region, self.role, self.session or None)
            elif self.profile:
                found = provider.generate_auth_token_from_profile(self.region, self.profile)
            else:
                found = provider.generate_auth_token(self.region)
        except Exception as error:  # noqa: BLE001 - whatever the libraries of AWS raise, in their words
            raise NoToken(
                f"AWS gives no credentials for {MECHANISM} ({type(error).__name__}: {error}); give the process some, "
                "by environment, profile or role."
            ) from None
        token, end_ms = found
        return str(token), end_ms / 1000


def translate(client: Client, options: Mapping[str, str], key: str, to: Translation) -> None:
    """Adds what signs. options: of the login module. key: of its line, for messages."""
    unknown = next((name for name in options if name not in (*_OPTIONS, *_SILENT)), None)
    if unknown is not None:
        to.problem(key, f"Its option {unknown} is not known here; write {', '.join(_OPTIONS)}, or none of them.")
    if options.get(_ROLE) and options.get(_PROFILE):
        to.problem(key, f"It has both {_PROFILE} and {_ROLE}; keep one of them.")
    if find_spec(_SIGNER) is None:
        to.problem(
            "sasl.mechanism",
            f"{MECHANISM} needs a package that is not here: pip install '.[msk]', from a copy of the repository.",
        )
    region = _region(client)
    if region is None and "bootstrap.servers" in client:
        to.problem(
            "sasl.mechanism",
            f"{MECHANISM} needs the region, which bootstrap.servers does not tell; set AWS_REGION in the environment.",
        )
    to.settings["sasl.mechanism"] = "OAUTHBEARER"
    to.tokens = TokenSource(region or "", *(options.get(name, "") for name in _OPTIONS))


def _region(client: Client) -> str | None:
    """As the addresses of brokers have it; else of the environment."""
    found = _REGION.search(plain(client, "bootstrap.servers") or "")
    if found is not None:
        return found[1]
    return next((os.environ[name] for name in _ENVIRONMENT if os.environ.get(name)), None)
