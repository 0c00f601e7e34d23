"""Rows of clock steps: only the sink's processes see them, by a small library in LD_PRELOAD."""

import shutil
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from integration.faults.act import Act
from integration.faults.rows import NotRun, Row
from integration.faults.world import Topic, World

SOURCE: Final = Path(__file__).with_name("clock.c")
STEP_S: Final = 3_600
WITHIN_S: Final = 60.0
RATE: Final = 100.0


class StepAct(Act):
    """The time of day jumps under load: files go on being sent by age, none is lost or named anew."""

    own_sink = True

    def __init__(self, row: Row, world: World, seconds: int) -> None:
        super().__init__(row, world)
        self._seconds = seconds

    def prepare(self) -> None:
        self._folder = self.world.folder / self.row.slug
        self._folder.mkdir()
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise NotRun("no C compiler for the library that steps the clock of the sink alone")
        made = ["-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE), "-ldl", "-lpthread"]
        done = subprocess.run([compiler, *made], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotRun(f"the library that steps the clock could not be compiled: {done.stderr[-200:]}")
        self._step(0)

    @property
    def _library(self) -> Path:
        return self._folder / "clock.so"

    def _step(self, seconds: int) -> None:
        with (self._folder / "offset").open("r+b" if seconds else "wb") as file:
            file.write(struct.pack("=q", seconds * 1_000_000_000))

    def environment(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self._library), "CLOCK_STEP_FILE": str(self._folder / "offset")}

    def make_topic(self) -> Topic:
        made = Topic(self.world.broker, self.name, 2)
        made.produce(300)
        return made

    def play(self) -> None:
        self.until_delivered()
        self.topic.feed(RATE)
        time.sleep(5)
        self._step(self._seconds)
        time.sleep(10)
        self.topic.flush()
        ended = time.monotonic()
        self.until_delivered(WITHIN_S)
        said = self.program.lines()[-1][:13]
        expected = time.strftime("%Y-%m-%d %H", time.localtime(time.time() + self._seconds))
        self.must(said == expected, f"the log's clock was not stepped: {said}, not {expected}")
        self.saw(f"went on; all delivered {time.monotonic() - ended:.0f} s after the load ended")


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [
        StepAct(Row("clock", "an hour forward", "under load"), world, STEP_S),
        StepAct(Row("clock", "an hour back", "under load"), world, -STEP_S),
    ]
