"""Where our worker answers otherwise than Kafka Connect, and why."""

from collections.abc import Sequence
from typing import Final

from integration.connect.compare import Known


def _all(reason: str, *places: tuple[str, str]) -> Sequence[Known]:
    """One reason for several places: patterns of titles and paths."""
    return [Known(titles, paths, reason) for titles, paths in places]


_BETTER_WORDS: Final = (
    "Status and shape are Kafka Connect's; the message names what is wrong and the cure in our words."
)
_CLASSES: Final = "Which classes are installed: ours, and no file connectors."
_LOOKS: Final = "How a form shows the keys of converters, transforms and predicates follows from our tables of keys."
_TASKS: Final = (
    "A connector that never ran has its tasks here, as many as tasks.max says; Kafka Connect makes them later."
)
_FAILED: Final = "All tasks are one query here: when it fails the connector has failed, and says why at once."

KNOWN: Final[tuple[Known, ...]] = (
    Known("*", "headers.server", "The name and version of a server help nobody but who looks for holes in it."),
    *_all(
        "Every body that is JSON says so; Jersey's own errors do not.",
        *(
            (titles, "headers.content-type")
            for titles in ("a path*", "a method*", "a plugin without*", "*as plain text")
        ),
    ),
    *_all(_BETTER_WORDS, ("*", "body.message"), ("*validate*", "body.configs.*.value.errors*")),
    *_all(
        "Neither topics nor topics.regex is one mistake, told once; Kafka Connect counts and tells it for both keys.",
        ("validate without topics", "body.error_count"),
    ),
    *_all(
        "The place in a group has the name of 4.1 and that of 4.2, for clients of both.",
        ("*", "body.*.order_in_group"),
    ),
    *_all(
        "There is one version of each class here, so none is named as the default and none is offered.",
        ("*", "body.*.plugin.version.*"),
    ),
    *_all(
        "Without tasks.max there are as many tasks as Spark has slots for; 1 would be untrue.",
        ("*", "body.*tasks.max*.default_value"),
    ),
    *_all("The groups of the class's own keys come behind Kafka Connect's.", ("*", "body.groups")),
    *_all(_CLASSES, ("*plugins*", "body*"), ("*", "body.configs.*converter.value.recommended_values*")),
    *_all("The build that runs is ours; version is that of the API, which clients go by.", ("*", "body.commit")),
    *_all(_LOOKS, ("keys of a *", "body*"), ("validate a transform*", "body.configs.transforms.*.definition.*")),
    *_all("Task configurations name no Java class here.", ("*", "body.*config.task.class")),
    *_all(
        "Loggers have the names of what is installed.", ("*loggers", "body.org.*"), ("*loggers", "body.parquet_sink*")
    ),
)
