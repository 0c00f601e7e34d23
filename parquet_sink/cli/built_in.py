"""The commands of parquet-sink as the registry has them: a line of help each, and where the rest is."""

import argparse
from importlib import import_module
from typing import Any, ClassVar


class _BuiltIn:
    """A command whose module has `add_arguments` and `run`. It is named and not imported, so that `--help` is quick."""

    help: ClassVar[str]
    module: ClassVar[str]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self._loaded().add_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        return int(self._loaded().run(args))

    def _loaded(self) -> Any:
        return import_module(self.module)


class Run(_BuiltIn):
    """`parquet-sink run`."""

    help = "run connectors: Kafka Connect's standalone form"
    module = "parquet_sink.cli.run"


class Worker(_BuiltIn):
    """`parquet-sink worker`."""

    help = "run connectors that come and go by REST: Kafka Connect's worker"
    module = "parquet_sink.cli.worker"


class Connectors(_BuiltIn):
    """`parquet-sink connectors`."""

    help = "a worker's connectors over its REST API: list, create, change, pause, restart, offsets"
    module = "parquet_sink.cli.connectors.command"


class Status(_BuiltIn):
    """`parquet-sink status`."""

    help = "how a worker's connectors stand: lag, age, last upload, error"
    module = "parquet_sink.cli.status"


class Check(_BuiltIn):
    """`parquet-sink check`."""

    help = "validate connector files; with --connect try broker and target"
    module = "parquet_sink.cli.check"


class Try(_BuiltIn):
    """`parquet-sink try`."""

    help = "show what becomes of one record, step by step; nothing is sent"
    module = "parquet_sink.cli.try_record"


class Parked(_BuiltIn):
    """`parquet-sink parked`."""

    help = "what connectors passed over: list, show, send again, drop"
    module = "parquet_sink.cli.parked.command"


class History(_BuiltIn):
    """`parquet-sink history`."""

    help = "what connectors sent, when, and where a record is"
    module = "parquet_sink.cli.history"


class Archive(_BuiltIn):
    """`parquet-sink archive`."""

    help = "what the archive of a connector has, and whether that is what was sent"
    module = "parquet_sink.cli.archive"


class Replay(_BuiltIn):
    """`parquet-sink replay`."""

    help = "send again what was delivered, or elsewhere, compared with the first time"
    module = "parquet_sink.cli.replay.command"


class Reshape(_BuiltIn):
    """`parquet-sink reshape`."""

    help = "make rows of raw files, as a shaped connector would have"
    module = "parquet_sink.addons.reshape.command.command"


class Tune(_BuiltIn):
    """`parquet-sink tune`."""

    help = "which thresholds give what matters, from what the topics really get"
    module = "parquet_sink.addons.tune.command.command"


class Demo(_BuiltIn):
    """`parquet-sink demo`."""

    help = "see the whole job on this machine, with proof"
    module = "parquet_sink.addons.devkit.demo.command"


class Target(_BuiltIn):
    """`parquet-sink target`."""

    help = "the reference push target: stores, upserts, injects faults"
    module = "parquet_sink.addons.devkit.target.command"


class Kafka(_BuiltIn):
    """`parquet-sink kafka`."""

    help = "a local Kafka broker, for trying things out"
    module = "parquet_sink.addons.devkit.kafka_command"
