"""Addresses of proxies."""

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.net.adapter import proxy_url
from parquet_sink.net.settings import ProxySettings


@pytest.mark.parametrize(
    ("proxy", "url"),
    [
        (ProxySettings("p", 1, "HTTP", "u", Secret("s")), "http://p:1"),
        (ProxySettings("p", 1, "SOCKS4"), "socks4a://p:1"),
        (ProxySettings("p", 1, "SOCKS5", "u", Secret("s")), "socks5h://p:1"),
        (ProxySettings("::1", 1), "http://[::1]:1"),
        (ProxySettings("a@b/c", 1), "http://a%40b%2Fc:1"),
    ],
)
def test_proxy_url_has_no_credentials(proxy: ProxySettings, url: str) -> None:
    """A proxy's address holds no user or password, so no message of a library can show them."""
    assert proxy_url(proxy) == url
