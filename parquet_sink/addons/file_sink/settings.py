"""Where lines go: the key that says it, whether they can, and the sink that appends them."""

import os
import socket
import stat
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from parquet_sink.config.declared import LocalPath, declared, key
from parquet_sink.config.key import Origin
from parquet_sink.config.report import quoted
from parquet_sink.errors import RecordSinkFailed
from parquet_sink.targets.outcome import Health, ProbeResult

if TYPE_CHECKING:  # planners know settings, and no sinks
    from parquet_sink.addons.file_sink.appender import FileSink
    from parquet_sink.model.records import RecordParts

FILE: Final = "file"


@declared(group="The file", origin=Origin.CONNECT)
class FileSinkSettings:
    """A `RecordSinkSetup`. file: None: standard output of the program, to which `stdout` leads on `host`."""

    problems_may_pass: ClassVar[bool] = True
    file: LocalPath | None = key(
        FILE,
        "File that gets a line for each record, at its end; made when it is not there. See "
        "[file-sink.md](../how-to/file-sink.md).",
        default_text="standard output",
    )
    stdout: str
    host: str

    @property
    def address(self) -> str:
        """Where lines go."""
        return "standard output" if self.file is None else f"file {self.file}"

    @property
    def needs(self) -> "RecordParts":
        """Keys and headers are not looked at."""
        from parquet_sink.model.records import VALUES_ONLY  # loads Arrow, as the next ones

        return VALUES_ONLY

    def problems(self) -> Sequence[str]:
        """What stands in the way of opening the file, or standard output."""
        reason = _unusable(self.stdout, made=False) if self.file is None else _unusable(self.file, made=True)
        return () if reason is None else (f"Invalid [{FILE}]. {self._what(reason)}",)

    def _what(self, reason: str) -> str:
        if self.file is not None:
            return f"{quoted(self.file)} {reason}; name a file that this user can append to."
        return f"It is missing, and standard output {reason}; name a file."

    def probe(self, seconds_left: float) -> ProbeResult:
        """Opens the file to append, or tries its folder where it is not there; nothing is written."""
        from parquet_sink.files.storage import free_space

        if problems := self.problems():
            return ProbeResult(Health.FAILED, problems[0])
        if self.file is None:
            return ProbeResult(Health.OK, f"{self.address} can be written")
        folder = os.path.dirname(self.file)
        there = "can be appended to" if os.path.exists(self.file) else "can be made"
        return ProbeResult(Health.OK, f"{self.file} {there}, {free_space(folder)}")

    def open(self) -> "FileSink":
        """Raises RetryLater, StorageFailed; RecordSinkFailed on another machine than the program's."""
        from parquet_sink.addons.file_sink.appender import Appender, FileSink

        if self.file is not None:
            return FileSink(Appender(self.file))
        if (here := socket.gethostname()) != self.host:
            raise RecordSinkFailed(
                f"Standard output is that of {self.host}, and tasks of this cluster run on {here}, too. Name a file "
                "that all machines share, or run it with --master local."
            )
        return FileSink(Appender(self.stdout, noted=False))


def _unusable(path: str, *, made: bool) -> str | None:
    """Why lines cannot be appended there, in words that follow its name. made: whether it may be made, if need be."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return _unusable_folder(os.path.dirname(path)) if made else "is closed"
    except OSError as error:
        return f"cannot be looked at: {os.strerror(error.errno or 0)}"
    if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode):
        return "is a folder" if stat.S_ISDIR(mode) else "is a socket, which Spark's processes cannot open"
    if not os.access(path, os.W_OK):
        return "may not be written by this user"
    return _unusable_folder(os.path.dirname(path)) if made and stat.S_ISREG(mode) else None


def _unusable_folder(folder: str) -> str | None:
    """A note is kept beside the file, so that its folder must be writable, too."""
    if not os.path.isdir(folder):
        return f"has no folder to be in: {folder} is not there"
    return None if os.access(folder, os.W_OK | os.X_OK) else "is in a folder that this user may not write to"
