"""The transforms of a connector as its file has them: what crosses to the processes that make and run them."""

from dataclasses import dataclass
from hashlib import sha256

from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.config.secret import Secret


@dataclass(frozen=True)
class StepSettings:
    """A transform, and which records it is for: all, those that a predicate chooses, or (negate) all others."""

    transform: ClassSettings
    predicate: ClassSettings | None = None
    negate: bool = False

    @property
    def digest(self) -> str:
        """Stands for all of it, secrets too; they cannot be read from it."""
        classes = (self.transform, self.predicate)
        texts = [(name, _clear(text)) for one in classes if one is not None for name, text in one.texts]
        return sha256(repr((self, texts)).encode()).hexdigest()


def _clear(text: str | Secret) -> str:
    return text.reveal() if isinstance(text, Secret) else text
