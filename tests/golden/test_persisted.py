"""What outlives a process is written as it was: digests, offsets, state, history, dead letters, names of plug-ins."""

import json
from collections.abc import Mapping

import pytest

from tests.golden import persisted
from tests.golden.persisted import BUCKET, FULL, PLAIN, RECORDS, fingerprint

KEPT = json.loads(persisted.FILE.read_text(encoding="utf-8"))
FOUND = json.loads(persisted.written(persisted.persisted()))


@pytest.mark.parametrize("name", KEPT)
def test_it_is_what_it_was(name: str) -> None:
    """After a change on purpose, which must say what becomes of what there is already: python -m tests.golden."""
    assert FOUND.get(name) == KEPT[name]


def test_nothing_is_left_out() -> None:
    """The file has all that is looked at."""
    assert list(FOUND) == list(KEPT)


@pytest.mark.parametrize(
    ("connector", "change"),
    [
        (PLAIN, {"connect.ems.commit.records": "100001"}),
        (PLAIN, {"connect.ems.embed.kafka.metadata": "false"}),
        (FULL, {"connect.ems.obfuscation.hmac.key": "1123456789abcdef0123456789abcdef"}),
        (FULL, {"transforms.cast.spec": "amount:float32"}),
        (FULL, {"transforms.cast.negate": "false"}),
        (FULL, {"connect.ems.parquet.compression.codec": "GZIP"}),
        (FULL, {"value.converter.enhanced.avro.schema.support": "true"}),
        (FULL, {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}),
        (BUCKET, {"connect.ems.data.primary.key": "id"}),
        (RECORDS, {"value.converter": "org.apache.kafka.connect.converters.LongConverter"}),
    ],
)
def test_a_setting_that_files_depend_on_changes_the_digest(
    connector: Mapping[str, str], change: Mapping[str, str]
) -> None:
    """Another value of one key is another digest."""
    assert fingerprint({**connector, **change}) != fingerprint(connector)


@pytest.mark.parametrize(
    ("connector", "change"),
    [
        (PLAIN, {"name": "other"}),
        (PLAIN, {"connect.ems.endpoint": "https://team.realm.celonis.cloud/other"}),
        (FULL, {"value.converter.basic.auth.user.info": "user:another"}),
        (FULL, {"connect.ems.commit.interval.ms": "1000"}),
        (BUCKET, {"connect.ems.s3.bucket": "others"}),
        (RECORDS, {"file": "/tmp/others"}),
    ],
)
def test_another_setting_leaves_the_digest(connector: Mapping[str, str], change: Mapping[str, str]) -> None:
    """Where files go, who signs in, and when ranges are due does not cut ranges in flight anew."""
    assert fingerprint({**connector, **change}) == fingerprint(connector)
