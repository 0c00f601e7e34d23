"""Configurations as they may be shown: each password written as `[hidden]`, which put back means "as it was". Pure.

What a config provider gives is not a password: its placeholder is shown. Which keys hold passwords is said by the keys
of the classes that a configuration names (`connectors.class_keys`), and of keys that nobody knows by their names: what
looks like a password's key misspelt is one, too.
"""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Final

from parquet_sink.config.key import Key, find
from parquet_sink.config.providers import without_placeholders
from parquet_sink.kafka.client_settings import is_secret_name

HIDDEN: Final = "[hidden]"
"""Kafka's own text for a password."""
_PLACEHOLDERS: Final = re.compile(r"(?:(?:AppKey|Bearer)\s+)?(?:\$\{[^}:]+:[^}]*\})+")
_ALIKE: Final = 0.85
"""How near to a password's key a name must be, as in difflib, to be taken for it misspelt."""
_USER: Final = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*@")
"""User and password in a URL."""
_FILLED: Final = "\0"
"""Stands for a placeholder while what is around it is looked at."""
_PASSWORDS_IN_URLS: Final = re.compile(r"://[^/@\s:]*:([^/@\s]*)@")
_GIVEN: Final = re.compile(rf"(?:(?:AppKey|Bearer|Basic)\s+)?{_FILLED}*")
_JAAS: Final = "sasl.jaas.config"
_JAAS_MODULE: Final = re.compile(r"\s(?:required|requisite|sufficient|optional)\b")
_JAAS_OPTION: Final = re.compile(r'(?<![\w.])([\w.]++)\s*+=\s*+("(?:[^"\\]|\\.)*+(?:"|\Z)|[^\s;"]*+)')


def hide(config: Mapping[str, str], keys: Collection[Key]) -> dict[str, str]:
    """The configuration without its passwords. keys: all that are known of it."""
    return {name: _shown(name, text, keys) for name, text in config.items()}


def hide_more(config: Mapping[str, str], keys: Collection[Key]) -> dict[str, str]:
    """Also without what may be sensitive, for those who only look: values are shown of keys that a class declares.

    Hidden are passwords, placeholders (they say where secrets are), what goes on to clients and plug-ins by a prefix,
    and keys that nobody knows.
    """
    return {name: _shown_to_all(name, text, keys) for name, text in config.items()}


def restore(config: Mapping[str, str], stored: Mapping[str, str], keys: Collection[Key]) -> dict[str, str]:
    """The configuration with what `hide` took away, as it is stored. keys: all that are known of the new one.

    What stands for a password that is not stored stays: see `unknown`.
    """
    return {
        name: stored[name] if name in stored and text.strip() == _shown(name, stored[name], keys) else text
        for name, text in config.items()
    }


def unknown(config: Mapping[str, str], keys: Collection[Key]) -> list[str]:
    """A problem for each password that is still hidden after `restore`: nobody knows it."""
    return [
        f"Invalid [{name}]. {HIDDEN} stands for the password that is stored, and there is none; write the password, or "
        "the placeholder of a config provider."
        for name, text in config.items()
        if (text.strip() == HIDDEN and _is_secret(name, keys)) or f":{HIDDEN}@" in text
    ]


def in_clear(config: Mapping[str, str], keys: Collection[Key]) -> tuple[str, ...]:
    """Names of keys whose text has a password that no config provider gives. keys: all that are known of it.

    Around placeholders a scheme (`Bearer`), a user (`user:password`) and the rest of a JAAS configuration may stand.
    """
    return tuple(name for name, text in config.items() if not _is_given(name, text, keys))


def _is_given(name: str, text: str, keys: Collection[Key]) -> bool:
    bare = without_placeholders(text.strip(), _FILLED)
    if not _is_secret(name, keys):
        passwords = _PASSWORDS_IN_URLS.findall(bare)
    elif name.endswith(_JAAS) and _JAAS_MODULE.search(bare):
        passwords = [value.strip('"') for option, value in _JAAS_OPTION.findall(bare) if is_secret_name(option)]
    else:
        passwords = [bare.partition(":")[2] or bare]
    return all(_GIVEN.fullmatch(password) for password in passwords)


def _shown(name: str, text: str, keys: Collection[Key]) -> str:
    if not _is_secret(name, keys):
        return _USER.sub(rf"\1:{HIDDEN}@", text)
    return text if not text.strip() or _PLACEHOLDERS.fullmatch(text.strip()) else HIDDEN


def _shown_to_all(name: str, text: str, keys: Collection[Key]) -> str:
    key = find(keys, name)
    open_ = name == "connector.class" or (key is not None and not key.is_prefix and not _is_secret(name, keys))
    plain = without_placeholders(text, _FILLED) == text
    return _shown(name, text, keys) if not text.strip() or (open_ and plain) else HIDDEN


def _is_secret(name: str, keys: Collection[Key]) -> bool:
    if any(key.secret and key.name == name for key in keys):
        return True  # of an earlier class, whatever the one of now says of it
    key = find(keys, name)
    if key is None or (key.is_prefix and not key.secret):
        return is_secret_name(name) or (key is None and _is_misspelt(name, keys))
    return key.secret


def _is_misspelt(name: str, keys: Collection[Key]) -> bool:
    secrets = [key.name for key in keys if key.secret and not key.is_prefix]
    return bool(difflib.get_close_matches(name.lower(), secrets, n=1, cutoff=_ALIKE))
