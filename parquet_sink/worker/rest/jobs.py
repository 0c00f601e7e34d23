"""`/connectors/{name}/jobs`, and what begins them: replays, parked records sent or dropped, an archive verified."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from parquet_sink.archive.settings import URL
from parquet_sink.config.report import quoted
from parquet_sink.errors import SetupError
from parquet_sink.model.rejected import Stage
from parquet_sink.worker.herder.errors import NotReadable
from parquet_sink.worker.herder.protocol import Herder
from parquet_sink.worker.jobs import MOST_AT_ONCE, Job, Jobs, TooManyJobs
from parquet_sink.worker.rest.call import (
    NO_BODY,
    ONE,
    Call,
    NumberText,
    Parameter,
    Reply,
    RestError,
    as_rest_errors,
    command,
    endpoint,
    known_fields,
    object_of,
    unreadable,
)
from parquet_sink.worker.rest.deliveries import WORKER, sink_settings
from parquet_sink.worker.rest.other_histories import OtherHistories
from parquet_sink.worker_config.rest.roles import Role

MOST_LINES: Final = 1_000
"""In one answer."""
_BEGUN: Final = {202: "Job", 400: "Error", 404: "Error", 409: "Error", 500: "Error"}
_FOUND: Final = {404: "Error", 409: "Error"}
_UNKNOWN: Final = (
    "Connector {} has no job {} at this worker. A worker forgets them when it ends, and the oldest ones; a job goes on "
    "at the worker where it began."
)


@dataclass(frozen=True)
class Option:
    """A field of a body, which becomes the option of the same name of a command."""

    name: str
    type: Literal["boolean", "integer", "string", "array"]
    doc: str
    choices: tuple[str, ...] = ()

    def words(self, given: Any) -> list[str]:
        """What stands for the value on a command line. Raises RestError for one of another type."""
        option = f"--{self.name.replace('_', '-')}"
        if self.type == "boolean" and isinstance(given, bool):
            return [option] if given else []
        if self.type == "array" and isinstance(given, list) and all(isinstance(one, str) for one in given):
            return [f"{option}={one}" for one in given]
        if self.type == "integer" and isinstance(given, NumberText) and given.isdigit():
            return [f"{option}={given}"]
        if self.type == "string" and isinstance(given, str) and (not self.choices or given in self.choices):
            return [f"{option}={given}"]
        if self.choices:
            raise unreadable(f"{quoted(self.name)} is none of {', '.join(self.choices)}; send one of these")
        what = {"boolean": "true or false", "array": "a JSON list of texts", "integer": "a whole number"}
        raise unreadable(f"{quoted(self.name)} is not {what.get(self.type, 'a text')}; send that")


_TOPIC: Final = Option("topic", "string", "Only of this topic.")
_PARTITION: Final = Option("partition", "integer", "Only of this topic-partition.")
_JSON: Final = Option("json", "boolean", "Whether the command writes JSON in place of lines.")
_CHOSEN: Final = (
    _TOPIC,
    _PARTITION,
    Option("offset", "string", "Only records with this offset, N, or those from N to M: N-M."),
    Option("stage", "string", "Only records that failed there.", tuple(map(str, Stage))),
)
BODIES: Final[Mapping[str, tuple[Option, ...]]] = {
    "NewReplay": (
        _TOPIC,
        _PARTITION,
        Option("from", "integer", "Offsets from this one on."),
        Option("to", "integer", "Offsets up to this one, which is included."),
        Option("since", "string", "From the first record of this time on, as the command takes it: 2h, say."),
        Option("until", "string", "Before the first record of this time."),
        Option("last", "integer", "The last so many files of the history."),
        Option("file", "array", "Files of the history, by their names."),
        Option("skip_missing", "boolean", "Whether what Kafka still has is sent where a part is gone."),
        Option("times", "integer", "How often all of it is sent; once, if it is not said."),
        Option("dry_run", "boolean", "Whether it is only said what would be sent."),
        Option("rate", "string", "A share of the time, 10%, or records a second, 500/s."),
        Option("resume", "boolean", "Whether to go on with the replay that was stopped before its end."),
        Option("verify", "boolean", "Whether the target's tables are compared before and after."),
        _JSON,
    ),
    "NewParkedReplay": (
        *_CHOSEN,
        Option("dry_run", "boolean", "Whether it is only said what would become of the records."),
    ),
    "NewDrop": (
        *_CHOSEN,
        Option("all", "boolean", "All records; needed where nothing else chooses."),
        Option("yes", "boolean", "Whether to do it; else what would be dropped is listed."),
    ),
    "NewVerification": (
        _TOPIC,
        Option("quick", "boolean", "Whether names and sizes alone are compared."),
        _JSON,
    ),
}
"""Of requests that begin a job: each field is an option of the command."""


class JobEndpoints:
    """The endpoints, each a method that may be called from any thread."""

    def __init__(self, herder: Herder, jobs: Jobs, others: OtherHistories) -> None:
        self._herder, self._jobs, self._others = herder, jobs, others

    @command(
        "POST",
        f"{ONE}/replay",
        "Send again what was delivered: a job",
        _BEGUN,
        role=Role.OPERATOR,
        takes="NewReplay",
        query=(WORKER,),
    )
    def replay(self, call: Call) -> Reply:
        return self._begin(call, ("replay", "--connector", call.connector), "NewReplay")

    @command(
        "POST",
        f"{ONE}/parked/replay",
        "Send parked records again: a job",
        _BEGUN,
        role=Role.OPERATOR,
        takes="NewParkedReplay",
        query=(WORKER,),
    )
    def parked_replay(self, call: Call) -> Reply:
        return self._begin(call, ("parked", "replay"), "NewParkedReplay")

    @command(
        "POST",
        f"{ONE}/parked/drop",
        "Remove parked records for good: a job",
        _BEGUN,
        role=Role.ADMIN,
        takes="NewDrop",
        query=(WORKER,),
    )
    def drop(self, call: Call) -> Reply:
        return self._begin(call, ("parked", "drop"), "NewDrop")

    @command(
        "POST",
        f"{ONE}/archive/verify",
        "Compare the archive with the history: a job",
        _BEGUN,
        role=Role.OPERATOR,
        takes="NewVerification",
        query=(WORKER,),
    )
    def verify(self, call: Call) -> Reply:
        return self._begin(call, ("archive", "verify"), "NewVerification")

    def _begin(self, call: Call, command_words: tuple[str, ...], body: str) -> Reply:
        given = {} if call.body is NO_BODY else object_of(call.body, "options")
        options = {one.name: one for one in BODIES[body]}
        known_fields(given, tuple(options))
        words = [word for name, value in given.items() if value is not None for word in options[name].words(value)]
        settings, others = sink_settings(self._herder, call), {}
        if command_words[0] == "archive":
            if settings.archive is None:
                raise RestError(400, f"Invalid [{URL}]. Connector {settings.name} has no archive; set it.")
            others = self._others.gather(call.connector, given.get("topic"))
        try:
            job = self._jobs.begin((*command_words, *words), settings, others)
        except TooManyJobs:
            raise RestError(
                409,
                f"{MOST_AT_ONCE} jobs run at this worker already; wait until one has ended, or stop one by DELETE.",
            ) from None
        except (OSError, SetupError) as error:
            raise RestError(500, f"No process could be started for it: {error}.") from None
        location = f"{call.location(call.connector)}/jobs/{job.id}"
        return Reply(_fields(job), 202, {"Location": location})

    @endpoint(
        "GET",
        f"{ONE}/jobs",
        "Its jobs at this worker, without what they wrote",
        {200: "Jobs", **_FOUND},
        role=Role.VIEWER,
        query=(WORKER,),
    )
    def all(self, call: Call) -> Reply:
        found = self._jobs.of(call.connector)
        if not found or "worker" in call.query:
            self._require_here(call)
        return Reply([{**_fields(one), "lines": []} for one in found])

    @endpoint(
        "GET",
        f"{ONE}/jobs/{{job}}",
        "How a job stands, and what it wrote",
        {200: "Job", **_FOUND, 400: "Error"},
        role=Role.VIEWER,
        query=(WORKER, Parameter("after", "integer", "`next` of the answer before: lines from there on.", default=0)),
    )
    def one(self, call: Call) -> Reply:
        return Reply(_fields(self._find(call), call.number("after") or 0))

    @command(
        "DELETE",
        f"{ONE}/jobs/{{job}}",
        "Stop a job, as Ctrl-C does",
        {202: "Job", **_FOUND},
        role=Role.OPERATOR,
        query=(WORKER,),
    )
    def stop(self, call: Call) -> Reply:
        found = self._find(call)
        found.stop()
        return Reply(_fields(found), 202)

    def _find(self, call: Call) -> Job:
        found = next((one for one in self._jobs.of(call.connector) if one.id == call.path["job"]), None)
        if found is None:
            self._require_here(call)
            raise RestError(404, _UNKNOWN.format(call.connector, call.path["job"]))
        return found

    def _require_here(self, call: Call) -> None:
        """Raises RestError, Elsewhere."""
        with as_rest_errors(), suppress(NotReadable):
            self._herder.settings(call.connector, call.query.get("worker"))


def _fields(job: Job, after: int = 0) -> dict[str, Any]:
    """As JSON has it, with some of its lines."""
    found = job.report(after)
    lines = found.lines[:MOST_LINES]
    return {
        "id": found.id,
        "connector": found.connector,
        "command": list(found.words),
        "state": "RUNNING" if found.exit_status is None else "ENDED",
        "exit_status": found.exit_status,
        "begun_ms": found.begun_ms,
        "ended_ms": found.ended_ms,
        "progress": None if found.progress is None else vars(found.progress),
        "lines": [vars(one) for one in lines],
        "next": found.first_line + len(lines),
        "more": len(lines) < len(found.lines),
    }
