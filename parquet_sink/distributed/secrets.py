"""Passwords in configurations that go to the config topic: refused, stored as they come, or sealed."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from parquet_sink.config.key import Key
from parquet_sink.config.providers import without_placeholders
from parquet_sink.config.report import Report
from parquet_sink.connectors.destinations import find_moved
from parquet_sink.connectors.hidden import in_clear
from parquet_sink.worker.herder.errors import InvalidConnector
from parquet_sink.worker_config.distributed import SEALED, SECRETS, DistributedSettings
from parquet_sink.worker_config.sealed_values import NotOpened, SealedValues, has_sealed

_IN_CLEAR: Final = (
    "It has a password in the clear, which whoever may read the config topic would see. Write the placeholder of a "
    f"config provider, ${{file:PATH:KEY}} say, or set [{SECRETS}] in the worker file to seal or to allow it."
)
_MIXED: Final = (
    "It has a password in the clear beside placeholders, which cannot be sealed together; write one of them."
)


_MOVED: Final = (
    "The sealed value in it was given for another destination: [{}] differs from what is stored. Write the password "
    "again."
)


class _Refused(Exception):
    """Why a password cannot be stored; it never holds one."""


class ConfigSecrets:
    """What becomes of passwords, by the worker file's mode."""

    def __init__(self, settings: DistributedSettings) -> None:
        self.settings, self._values = settings, SealedValues(settings.sealing_keys)

    def stored(
        self, connector: str, config: Mapping[str, str], before: Mapping[str, str], keys: Collection[Key]
    ) -> dict[str, str]:
        """The configuration as it goes to the config topic. Raises InvalidConnector with all that is wrong.

        before: what is stored of the connector. A password that is the same keeps its sealed text, so that what is put
        twice is the same; one that another key sealed is sealed again by the first. A sealed value is asked for again
        where it would be sent elsewhere. keys: all that are known of it.
        """
        report, stored, clear = Report(), dict(config), in_clear(config, keys)
        for name, text in config.items():
            try:
                if has_sealed(text):
                    stored[name] = self._sealed_again(connector, name, text)
                    if (moved := find_moved(config, before, name)) is not None:
                        report.problem(name, _MOVED.format(moved))
                elif name in clear:
                    stored[name] = self._password(connector, name, text, before.get(name, ""))
            except (_Refused, NotOpened) as error:
                report.problem(name, str(error))
        if report.problems:
            raise InvalidConnector(report.problems)
        return stored

    def _sealed_again(self, connector: str, name: str, text: str) -> str:
        value = self._values.opened(connector, name, text)
        stays = self.settings.secrets != SEALED or self._values.seals_like(text)
        return text if stays else self._values.seal(connector, name, value)

    def _password(self, connector: str, name: str, text: str, before: str) -> str:
        """What is stored of a password in the clear."""
        if self.settings.secrets == "plain":
            return text
        if self.settings.secrets == "refused":
            raise _Refused(_IN_CLEAR)
        if without_placeholders(text, "") != text:
            raise _Refused(_MIXED)
        with suppress(NotOpened):
            if self._values.seals_like(before) and self._values.opened(connector, name, before) == text:
                return before
        return self._values.seal(connector, name, text)
