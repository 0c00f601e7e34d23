"""Where our worker answers otherwise than Kafka Connect, and why."""

from typing import Final

from integration.connect.compare import Known


def _all(reason: str, *places: tuple[str, str]) -> list[Known]:
    """One reason for several places: patterns of titles and paths."""
    return [Known(titles, paths, reason) for titles, paths in places]


_REFUSED: Final = (
    *(
        "validate *",
        "create *",
        "put *",
        "patch *",
        "alter offsets *",
        "set a level by a list",
        "a body *",
        "a charset",
    ),
    *("a name with a semicolon", "*: put an invalid one", "kcctl apply, a class that is none", "*create a wrong one"),
)
"""What is wrong in itself. Answers about connectors that are not there have Kafka Connect's very words."""

KNOWN: Final[tuple[Known, ...]] = (
    Known("*", "headers.server", "The name and version of a server help nobody but who looks for holes in it."),
    *_all(
        "Every body that is JSON says so; Jersey's own errors do not.",
        ("a path*", "headers.content-type"),
        ("a method*", "headers.content-type"),
        ("a plugin without*", "headers.content-type"),
        ("*as plain text", "headers.content-type"),
        ("pause with GET", "headers.content-type"),
        ("restart with PUT", "headers.content-type"),
        ("create for a reader of XML", "headers.content-type"),
        ("a body that says XML", "headers.content-type"),
        ("a name that goes up in clear", "headers.content-type"),
    ),
    Known("options of connectors", "headers.content-type", "An answer without a body has no type of one."),
    Known("*", "headers.allow", "405 says which methods there are, as HTTP wants it; Jersey leaves that out."),
    *_all(
        "Status and shape are Kafka Connect's; the message names what is wrong, and the cure, in our words.",
        *((titles, "body.message") for titles in _REFUSED),
        ("*", "body.configs.*.value.errors*"),
    ),
    *_all(
        "A mistake is counted and told once. Kafka Connect says of both keys that topics are not named or named twice, "
        "and of what is no number that it is null as well.",
        ("validate*", "body.error_count"),
        ("kcctl apply --dry-run, an invalid one", "body.error_count"),
        ("Kafka UI, form that is wrong", "body.error_count"),
    ),
    Known(
        "*", "body.*order_in_group", "The place in a group has its name of 4.1 and that of 4.2, for clients of both."
    ),
    *_all(
        "There is one version of each class here, so none is named as the default and none is offered.",
        ("*", "body.*.plugin.version.*"),
        ("validate a transform*", "body.configs.transforms.*.plugin.version"),
    ),
    Known(
        "*",
        "body.*tasks.max*.default_value",
        "Without it there are as many tasks as Spark has slots for, so 1 is untrue.",
    ),
    Known(
        "*",
        "body.warnings",
        "A misspelt key does nothing, which whoever typed it is told in a field that other clients pass over.",
    ),
    Known("*", "body.groups", "The groups of the class's own keys come behind Kafka Connect's."),
    *_all(
        "The class's own key, by the name that Confluent's sinks gave it.",
        ("*", "body.timezone"),
        ("*", "body.configs.timezone"),
    ),
    *_all(
        "A browser is shown the worker's page; all others get JSON, as from Kafka Connect.",
        ("worker, by a browser", "headers.*"),
        ("worker, by a browser", "body"),
    ),
    *_all(
        "Which classes are installed: ours, and no file connectors.",
        ("*plugins*", "body*"),
        ("*", "body.configs.*converter.value.recommended_values*"),
        ("*", "body.configs.transforms.*.type.value.recommended_values*"),
    ),
    Known("*", "body.commit", "The build that runs is ours; version is that of the API, which clients go by."),
    *_all(
        "How a form shows keys of converters, transforms and predicates follows from our tables of keys.",
        ("keys of a *", "body*"),
        ("validate a transform*", "body.configs.transforms.*.definition.*"),
    ),
    Known(
        "*",
        "body.header.converter.default_value",
        "Kafka Connect tells this default where it validates and not where it lists keys; here it is told in both.",
    ),
    Known("*", "body.*config.task.class", "A task is no Java class here."),
    *_all(
        "Loggers have the names of what is installed, and are listed once they have a level of their own.",
        ("*loggers", "body.org.*"),
        ("*loggers", "body.<class>"),
        ("*loggers", "body.judged"),
    ),
    Known(
        "set the level of a logger that is none",
        "*",
        "Loggers of others than this program cannot be set: at DEBUG they say what may not be said.",
    ),
    *_all(
        "A connector that never ran has its tasks here, as many as tasks.max says; Kafka Connect makes them later.",
        ("paused*", "body.tasks"),
        ("restart one that is paused", "body.tasks"),
        ("*", "body.paused.status.tasks"),
        ("*", "body.paused.info.tasks"),
        ("paused, tasks", "body"),
    ),
    *_all(
        "All tasks are one query here: when it fails the connector has failed, and says why at once.",
        ("status of one that failed", "body.connector.*"),
        ("restart what failed", "body.connector.state"),
    ),
    Known(
        "restart what failed", "body.tasks.0.trace", "What is started anew has not failed; the old trace is in the log."
    ),
    Known("restart one that is stopped", "body.connector.state", "Nothing of it is restarted, so it stays STOPPED."),
    *_all(
        "A connector's name is that of a folder and a group here, so it has an end: 200 characters.",
        ("create a name of 300 characters", "*"),
        ("delete a name of 300 characters", "*"),
    ),
    *_all(
        "Names with a slash, a percent sign or dots can be reached here; Jetty refuses them with a page of HTML.",
        ("doubled slash", "*"),
        ("a name *", "status"),
        ("a name *", "headers.c*"),
        ("a name *", "body"),
    ),
    Known(
        "create an odd name", "headers.location", "%26 stands for &, so it is the same address, and safe everywhere."
    ),
    Known(
        "put tasks from outside",
        "*",
        "Only Kafka Connect's workers send each other the tasks of a connector by that path.",
    ),
    Known(
        "offsets after a removal",
        "body.offsets",
        "librdkafka cannot remove one offset of a group: the topic-partition goes back to where a new group begins.",
    ),
)
