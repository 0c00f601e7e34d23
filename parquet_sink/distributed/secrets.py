"""Passwords in configurations that go to the config topic: refused, stored as they come, or sealed by AES-256-GCM.

A sealed value is a placeholder, `${sealed:KEY:TEXT}`, which a config provider of its own opens where the connector
runs, and nowhere before. It holds the connector and the key that it is for, and is accepted nowhere else, so that
nobody who may only write configurations has one sent where he can read it.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from parquet_sink.config.built_in_providers import built_in
from parquet_sink.config.key import Key
from parquet_sink.config.provider import Answer, NotGiven
from parquet_sink.config.providers import without_placeholders
from parquet_sink.config.report import Report, quoted
from parquet_sink.connectors.hidden import in_clear
from parquet_sink.worker.herder.errors import InvalidConnector
from parquet_sink.worker_config.distributed import SEALED, SEALING_KEYS, SECRETS, DistributedSettings, SealingKey
from parquet_sink.worker_config.worker import Worker

_NONCE_BYTES: Final = 12
_SEALED_TEXT: Final = re.compile(rf"\$\{{{SEALED}:([^}}:]*+):([^}}]*+)(?:\}}|\Z)")
_IN_CLEAR: Final = (
    "It has a password in the clear, which whoever may read the config topic would see. Write the placeholder of a "
    f"config provider, ${{file:PATH:KEY}} say, or set [{SECRETS}] in the worker file to seal or to allow it."
)
_MIXED: Final = (
    "It has a password in the clear beside placeholders, which cannot be sealed together; write one of them."
)
_NOT_HERE: Final = (
    "The sealed value in it is of another connector or key, or does not stand alone; write the password again."
)


class _Refused(Exception):
    """Why a text cannot be stored, or a sealed value not opened; it never holds a value."""


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
        """What the placeholder stands for that is all of a text. Raises _Refused, also where it was made for others."""
        found = _SEALED_TEXT.fullmatch(text.strip())
        if found is None:
            raise _Refused(_NOT_HERE)
        try:
            of, name, value = self._parts(found[1], found[2])
        except _Refused as error:
            raise _Refused(f"The sealed value in it{error}") from None
        if (of, name) != (connector, key):
            raise _Refused(_NOT_HERE)
        return value

    def seals_like(self, text: str) -> bool:
        """Whether the key that seals now sealed this text."""
        found = _SEALED_TEXT.fullmatch(text.strip())
        return found is not None and found[1] == self._first

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        """For resolving a configuration, where it is used."""
        return {sealed: self._answer(path, sealed) for sealed in keys}

    def _answer(self, path: str, sealed: str) -> Answer:
        try:
            return self._parts(path, sealed)[2]
        except _Refused as error:
            return NotGiven(str(error))

    def _parts(self, path: str, sealed: str) -> tuple[str, str, str]:
        """Connector, key and value. Raises _Refused, with words that stand behind what is sealed."""
        if path not in self._keys:
            raise _Refused(
                f" needs the key {quoted(path)}, which [{SEALING_KEYS}] in this worker's file lacks; add it there, or "
                "write the password again."
            )
        try:
            data = base64.b64decode(sealed, altchars=b"-_", validate=True)
            text = AESGCM(self._keys[path].data).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], path.encode())
            connector, key, value = json.loads(text)
        except (InvalidTag, ValueError, RecursionError):
            raise _Refused(
                f" was changed, or the key {quoted(path)} of [{SEALING_KEYS}] in this worker's file is not that which "
                "sealed it; correct the key, or write the password again."
            ) from None
        return connector, key, value


class ConfigSecrets:
    """What becomes of passwords, by the worker file's mode. random: as `SealedValues` has it."""

    def __init__(self, settings: DistributedSettings, random: Callable[[int], bytes] = os.urandom) -> None:
        self._mode, self._values = settings.secrets, SealedValues(settings.sealing_keys, random)

    def opening(self, worker: Worker) -> Worker:
        """The worker with the config provider that opens sealed values, whatever the mode is now."""
        machine = worker.machine
        given = built_in(machine) if machine.providers is None else machine.providers
        return replace(worker, machine=replace(machine, providers={**given, SEALED: self._values}))

    def stored(
        self, connector: str, config: Mapping[str, str], before: Mapping[str, str], keys: Collection[Key]
    ) -> dict[str, str]:
        """The configuration as it goes to the config topic. Raises InvalidConnector with all that is wrong.

        before: what is stored of the connector. A password that is the same keeps its sealed text, so that what is put
        twice is the same; one that another key sealed is sealed again by the first. keys: all that are known of it.
        """
        report, stored, clear = Report(), dict(config), in_clear(config, keys)
        for name, text in config.items():
            try:
                if _SEALED_TEXT.search(text):
                    stored[name] = self._sealed_again(connector, name, text)
                elif name in clear:
                    stored[name] = self._password(connector, name, text, before.get(name, ""))
            except _Refused as error:
                report.problem(name, str(error))
        if report.problems:
            raise InvalidConnector(report.problems)
        return stored

    def _sealed_again(self, connector: str, name: str, text: str) -> str:
        value = self._values.opened(connector, name, text)
        return (
            text if self._mode != SEALED or self._values.seals_like(text) else self._values.seal(connector, name, value)
        )

    def _password(self, connector: str, name: str, text: str, before: str) -> str:
        """What is stored of a password in the clear."""
        if self._mode == "plain":
            return text
        if self._mode == "refused":
            raise _Refused(_IN_CLEAR)
        if without_placeholders(text, "") != text:
            raise _Refused(_MIXED)
        with suppress(_Refused):
            if self._values.seals_like(before) and self._values.opened(connector, name, before) == text:
                return before
        return self._values.seal(connector, name, text)
