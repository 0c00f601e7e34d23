"""A source of one's own: new rows of a table of SQLite become records of a topic."""

import sqlite3

from parquet_sink import api
from parquet_sink.api import Key, Origin, SourceRecord, Type

ROWS = "SELECT id, item FROM orders WHERE id > ? ORDER BY id LIMIT 1000"


def key(name, doc):
    """A key that must be there."""
    return Key(name, "The shop", Type.STRING, doc, required=True, missing="name it.", origin=Origin.PLUGIN)


class ShopSource:
    """The connector class: keys, and what they come to."""

    kind = "source"
    keys = (
        *api.SOURCE_CONNECTOR_KEYS,
        key("shop.database", "File of the database."),
        key("shop.topic", "The topic."),
        *api.SOURCE_KEYS,
    )
    prefixes = ("shop.",)
    check = staticmethod(api.check_source)

    def settings(self, values, worker):
        database, topic = worker.machine.absolute(values.text("shop.database")), values.text("shop.topic")
        told = {"database": database, "topic": topic}
        return api.source_settings(
            values, worker, task="shop_source:Orders", tasks=[told], origin=f"database {database}", topics=[topic]
        )


class Orders:
    """The task: it lives for one micro-batch, and goes on behind the last row that is in Kafka."""

    def start(self, settings, reached):
        self._topic, self._place = settings["topic"], {"database": settings["database"]}
        self._last = (reached.offset(self._place) or {"id": 0})["id"]
        self._database = sqlite3.connect(settings["database"])

    def poll(self):
        rows = self._database.execute(ROWS, (self._last,)).fetchall()
        self._last = rows[-1][0] if rows else self._last
        return [self._record(number, item) for number, item in rows]

    def _record(self, number, item):
        value, place = {"id": number, "item": item}, {"id": number}
        return SourceRecord(self._topic, value, source_partition=self._place, source_offset=place)

    def stop(self):
        self._database.close()
