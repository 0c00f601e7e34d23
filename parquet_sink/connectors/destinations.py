"""Keys that say where a connector sends its secrets: what knows an endpoint of its own is not to have another's. Pure.

By their names, so that keys of plug-ins count, too. Keys of a converter, of a transform and of each Kafka client are
for its own secrets; proxy and connector class are for all.
"""

import re
from collections.abc import Mapping
from typing import Final

_DESTINATION: Final = re.compile(
    r"(?:^|\.)(?:url|urls|uri|endpoint|servers|hosts?|port|class|type|proxy|ca|truststore|protocol|mechanism)(?:\.|$)"
    r"|^(?:key|value|header)\.converter$"
)
_OWNER: Final = re.compile(
    r"(?:(?:key|value|header)\.converter|(?:consumer|producer|admin)\.override|(?:transforms|predicates)\.[^.]+)(?=\.|$)"
)
_OF_ALL: Final = re.compile(r"^connector\.class$|(?:^|\.)proxy\.")


def find_moved(config: Mapping[str, str], before: Mapping[str, str], secret: str) -> str | None:
    """Return a key, other than before, that says where the value of `secret` is sent, or by whom; None if none is."""
    for name in sorted(config.keys() | before.keys()):
        if name != secret and config.get(name, "").strip() != before.get(name, "").strip() and _leads(name, secret):
            return name
    return None


def _leads(name: str, secret: str) -> bool:
    if _DESTINATION.search(name) is None:
        return False
    return _OF_ALL.search(name) is not None or _owner(name) == _owner(secret)


def _owner(name: str) -> str:
    found = _OWNER.match(name)
    return "" if found is None else found[0]
