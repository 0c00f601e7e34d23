"""A sink of one's own: records become rows of an SQLite database, each once, however often it comes."""

import json
import os
import sqlite3

from parquet_sink import api
from parquet_sink.api import Health, LocalPath, ProbeResult, RecordParts, RetryLater, declared, key

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

    keys = (*api.RECORD_SINK_KEYS, *api.keys_of(Shop))
    prefixes = ("shop.",)
    check = staticmethod(api.check_record_sink)

    def settings(self, values, worker):
        return api.record_sink_settings(values, worker, api.made(Shop, values, worker.machine))


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
