"""Rows of a second instance of a connector: on the same machine, and elsewhere."""

from collections.abc import Mapping
from typing import Final

from integration.faults.act import Act
from integration.faults.rows import Row
from integration.faults.world import World
from integration.sink_process import SinkProcess

START_S: Final = 120.0


class SecondAct(Act):
    """The same file is run twice on one machine: the second start ends at once, the first one goes on."""

    own_sink = True

    def play(self) -> None:
        self.until_delivered()
        self._second = self.another({})
        status = self._second.run_to_end(START_S)
        self.must(status == 1, f"the second one ended with status {status}")
        for part in (f"Connector {self.name}", "already running", "(process "):
            self.must(part in self._second.last_words(), f"its last words: {self._second.last_words()}")
        self.topic.produce(300)
        self.until_delivered()
        self.saw("the second one ended with status 1 and named the first, which went on")

    def another(self, more: Mapping[str, str]) -> SinkProcess:
        """Another `parquet-sink run`, with the same connector file or a changed one."""
        folder = self.world.folder / f"{self.row.slug}-second"
        folder.mkdir()
        return SinkProcess([{**self.settings(), **more}], folder)

    def clean_up(self) -> None:
        self._second.end_all()


class ElsewhereAct(SecondAct):
    """Of two that share a group and no folder, the older stops and names the newer; all is delivered by that."""

    stops = True

    def play(self) -> None:
        self.until_delivered()
        group = {"consumer.override.group.id": f"connect-{self.name}"}
        folder = self.world.folder / f"{self.row.slug}-tmp"
        self._second = self.another({**group, "name": f"{self.name}-new", "connect.ems.tmp.dir": str(folder)})
        self._second.start()
        self.until_failed(f"Group connect-{self.name}", "committed by instance ", timeout_s=START_S)
        self.topic.produce(300)
        self.must(self.wait(self.delivered, START_S), f"the newer one did not deliver: {self.committed()}")
        status = self._second.terminate(START_S)
        self.must(status == 0, f"SIGTERM ended the newer one with status {status}")
        self.saw("the older one stopped and named the newer, which delivered the rest")


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [
        SecondAct(Row("instance", "a second one", "on the same machine"), world),
        ElsewhereAct(Row("instance", "a second one", "of the same group, elsewhere"), world),
    ]
