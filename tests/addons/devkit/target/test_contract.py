"""The push API's contract: parameters in, answers out."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.devkit.target.contract import BadUpload, StoredFile, UploadParameters, answer, parse_parameters


def test_all_parameters_are_read() -> None:
    """Every parameter of the contract reaches its field; keys are split at commas and stripped."""
    query = {
        "targetName": "orders+lines",
        "connectionId": "c-1",
        "clientId": "Kafka2Ems 1",
        "fallbackVarcharLength": "65000",
        "primaryKeys": "id, region,,id",
        "duplicateRemovalOrderColumn": "__celonis_order",
    }
    expected = UploadParameters("p", "orders+lines", "c-1", "Kafka2Ems 1", 65_000, ("id", "region"), "__celonis_order")
    assert parse_parameters("p", query) == expected


def test_order_column_counts_only_with_keys() -> None:
    """Without primary keys there is nothing to remove, so the order column is ignored."""
    assert parse_parameters("p", {"targetName": "t", "duplicateRemovalOrderColumn": "o"}).order_column is None


def test_all_problems_are_told_at_once() -> None:
    """A missing target and a bad length are both in the answer, in the push API's form."""
    with pytest.raises(BadUpload) as caught:
        parse_parameters("p", {"targetName": " ", "fallbackVarcharLength": "0"})
    errors = caught.value.as_json()["errors"]
    assert [error["attribute"] for error in errors] == ["targetName", "fallbackVarcharLength"]
    assert errors[0]["errorCode"] == "missing"


@pytest.mark.parametrize("length", ["0", "65001", "-2", "1.5", "x", "²", "9" * 5_000])
def test_bad_varchar_lengths_are_refused(length: str) -> None:
    """Only integers from 1 to 65000 are lengths."""
    with pytest.raises(BadUpload):
        parse_parameters("p", {"targetName": "t", "fallbackVarcharLength": length})


@pytest.mark.parametrize("target", ["a\0b", "a\nb", "x" * 1_025])
def test_unprintable_and_endless_targets_are_refused(target: str) -> None:
    """A table cannot be named by control characters or by a book."""
    with pytest.raises(BadUpload):
        parse_parameters("p", {"targetName": target})


@given(st.dictionaries(st.sampled_from(["targetName", "primaryKeys", "fallbackVarcharLength", "other"]), st.text()))
def test_any_query_is_read_or_refused(query: dict[str, str]) -> None:
    """No query raises anything but BadUpload."""
    with suppress(BadUpload):
        assert parse_parameters("p", query).target == query["targetName"]


def test_answer_has_every_field_of_the_contract() -> None:
    """The first four are texts, as the reference client demands."""
    parameters = UploadParameters("p", "t", client_id="c", fallback_varchar_length=7, primary_keys=("k",))
    file = StoredFile(1, "i", "f.parquet", parameters, 10, 2, "h", 1_000, 1_250, "waiting")
    told = answer(file, parameters)
    assert {k: told[k] for k in ("id", "fileName", "flushStatus", "clientId", "fallbackVarcharLength")} == {
        "id": "i",
        "fileName": "f.parquet",
        "flushStatus": "NEW",
        "clientId": "c",
        "fallbackVarcharLength": 7,
    }
    assert isinstance(told["bucketId"], str)
    assert told["upsertStrategy"] == "UPSERT_WITH_NULLIFICATION"
    assert file.as_json()["seconds_to_answer"] == 0.25
