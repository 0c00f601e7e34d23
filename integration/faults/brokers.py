"""Rows of the broker, each with a broker of its own, under load: restarted, away, paused, alone in its cluster."""

import os
import signal
import time
from typing import Final

from integration.brokerless import Brokerless
from integration.faults.act import Act
from integration.faults.rows import Row
from integration.faults.world import Topic, World
from parquet_sink.addons.devkit.broker import Broker

AWAY_S: Final = 60.0
PAUSED_S: Final = 30.0
BROKERLESS_S: Final = 20.0
RATE: Final = 200.0


class BrokerAct(Act):
    """Nothing fails, nothing is lost or sent under another name: it only takes time."""

    own_sink = True

    def prepare(self) -> None:
        self._broker = Broker()
        self._broker.start()

    def make_topic(self) -> Topic:
        made = Topic(self._broker, self.name, 2)
        made.produce(300)
        return made

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers

    def play(self) -> None:
        self.until_delivered()
        self.topic.feed(RATE)
        time.sleep(5)
        self.fault()
        back = time.monotonic()
        time.sleep(5)
        self.topic.flush()
        self.until_delivered()
        self.saw(f"went on by itself; all delivered {time.monotonic() - back - 5:.0f} s after the load ended")

    def fault(self) -> None:
        """Brings it about, and ends it."""
        self._broker.stop()
        self._broker.start()

    def clean_up(self) -> None:
        self._broker.close()


class AwayAct(BrokerAct):
    """Killed, and back after a minute."""

    def fault(self) -> None:
        self._broker.kill()
        time.sleep(AWAY_S)
        self._broker.start()


class PausedAct(BrokerAct):
    """Its process stands still: connections stay, answers do not come."""

    def fault(self) -> None:
        os.kill(self._broker.pid, signal.SIGSTOP)
        time.sleep(PAUSED_S)
        os.kill(self._broker.pid, signal.SIGCONT)


class BrokerlessAct(BrokerAct):
    """It names no broker, as one does that joins its cluster again: Kafka's client then forgets all it knew."""

    def prepare(self) -> None:
        self._door = Brokerless()
        self._door.__enter__()
        self._broker = self._door.broker()
        self._broker.start()

    @property
    def bootstrap_servers(self) -> str:
        return self._door.address

    def fault(self) -> None:
        self._door.hidden.set()
        time.sleep(BROKERLESS_S)
        self._door.hidden.clear()
        self.saw(f"{self._door.hid} answers named no broker")

    def clean_up(self) -> None:
        super().clean_up()
        self._door.__exit__()


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [
        BrokerAct(Row("broker", "restarted", "under load"), world),
        AwayAct(Row("broker", f"away for {AWAY_S:.0f} s", "killed, under load"), world),
        PausedAct(Row("broker", f"paused for {PAUSED_S:.0f} s", "SIGSTOP, under load"), world),
        BrokerlessAct(Row("broker", f"names no broker for {BROKERLESS_S:.0f} s", "under load"), world),
    ]
