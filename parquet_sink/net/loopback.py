"""Which addresses are this machine itself."""

import ipaddress
from urllib.parse import SplitResult


def is_loopback(url: SplitResult) -> bool:
    """True when the URL's host is this machine whatever the network says."""
    host = (url.hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
