"""A sink of one's own: records become rows of an SQLite database, each once, however often it comes."""

import json
import os
import sqlite3

from parquet_sink.config.declared import LocalPath, declared, key, keys_of, made
from parquet_sink.connectors import record_sinks
from parquet_sink.errors import RetryLater
from parquet_sink.model.records import RecordParts
from parquet_sink.targets.outcome import Health, ProbeResult

TABLE = "CREATE TABLE IF NOT EXISTS records (topic, part, at, key, value, PRIMARY KEY (topic, part, at))"


@declared(group="The shop", prefix="shop.")
class Shop:
    """Keys, and the settings that they fill: where records go. Handed to Spark's processes by value."""

    address: LocalPath = key("database", "File of the database.", missing="name the file.")
    needs = RecordParts(keys=True)

    def problems(self):
        folder = os.path.dirname(self.address)
        return () if os.path.isdir(folder) else (f"Invalid [shop.database]. There is no folder {folder}; make it.",)

    def probe(self, seconds_left):
        return ProbeResult(Health.FAILED if self.problems() else Health.OK, "its folder was looked for")

    def open(self):
        return Rows(sqlite3.connect(self.address, timeout=2))


class ShopSink:
    """The connector class: all keys of a file, and what they come to."""

    keys = (*record_sinks.RECORD_SINK_KEYS, *keys_of(Shop))
    prefixes = ("shop.",)
    check = staticmethod(record_sinks.check)

    def settings(self, values, worker):
        return record_sinks.settings(values, worker, made(Shop, values, worker.machine))


class Rows:
    """The sink of one range."""

    def __init__(self, database):
        self._database = database

    def put(self, records):
        rows = [(one.topic, one.partition, one.offset, one.key, json.dumps(one.value)) for one in records]
        try:
            self._database.execute(TABLE)
            self._database.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)", rows)
        except sqlite3.OperationalError as error:
            raise RetryLater(f"The database does not take rows: {error}.") from error

    def flush(self):
        self._database.commit()

    def close(self):
        self._database.close()
