"""What outlives a process, as it is written today: what `persisted.json` holds.

Digests of settings are told by the connector files that they come from, of a version that no release has.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tomllib import loads
from typing import Any, Final
from unittest import mock

from parquet_sink import plugins
from parquet_sink.addons.replay import journal
from parquet_sink.addons.replay.plan import ReplayRange, range_to_dict
from parquet_sink.addons.reshape.marks import FOLDER, Mark
from parquet_sink.addons.sources import memory, topic_memory
from parquet_sink.addons.sources.offsets import connect_form
from parquet_sink.addons.sources.offsets import file as offsets_file
from parquet_sink.connectors.loading import load
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.errors import InvalidRecord
from parquet_sink.files import durable_state, naming
from parquet_sink.history import records as history_records
from parquet_sink.history import sqlite as history_file
from parquet_sink.history.sqlite import file_row
from parquet_sink.kafka.dead_letters import HeaderWriter
from parquet_sink.kafka.group.committed import RangePlan, commit_metadata
from parquet_sink.model import events
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.instance import Instance
from parquet_sink.model.ranges import Accepted, Again, Attempt, LearnedSchema, PartitionProgress, PlannedRange, Tries
from parquet_sink.model.receipts import Archiving
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage, stage_name
from parquet_sink.parked import files as parked
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.state import store
from parquet_sink.state.database import LEARNED_TABLES, RUN_TABLES
from parquet_sink.state.sqlite import FAILURE
from parquet_sink.targets.s3 import objects
from parquet_sink.targets.s3 import target as s3_target
from parquet_sink.task.record_steps import classes_of
from parquet_sink.transform.classes import class_name
from parquet_sink.worker.herder import store as connector_store
from parquet_sink.worker_config.worker import Worker
from tests.connectors.ems.connector_files import MACHINE

FILE: Final = Path(__file__).with_name("persisted.json")
ROOT: Final = Path(__file__).parents[2]
VERSION: Final = "0.0.0.golden"

PLAIN: Final = {
    "name": "plain",
    "topics": "orders",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "connect.ems.endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/POOL/items",
    "connect.ems.authorization.key": "AppKey k",
    "connect.ems.target.table": "ORDERS",
    "connect.ems.commit.size.bytes": "10000000",
    "connect.ems.commit.records": "100000",
    "connect.ems.commit.interval.ms": "30000",
}
FULL: Final = {
    **{name: text for name, text in PLAIN.items() if name != "value.converter.schemas.enable"},
    "name": "full",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "https://registry.example.com",
    "value.converter.basic.auth.credentials.source": "USER_INFO",
    "value.converter.basic.auth.user.info": "user:password",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    "connect.ems.data.primary.key": "id,part",
    "connect.ems.tombstones": "skip",
    "connect.ems.obfuscation.fields": "customer.name",
    "connect.ems.obfuscation.method": "hmac-sha256",
    "connect.ems.obfuscation.hmac.key": "0123456789abcdef0123456789abcdef",
    "connect.ems.convert.decimals.to.double": "true",
    "connect.ems.parquet.compression.codec": "ZSTD",
    "connect.ems.parquet.row.group.size.bytes": "1000000",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "letters",
    "transforms": "cast,key",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "amount:float64",
    "transforms.cast.predicate": "tomb",
    "transforms.cast.negate": "true",
    "transforms.key.type": "KeyToValue",
    "predicates": "tomb",
    "predicates.tomb.type": "RecordIsTombstone",
}
BUCKET: Final = {
    **{name: text for name, text in PLAIN.items() if not name.endswith(("endpoint", "key", "table"))},
    "name": "bucket",
    "connector.class": "parquet_sink.S3Sink",
    "connect.ems.s3.bucket": "records",
    "connect.ems.s3.region": "eu-central-1",
}
RECORDS: Final = {
    "name": "records",
    "connector.class": "FileStreamSinkConnector",
    "topics": "orders",
    "file": "/tmp/records",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
CONNECTORS: Final = {"plain": PLAIN, "full": FULL, "bucket": BUCKET, "records": RECORDS}

_AGAIN: Final = Again(Tries(3, 1.5, log=(Attempt(1_000, 0.25, "retriable", 503, "busy"),)), 2.0, (5, 9))
_PLANNED: Final = PlannedRange("orders", 1, 5, 9, "records", 5, topic_id="T", known=LearnedSchema(b"s", 12.5, 13.5))
_UPLOAD: Final = history_records.UploadRecord(
    *("f.parquet", "ORDERS", "orders", 1, 5, 8, 4, 4, 900, "ab", "records", 7),
    history_records.UploadOutcome.ACCEPTED,
    1_000,
    tried=(Attempt(1_000, 0.25, "accepted", 200),),
    archive=Archiving("s3://b/p", 9, None),
)


def persisted() -> dict[str, Any]:
    """By what it is, as JSON has it."""
    return {
        "digests of settings": {name: fingerprint(one) for name, one in CONNECTORS.items()},
        "what is learned of a topic": _learned(),
        "names of stages": {stage.name: [str(stage), stage_name(stage)] for stage in Stage},
        "classes in dead letters": {name: _classes(name) for name in ("plain", "full", "records")},
        "classes of transforms": {name: class_name(name) for name in plugins.BUILT_IN[plugins.TRANSFORMS]},
        "a dead letter's headers": _letter(),
        **_offsets(),
        **_files(),
        **_state(),
        **_history(),
        "events": {name: list(one.__dataclass_fields__) for name, one in events.TYPES.items()},
        **_plugins(),
    }


def fingerprint(connector: Mapping[str, str]) -> str:
    """The digest of a connector file."""
    module = "parquet_sink.settings.{}.__version__"
    with mock.patch(module.format("sink"), VERSION), mock.patch(module.format("record_sink"), VERSION):
        return settings(connector).fingerprint


def settings(connector: Mapping[str, str]) -> SinkSettings | RecordSinkSettings:
    """What a connector file comes to, which must be right."""
    loaded = load(connector, Worker(machine=MACHINE), source="golden")
    assert loaded.problems + loaded.warnings == ()
    assert isinstance(loaded.settings, SinkSettings | RecordSinkSettings)
    return loaded.settings


def _learned() -> dict[str, Any]:
    shaper = RowBuilder(ShapeSettings(primary_keys=("id",), chunks=None), decoder=json_decoder.decoder())
    values = [b'{"id":%d,"name":"n","when":{"at":1.5},"list":[1]}' % number for number in range(3)]
    list(shaper.shape(RecordBatch.of("orders", 0, range(3), [0] * 3, values)))
    assert shaper.known is not None
    metadata = shaper.known.metadata or {}
    shown = {key.decode(): value.decode() for key, value in metadata.items()}
    return {"metadata": shown, "columns": str(shaper.known.remove_metadata()).splitlines()}


def _classes(name: str) -> dict[str, str]:
    return {stage.name: class_ for stage, class_ in classes_of(settings(CONNECTORS[name])).items()}


def _letter() -> dict[str, str]:
    rejected = Rejected("orders", 1, 5, Stage.SHAPE, "It is wrong.", b"k", b"v", (("own", b"h"),), 7, by="a.Transform")
    found = HeaderWriter("plain", context=True).headers(rejected)
    unread = HeaderWriter("plain", context=False).headers(Rejected("orders", 1, 5, Stage.SHAPE, "It is wrong."))
    return {name: (value or b"").decode() for name, value in [*found, *unread]}


def _offsets() -> dict[str, Any]:
    instance = Instance("0123456789ab", "host", 7, "2026-01-01T00:00:00Z")
    place = {"filename": "/a"}
    connectors = {"source": {connect_form.text_of(place): {"position": 5}}}
    return {
        "metadata of group offsets": commit_metadata(instance, RangePlan(5, 9, "records"), "T"),
        "metadata of group offsets without a range": commit_metadata(instance),
        "positions of sources": offsets_file._dumped(connectors).decode(),
        "positions of sources in a topic": [
            connect_form.key("source", connect_form.text_of(place)).decode(),
            (connect_form.value({"position": 5}) or b"").decode(),
        ],
        "memory of sources": memory.FILE,
        "memory of sources in a topic": connect_form.key(" source", topic_memory.PARTITION).decode(),
    }


def _files() -> dict[str, Any]:
    frame = FrameSlice("0123456789abcdef0123456789abcdef", 3, 4)
    mark = Mark("settings", "a_b", 1, 5, 9, "0123456789abcdef")
    return {
        "names of files": [
            naming.file_name("a/b", 1, 5, 9, 900, 5),
            naming.frame_file_name("plain", frame, 5, 9, 900, 5),
            naming.kept_name(9),
            *(naming.MARKER_FILE, naming.LOCK_FILE, naming.STATE_FILE, naming.HISTORY_FILE, naming.INPUT_FILE),
            *durable_state.OWN_FOLDERS,
            naming.claim_file("/tmp", "plain", "a/b", 1),
            naming.partition_folder("/tmp", ".plain", "a/b", 1),
        ],
        "marks of reshape": [FOLDER, mark.name],
        "parked records": str(parked.SCHEMA).splitlines(),
        "parked files say": {key.decode(): text.decode() for key, text in parked.metadata_of("orders", 1).items()},
        "objects in S3 say": [objects.DIGEST, *s3_target._metadata(mock.Mock(topic="a/b"))],
        "connectors made by REST": json.loads(connector_store._text(3, {})),
        "a replay that was stopped": {
            "files": [journal.PLAN, journal.PROGRESS, journal.FILES, journal.LOCK],
            "format": journal.FORMAT,
            "order": journal._without_plan(journal.Order(mock.Mock(), 2, None, "r", "v")),
            "range": range_to_dict(ReplayRange(_PLANNED, ((5, 8),))),
            "progress": journal.Progress(2, {("orders", 1): journal.Position(1, 2, 3)}, {}, 1, 2, 3).to_dict(),
        },
    }


def _state() -> dict[str, Any]:
    fields = {name: [one.name, one.default] for name, one in vars(store).items() if isinstance(one, store.Field)}
    return {
        "tables of the state": {**RUN_TABLES, **LEARNED_TABLES},
        "fields of the state": {**fields, "FAILURE": [FAILURE, None]},
        "progress in the state": asdict(PartitionProgress("orders", 1, 5, 9, 7)),
        "acceptance in the state": asdict(Accepted("orders", 1, 5, 5, 9, "records", _AGAIN)),
        "a failure": json.loads(replace(InvalidRecord("orders", 1, 5, "").failure(), message="wrong").to_json()),
    }


def _history() -> dict[str, Any]:
    known = history_records.known_to_dict(_PLANNED.known)
    return {
        "tables of the history": {**history_file.TABLES, "archived": history_file._ARCHIVED_COLUMNS},
        "version of the history": history_file.VERSION,
        "an upload in the history": list(file_row(_UPLOAD)),
        "an upload as JSON": _UPLOAD.to_dict(),
        "what was known, in the history": known,
        "outcomes and origins": [*history_records.UploadOutcome, *history_records.Origin],
    }


def _plugins() -> dict[str, Any]:
    declared = loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    return {
        "names of plug-ins": {group: sorted(names) for group, names in plugins.BUILT_IN.items()},
        "entry points of this package": {group: sorted(names) for group, names in declared.items()},
    }


def written(found: Mapping[str, Any]) -> str:
    """As JSON."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"
