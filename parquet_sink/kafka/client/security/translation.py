"""What a translation of Java's settings gives: librdkafka's settings, and what is wrong, by Java's names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_sink.config.secret import Secret

Client = Mapping[str, str | Secret]
"""Settings of a client under Java's names, without the prefix."""

Problem = tuple[str, str]
"""Name of a setting as the operator wrote it, without its prefix, and what is wrong with it; "" is no single one."""


@dataclass
class Translation:
    """settings: librdkafka's, secrets revealed. problems: no value of a secret is in them."""

    settings: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, name: str, reason: str) -> None:
        """Adds one, once."""
        if (name, reason) not in self.problems:
            self.problems.append((name, reason))


def plain(client: Client, name: str) -> str | None:
    """The value of a setting, revealed where it is a secret; None where it is absent or blank."""
    value = client.get(name)
    text = value.reveal() if isinstance(value, Secret) else value
    return text or None
