"""Sealed values in configurations of workers of a group: a config provider of its own, by AES-256-GCM.

A sealed value is a placeholder, `${sealed:KEY:TEXT}`, which is opened where the connector runs, and nowhere before. It
holds the connector and the key that it is for, and is accepted nowhere else, so that nobody who may only write
configurations has one sent where he can read it.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from parquet_sink.config.built_in_providers import built_in
from parquet_sink.config.provider import Answer, NotGiven
from parquet_sink.config.report import quoted
from parquet_sink.worker_config.distributed import SEALED, SEALING_KEYS, SealingKey
from parquet_sink.worker_config.worker import Worker

_NONCE_BYTES: Final = 12
_SEALED_TEXT: Final = re.compile(rf"\$\{{{SEALED}:([^}}:]*+):([^}}]*+)(?:\}}|\Z)")
_NOT_HERE: Final = (
    "The sealed value in it is of another connector or key, or does not stand alone; write the password again."
)


class NotOpened(Exception):
    """Why a sealed value is not opened; it never holds a value."""


def has_sealed(text: str) -> bool:
    """Whether there is a sealed value in a text."""
    return _SEALED_TEXT.search(text) is not None


class SealedValues:
    """Seals and opens; a config provider, for which the path is the sealing key's id, and a key what is sealed by it.

    sealing_keys: the first seals. random: so many bytes, never the same.
    """

    def __init__(self, sealing_keys: Sequence[SealingKey], random: Callable[[int], bytes] = os.urandom) -> None:
        self._keys, self._random = {one.id: one for one in sealing_keys}, random
        self._first = sealing_keys[0].id if sealing_keys else ""

    def seal(self, connector: str, key: str, value: str) -> str:
        """The placeholder that stands for a value from now on."""
        nonce, text = self._random(_NONCE_BYTES), json.dumps([connector, key, value]).encode()
        sealed = nonce + AESGCM(self._keys[self._first].data).encrypt(nonce, text, self._first.encode())
        return f"${{{SEALED}:{self._first}:{base64.urlsafe_b64encode(sealed).decode()}}}"

    def opened(self, connector: str, key: str, text: str) -> str:
        """What the placeholder stands for that is all of a text. Raises NotOpened, also where it is of another."""
        found = _SEALED_TEXT.fullmatch(text.strip())
        if found is None:
            raise NotOpened(_NOT_HERE)
        try:
            of, name, value = self._parts(found[1], found[2])
        except NotOpened as error:
            raise NotOpened(f"The sealed value in it{error}") from None
        if (of, name) != (connector, key):
            raise NotOpened(_NOT_HERE)
        return value

    def seals_like(self, text: str) -> bool:
        """Whether the key that seals now sealed this text."""
        found = _SEALED_TEXT.fullmatch(text.strip())
        return found is not None and found[1] == self._first

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        """For resolving a configuration, where it is used."""
        found: dict[str, Answer] = {}
        for sealed in keys:
            try:
                found[sealed] = self._parts(path, sealed)[2]
            except NotOpened as error:
                found[sealed] = NotGiven(str(error))
        return found

    def _parts(self, path: str, sealed: str) -> tuple[str, str, str]:
        """Connector, key and value. Raises NotOpened, with words that stand behind what is sealed."""
        if path not in self._keys:
            raise NotOpened(
                f" needs the key {quoted(path)}, which [{SEALING_KEYS}] in this worker's file lacks; add it there, or "
                "write the password again."
            )
        try:
            data = base64.b64decode(sealed, altchars=b"-_", validate=True)
            text = AESGCM(self._keys[path].data).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], path.encode())
            connector, key, value = json.loads(text)
        except (InvalidTag, ValueError, RecursionError):
            raise NotOpened(
                f" was changed, or the key {quoted(path)} of [{SEALING_KEYS}] in this worker's file is not that which "
                "sealed it; correct the key, or write the password again."
            ) from None
        return connector, key, value


def opening(worker: Worker) -> Worker:
    """A worker of a group with the config provider that opens sealed values, whatever is done with passwords now."""
    assert worker.distributed is not None
    machine, sealed = worker.machine, SealedValues(worker.distributed.sealing_keys)
    given = built_in(machine) if machine.providers is None else machine.providers
    return replace(worker, machine=replace(machine, providers={**given, SEALED: sealed}))
