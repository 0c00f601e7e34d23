"""Keys of the dead-letter topic by their names, for messages."""

from typing import Final

NAME_KEY: Final = "errors.deadletterqueue.topic.name"
REPLICATION_KEY: Final = "errors.deadletterqueue.topic.replication.factor"
