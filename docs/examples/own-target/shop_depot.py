"""A target and file store of one's own: whole files in an SQLite database, each once under its name."""

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from parquet_sink import api
from parquet_sink.api import Health, LocalFile, LocalPath, Outcome, Verdict, declared, filled_by, key

TABLE = "CREATE TABLE IF NOT EXISTS files (name PRIMARY KEY, digest, content)"


@dataclass(frozen=True)
class Depot:
    """A file store: what it is set up with, handed to other processes by value, and the store itself."""

    path: str
    key: str = "depot.path"
    name = address = property(lambda self: f"depot:{self.path}")

    def problems(self, environment):
        folder = Path(self.path).parent
        return () if folder.is_dir() else (f"Invalid [{self.key}]. There is no folder {folder}; make it.",)

    def open(self):
        return self

    def put(self, file, name, metadata, seconds_left):
        row = (name, sha256(content := Path(file.path).read_bytes()).hexdigest(), content)
        try:
            with self._database(seconds_left) as database:
                database.execute("INSERT OR IGNORE INTO files VALUES (?, ?, ?)", row)
        except api.StoreUnusable as error:
            return Outcome(Verdict.RETRIABLE, f"{self.name} takes no file ({error})", "Look at the disk")
        if self.digest(name) != row[1]:
            return Outcome(Verdict.REFUSED, f"{self.name} has another file {name}", f"Name another in {self.key}")
        return Outcome(Verdict.ACCEPTED, "stored")

    def probe(self, below, seconds_left):
        found = "".join(self.problems({}))
        return api.ProbeResult(Health.FAILED if found else Health.OK, found or "its folder was looked for")

    def files(self, prefix=""):
        with self._database() as database:
            found = database.execute("SELECT name, length(content) FROM files ORDER BY name").fetchall()
        yield from (api.StoredFile(*one) for one in found if one[0].startswith(prefix))

    def digest(self, name):
        return (self._row(name) or (None,))[0]

    def fetch(self, name, path):
        return (row := self._row(name)) is not None and Path(path).write_bytes(row[1]) >= 0

    def close(self):
        """Nothing is open between files."""

    def _row(self, name):
        with self._database() as database:
            return database.execute("SELECT digest, content FROM files WHERE name = ?", (name,)).fetchone()

    @contextmanager
    def _database(self, seconds=30):
        try:
            with closing(sqlite3.connect(self.path, timeout=seconds)) as database, database:
                database.execute(TABLE)
                yield database
        except sqlite3.Error as error:
            raise api.StoreUnusable(f"{error}. Look at {self.path}.") from error


@declared(group="The depot", prefix="depot.")
class DepotTarget:
    """Keys, the settings that they fill, and the target: files are below their tables."""

    path: LocalPath = key("path", "The database; its folder must be there.", missing="name the file.")
    target_table: str = filled_by("connect.ems.target.table", missing="name the table that the files fill.")
    store = property(lambda self: Depot(self.path))
    name = address = place = property(lambda self: self.store.name)
    problems = property(lambda self: self.store.problems)

    def open(self):
        return self

    def push(self, file, seconds_left):
        local = LocalFile(file.path, file.size_bytes, file.digest)
        return self.store.put(local, f"{file.table or self.target_table}/{file.name}", {}, seconds_left)

    def probe(self, seconds_left):
        return self.store.probe("", seconds_left)

    def close(self):
        """Nothing is open between files."""


class DepotClass(api.TargetClass):
    """What `connect.ems.target.type=depot`, and addresses `depot:/path`, name."""

    title, keys, settings_class = "a depot", api.keys_of(DepotTarget), DepotTarget

    def check(self, values, report):
        api.check(DepotTarget, values, report)

    def settings(self, values, machine):
        return api.made(DepotTarget, values, machine)

    def at(self, address, below=""):
        return {"connect.ems.target.type": "depot", "depot.path": address.removeprefix("depot:")}

    def store(self, address, values, machine, key=""):
        return Depot(address.removeprefix("depot:"), key or "depot.path")
