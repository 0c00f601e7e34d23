"""A boto3 client for one bucket: boto3 finds credentials, signs and reads answers; our own client does the HTTP.

Nothing is tried again by botocore but a request that AWS sends to the bucket's own region; retries and their pauses are
ours, so that they keep to the connector's bounds.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.errors import InvalidConfiguration, SetupError, install
from parquet_sink.net import tls
from parquet_sink.net.session import proxy_secrets, session_for
from parquet_sink.targets.s3.settings import PROFILE, BucketSettings, StaticCredentials

MISSING: Final = f"A bucket as the target needs boto3, which is not installed. {install('s3')}"


@dataclass(frozen=True)
class Connection:
    """A boto3 client, and what carries its requests. secrets: what no message may hold.

    of_aws: it is AWS itself, and not a server of the same protocol.
    """

    client: Any
    transport: Any
    secrets: tuple[str, ...]
    of_aws: bool


def connect(settings: BucketSettings, environment: Mapping[str, str] = os.environ) -> Connection:
    """A connection of its own for the caller; nothing is sent yet.

    Raises SetupError when boto3 is not installed, InvalidConfiguration for a file or profile that cannot be used.
    """
    try:
        from parquet_sink.targets.s3.transport import Transport
    except ModuleNotFoundError as error:
        raise SetupError(MISSING) from error
    headers = {"Connection": "Close"} if settings.closes else {}
    http = session_for(settings, environment)
    transport = Transport(http, settings.connect_timeout_ms / 1000, settings.response_timeout_ms / 1000, headers)
    client = _client(settings)
    client.meta.events.register("before-send.s3", transport.send)
    of_aws = ".amazonaws." in client.meta.endpoint_url
    return Connection(client, transport, _secrets(settings), of_aws)


def problems(settings: BucketSettings, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """What cannot be used of what the settings and the environment name."""
    yield from tls.problems(settings.ca_file, environment)
    try:
        connect(replace(settings, ca_file=None), {}).transport.close()
    except SetupError as error:
        yield f"Invalid [connect.ems.target.type]. {error}"
    except InvalidConfiguration as error:
        yield from error.problems


def _client(settings: BucketSettings) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        user_agent_extra=f"parquet-sink/{__version__}",
        signature_version="s3v4",
        s3={"addressing_style": "path" if settings.path_style else "virtual"},
        retries={"mode": "legacy", "total_max_attempts": 1},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        session = boto3.session.Session(
            botocore_session=_session(),
            region_name=settings.region,
            profile_name=settings.profile,
            **_credentials(settings.credentials),
        )
        return session.client("s3", endpoint_url=settings.endpoint, config=config)
    except (BotoCoreError, ValueError) as error:
        key = PROFILE if settings.profile else "connect.ems.s3.region"
        raise InvalidConfiguration([f"Invalid [{key}]. boto3 cannot use it: {error}. Correct it."]) from error


def _session() -> Any:
    """One that reads the description of S3, a quarter of a second's work, once in a process."""
    import botocore.session

    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    return session


@cache
def _loader() -> Any:
    import botocore.loaders

    return botocore.loaders.create_loader()


def _credentials(given: StaticCredentials | None) -> dict[str, str | None]:
    if given is None:
        return {}
    return {
        "aws_access_key_id": given.access_key_id,
        "aws_secret_access_key": given.secret_access_key.reveal(),
        "aws_session_token": given.session_token.reveal() if given.session_token else None,
    }


def _secrets(settings: BucketSettings) -> tuple[str, ...]:
    own = settings.credentials
    found = () if own is None else (own.secret_access_key, own.session_token)
    return (*(one.reveal() for one in found if one is not None), *proxy_secrets(settings.proxy))
