"""What of a connector file cannot hold for a DataFrame is refused by its key."""

from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.task.frame_settings import for_frame
from tests.factories import settings
from tests.messages import saying


def test_rows_of_a_dataframe_have_no_tombstones(tmp_path: Path) -> None:
    """They have no keys either; a column of the DataFrame may say what is deleted."""
    shape = ShapeSettings(primary_keys=("id",), order_field="changed", tombstone_column="__deleted")
    with pytest.raises(InvalidConfiguration, match=saying("[connect.ems.tombstones]", "DataFrame")):
        for_frame(replace(settings(tmp_path), shape=shape))
    without = for_frame(replace(settings(tmp_path), shape=replace(shape, tombstone_column=None)))
    assert without.shape == ShapeSettings(primary_keys=("id",), order_field="changed", embed_metadata=False)
