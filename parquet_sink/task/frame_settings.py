"""Settings and outcome of a DataFrame's Spark task: rows without offsets that are decoded already."""

from dataclasses import dataclass, replace

from parquet_sink.config.key import ems
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.model.frames import FrameSlice
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.settings.sink import SinkSettings

_NEWER = (
    "Of a DataFrame's rows with the same key no offset says which is the newest; name a column that does, for example "
    "one made by withColumn('changed', current_timestamp())."
)
_TRANSFORMS = (
    "Rows of a DataFrame are no records of Kafka, so they have no key, headers or topic to transform; remove it, and "
    "transform rows in the program."
)
_TOMBSTONES = (
    "Rows of a DataFrame have no keys, and none of them is a tombstone; remove it, and let a column of the "
    "DataFrame say what is deleted."
)


@dataclass(frozen=True)
class FrameOutcome:
    """What became of one task's rows: receipts of its files in their order, and why not all were accepted."""

    frame: FrameSlice
    receipts: tuple[Receipt, ...]
    failure: Failure | None


def for_frame(settings: SinkSettings) -> SinkSettings:
    """The settings without Kafka's metadata columns, which rows of a DataFrame do not have.

    Raises InvalidConfiguration when primary keys are named and no column that orders rows, when there are
    transforms, and when tombstones are to become rows.
    """
    if settings.transforms:
        raise InvalidConfiguration([f"Invalid [transforms]. {_TRANSFORMS}"])
    shape = settings.shape
    if shape.tombstone_column is not None:
        raise InvalidConfiguration([f"Invalid [{ems('tombstones')}]. {_TOMBSTONES}"])
    if shape.primary_keys and shape.order_field is None:
        raise InvalidConfiguration([f"Invalid [{ems('order.field.name')}]. {_NEWER}"])
    return replace(settings, shape=replace(shape, embed_metadata=False))
