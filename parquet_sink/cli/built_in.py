"""The commands of parquet-sink as the registry has them: a line of help each, and where the rest is."""

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass
class BuiltIn:
    """A command whose module has `add_arguments` and `run`. It is named and not imported, so that `--help` is quick."""

    module: str
    help: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self._loaded().add_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        return int(self._loaded().run(args))

    def _loaded(self) -> Any:
        return import_module(self.module)


Run = BuiltIn("parquet_sink.cli.run", "run connectors: Kafka Connect's standalone form")
Worker = BuiltIn("parquet_sink.cli.worker", "run connectors that come and go by REST: Kafka Connect's worker")
Workers = BuiltIn(
    "parquet_sink.addons.commands.workers", "the workers of a group: who leads, and what each has and why"
)
Connectors = BuiltIn(
    "parquet_sink.addons.commands.connectors.command",
    "a worker's connectors over its REST API: list, create, change, pause, restart, offsets",
)
Status = BuiltIn("parquet_sink.addons.commands.status", "how a worker's connectors stand: lag, age, last upload, error")
Check = BuiltIn("parquet_sink.cli.check", "validate connector files; with --connect try broker and target")
Explain = BuiltIn(
    "parquet_sink.addons.commands.explain", "what a key of connector and worker files means: type, default, limits"
)
Help = BuiltIn("parquet_sink.cli.help", "help on a command, or on one of its actions")
Try = BuiltIn(
    "parquet_sink.addons.commands.try_record", "show what becomes of one record, step by step; nothing is sent"
)
Test = BuiltIn(
    "parquet_sink.addons.cases.command", "compare what becomes of records with what is expected; nothing is sent"
)
Parked = BuiltIn("parquet_sink.addons.commands.parked.command", "parked records: list, show, send again, drop")
History = BuiltIn("parquet_sink.addons.commands.history", "what connectors sent, when, and where a record is")
Archive = BuiltIn(
    "parquet_sink.addons.commands.archive", "what the archive of a connector has, and whether that is what was sent"
)
Replay = BuiltIn(
    "parquet_sink.addons.replay.command.command",
    "send again what was delivered, or elsewhere, compared with the first time",
)
Reshape = BuiltIn(
    "parquet_sink.addons.reshape.command.command", "make rows of raw files, as a shaped connector would have"
)
Tune = BuiltIn(
    "parquet_sink.addons.tune.command.command", "which thresholds give what matters, from what the topics really get"
)
Demo = BuiltIn("parquet_sink.addons.devkit.demo.command", "see the whole job on this machine, with proof")
Target = BuiltIn(
    "parquet_sink.addons.devkit.target.command", "the reference push target: stores, upserts, injects faults"
)
Kafka = BuiltIn("parquet_sink.addons.devkit.kafka_command", "a local Kafka broker, for trying things out")
