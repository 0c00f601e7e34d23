"""Rows of the schema registry: away when a schema is needed that is not known yet."""

import json
import socket
import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka.schema_registry.serde import SchemaId

from integration.faults.act import Act
from integration.faults.rows import Row
from integration.faults.world import Topic, World
from integration.registry import RegistryServer
from integration.scripted_target import Server, relay
from integration.wire import framed

AWAY_S: Final = 20.0
FIELDS: Final = {
    "id": {"type": "integer"},
    "key": {"type": "string"},
    "amount": {"type": "number"},
    "payload": {"type": "string"},
    "place": {"type": "object", "properties": {"street": {"type": "string"}}},
    "note": {"type": "string"},
    "crc": {"type": "integer"},
    **{f"since_{bits}": {"type": "integer"} for bits in range(17)},
}


class Line(Server):
    """The network between the sink and the registry; `cut` ends what goes over it, too."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._upstream = port
        self._open: list[socket.socket] = []

    def handle(self, accepted: socket.socket) -> None:
        self._open.append(accepted)
        accepted.settimeout(600)
        relay(accepted, ("127.0.0.1", self._upstream), b"")

    def cut(self) -> None:
        self.down()
        for one in self._open:
            one.close()


class RegistryAct(Act):
    """It is waited for: no record is called invalid, and all go on when it is back."""

    own_sink = True

    def prepare(self) -> None:
        self._registry = RegistryServer()
        self._registry.__enter__()
        self._line = Line(int(self._registry.url.rpartition(":")[2]))
        self._line.__enter__()

    def make_topic(self) -> Topic:
        made = Topic(self.world.broker, self.name)
        self._schema(made, "first")
        made.produce(300)
        return made

    def _schema(self, topic: Topic, title: str) -> None:
        """Records from here on name a schema that was never asked for."""
        text = json.dumps({"title": title, "type": "object", "properties": FIELDS})
        number = self._registry.register(f"{topic.name}-value", text, "JSON")
        topic.encode = lambda value: framed(value, SchemaId("JSON", number))

    def keys(self) -> Mapping[str, str]:
        return {
            "value.converter": "io.confluent.connect.json.JsonSchemaConverter",
            "value.converter.schema.registry.url": f"http://127.0.0.1:{self._line.port}",
        }

    def play(self) -> None:
        self.until_delivered()
        self._line.cut()
        self._schema(self.topic, "second")
        self.topic.produce(300)
        time.sleep(AWAY_S)
        self.must(self.committed() == {0: 300}, f"offsets were committed: {self.committed()}")
        self.must(self.failed() is None, f"it stopped within {AWAY_S:.0f} s: {self.failed()}")
        self._line.up()
        back = time.monotonic()
        self.until_delivered()
        self.saw(f"waited for; all delivered {time.monotonic() - back:.0f} s after it was back")

    def clean_up(self) -> None:
        self._line.__exit__(None, None, None)
        self._registry.__exit__(None, None, None)


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [RegistryAct(Row("registry", f"away for {AWAY_S:.0f} s", "a schema that is not known yet"), world)]
