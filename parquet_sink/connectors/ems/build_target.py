"""From checked values to the settings of a target: a push API, a folder or a bucket."""

from typing import cast

from parquet_sink.config.key import ems
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.raw_checks import is_raw
from parquet_sink.connectors.ems.required import absolute, number, text
from parquet_sink.connectors.worker import Worker
from parquet_sink.net.settings import ClientCredentials, ProxySettings, ProxyType
from parquet_sink.shape.settings import RAW_ORDER
from parquet_sink.targets.directory.address import folder_of, is_directory
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.keys import S3
from parquet_sink.targets.push import oauth2_keys as oauth2
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.push.value_checks import clean_authorization, default_token_url
from parquet_sink.targets.s3 import keys as s3
from parquet_sink.targets.s3.settings import BucketSettings, S3Settings, StaticCredentials
from parquet_sink.targets.settings import TargetSettings

ORDER_COLUMN = "__celonis_order"


def target_settings(values: Values, worker: Worker) -> TargetSettings:
    """A bucket where the type says so, else what the endpoint says: a folder, or a push API."""
    if is_s3(values):
        bucket = bucket_settings(values, worker, text(values, s3.BUCKET))
        return S3Settings(bucket, values.text(s3.PREFIX) or "", values.text(ems("target.table")) or "")
    endpoint = text(values, ems("endpoint"))
    if is_directory(endpoint):
        return DirectorySettings(folder_of(endpoint), text(values, ems("target.table")))
    return _push(values, worker)


def is_s3(values: Values) -> bool:
    """Whether files go to a bucket."""
    return values.text(ems("target.type")) == S3


def bucket_settings(values: Values, worker: Worker, bucket: str) -> BucketSettings:
    """How a bucket is reached, whichever it is."""
    ca_file, endpoint = values.text(ems("tls.ca.file")), values.text(s3.ENDPOINT)
    return BucketSettings(
        bucket=bucket,
        endpoint=endpoint,
        region=values.text(s3.REGION),
        path_style=values.flag(s3.PATH_STYLE) if s3.PATH_STYLE in values.given else endpoint is not None,
        credentials=_credentials(values),
        profile=values.text(s3.PROFILE),
        multipart_bytes=values.number(s3.MULTIPART) or 0,
        part_bytes=values.number(s3.PART) or 0,
        connect_timeout_ms=number(values, "http.connect.timeout.ms"),
        response_timeout_ms=number(values, "http.response.timeout.ms"),
        ca_file=None if ca_file is None else absolute(ca_file, worker),
        proxy=_proxy(values),
        pool_max_idle=number(values, "pool.max.idle"),
        pool_keepalive_ms=number(values, "pool.keepalive"),
        pool_explicit_close=values.flag(ems("pool.explicit.close")),
    )


def _credentials(values: Values) -> StaticCredentials | None:
    key, secret = values.text(s3.ACCESS_KEY), values.secret(s3.SECRET_KEY)
    if key is None or secret is None:
        return None
    return StaticCredentials(key, secret, values.secret(s3.SESSION_TOKEN))


def _push(values: Values, worker: Worker) -> PushSettings:
    ca_file = values.text(ems("tls.ca.file"))
    primary_keys = values.names(ems("data.primary.key"))
    return PushSettings(
        endpoint=text(values, ems("endpoint")),
        authorization=_authorization(values),
        target_table=text(values, ems("target.table")),
        connection_id=values.text(ems("connection.id")),
        fallback_varchar_length=values.number(ems("data.fallback.varchar.length")),
        primary_keys=primary_keys,
        order_column=(values.text(ems("order.field.name")) or _order_column(values)) if primary_keys else None,
        connect_timeout_ms=number(values, "http.connect.timeout.ms"),
        response_timeout_ms=number(values, "http.response.timeout.ms"),
        ca_file=None if ca_file is None else absolute(ca_file, worker),
        proxy=_proxy(values),
        pool_max_idle=number(values, "pool.max.idle"),
        pool_keepalive_ms=number(values, "pool.keepalive"),
        pool_explicit_close=values.flag(ems("pool.explicit.close")),
    )


def _order_column(values: Values) -> str:
    """That which the sink adds, or that of raw files."""
    return RAW_ORDER if is_raw(values) else ORDER_COLUMN


def _authorization(values: Values) -> Secret | ClientCredentials:
    client, secret = values.text(oauth2.CLIENT_ID_KEY), values.secret(oauth2.SECRET_KEY)
    if client is not None and secret is not None:
        return ClientCredentials(
            token_url=values.text(oauth2.TOKEN_URL_KEY) or default_token_url(text(values, ems("endpoint"))),
            client_id=client,
            client_secret=secret,
            scope=values.text(oauth2.SCOPE_KEY),
            in_body=values.text(oauth2.AUTHENTICATION_KEY) == "post",
        )
    key = values.secret(ems("authorization.key"))
    assert key is not None
    return Secret(clean_authorization(key.reveal()))


def _proxy(values: Values) -> ProxySettings | None:
    host, port = values.text(ems("proxy.host")), values.number(ems("proxy.port"))
    if host is None or port is None:
        return None
    username, password = values.text(ems("proxy.auth.username")), values.secret(ems("proxy.auth.password"))
    signs_in = values.text(ems("proxy.auth.type")) == "BASIC" and username is not None and password is not None
    return ProxySettings(
        host=host,
        port=port,
        type=cast(ProxyType, text(values, ems("proxy.type"))),
        username=username if signs_in else None,
        password=password if signs_in else None,
    )
