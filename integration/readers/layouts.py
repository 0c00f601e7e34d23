"""A record with every type, and the Parquet schemas of its files, flattened and nested, word for word."""

import re
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from integration.readers.columns import fields
from integration.readers.samples import Row, Sample
from parquet_sink.rows.settings import ShapeSettings

_LEAVES: Final = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time32("ms"),
    "timestamp": pa.timestamp("ms", "UTC"),
    "decimal_9_5": pa.decimal128(9, 5),
    "decimal_38_10": pa.decimal128(38, 10),
    "decimal_76_0": pa.decimal256(76, 0),
}
_REQUIRED_LEAVES: Final = [pa.field(name, arrow, nullable=False) for name, arrow in _LEAVES.items()]
_REQUIRED_TEXT: Final = pa.field("item", pa.string(), nullable=False)
_RECORD: Final = pa.struct(
    [
        *(pa.field(name, arrow) for name, arrow in _LEAVES.items()),
        pa.field("null", pa.null()),
        pa.field("inner", pa.struct(_REQUIRED_LEAVES), nullable=False),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("list_required", pa.list_(_REQUIRED_TEXT), nullable=False),
        pa.field("lists", pa.list_(pa.list_(pa.float64()))),
        pa.field("structs", pa.list_(pa.struct([("x", pa.date32())]))),
        pa.field("map", pa.map_(pa.string(), pa.int64())),
        pa.field("map_required", pa.map_(pa.string(), _REQUIRED_TEXT.with_name("value")), nullable=False),
        pa.field("map_by_int", pa.map_(pa.int32(), pa.list_(pa.bool_()))),
        pa.field("map_of_maps", pa.map_(pa.string(), pa.map_(pa.string(), pa.struct([("y", pa.binary())])))),
    ]
)

FLATTENED: Final = """\
required group schema {
  optional int32 int32;
  optional int64 int64;
  optional float float32;
  optional double float64;
  optional boolean bool;
  optional binary string (String);
  optional binary bytes;
  optional int32 date (Date);
  optional int32 time (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 timestamp (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional fixed_len_byte_array(4) decimal_9_5 (Decimal(precision=9, scale=5));
  optional fixed_len_byte_array(16) decimal_38_10 (Decimal(precision=38, scale=10));
  optional fixed_len_byte_array(32) decimal_76_0 (Decimal(precision=76, scale=0));
  optional int32 inner_int32;
  optional int64 inner_int64;
  optional float inner_float32;
  optional double inner_float64;
  optional boolean inner_bool;
  optional binary inner_string (String);
  optional binary inner_bytes;
  optional int32 inner_date (Date);
  optional int32 inner_time (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 inner_timestamp (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional fixed_len_byte_array(4) inner_decimal_9_5 (Decimal(precision=9, scale=5));
  optional fixed_len_byte_array(16) inner_decimal_38_10 (Decimal(precision=38, scale=10));
  optional fixed_len_byte_array(32) inner_decimal_76_0 (Decimal(precision=76, scale=0));
  optional binary list (String);
  optional binary list_required (String);
  optional binary lists (String);
  optional binary structs (String);
  optional binary map (String);
  optional binary map_required (String);
  optional binary map_by_int (String);
  optional binary map_of_maps (String);
  required int32 kafkaPartition;
  required int64 kafkaOffset;
  required int64 kafkaTimestamp;
  required binary kafkaPartitionOffset (String);
}"""

NESTED: Final = """\
required group schema {
  optional int32 int32;
  optional int64 int64;
  optional float float32;
  optional double float64;
  optional boolean bool;
  optional binary string (String);
  optional binary bytes;
  optional int32 date (Date);
  optional int32 time (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional int64 timestamp (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional fixed_len_byte_array(4) decimal_9_5 (Decimal(precision=9, scale=5));
  optional fixed_len_byte_array(16) decimal_38_10 (Decimal(precision=38, scale=10));
  optional fixed_len_byte_array(32) decimal_76_0 (Decimal(precision=76, scale=0));
  required group inner {
    required int32 int32;
    required int64 int64;
    required float float32;
    required double float64;
    required boolean bool;
    required binary string (String);
    required binary bytes;
    required int32 date (Date);
    required int32 time (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
    required int64 timestamp (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
    required fixed_len_byte_array(4) decimal_9_5 (Decimal(precision=9, scale=5));
    required fixed_len_byte_array(16) decimal_38_10 (Decimal(precision=38, scale=10));
    required fixed_len_byte_array(32) decimal_76_0 (Decimal(precision=76, scale=0));
  }
  optional group list (List) {
    repeated group list {
      optional int32 element;
    }
  }
  required group list_required (List) {
    repeated group list {
      required binary element (String);
    }
  }
  optional group lists (List) {
    repeated group list {
      optional group element (List) {
        repeated group list {
          optional double element;
        }
      }
    }
  }
  optional group structs (List) {
    repeated group list {
      optional group element {
        optional int32 x (Date);
      }
    }
  }
  optional group map (Map) {
    repeated group key_value {
      required binary key (String);
      optional int64 value;
    }
  }
  required group map_required (Map) {
    repeated group key_value {
      required binary key (String);
      required binary value (String);
    }
  }
  optional group map_by_int (List) {
    repeated group list {
      required group element {
        required int32 key;
        optional group value (List) {
          repeated group list {
            optional boolean element;
          }
        }
      }
    }
  }
  optional group map_of_maps (Map) {
    repeated group key_value {
      required binary key (String);
      optional group value (Map) {
        repeated group key_value {
          required binary key (String);
          optional group value {
            optional binary y;
          }
        }
      }
    }
  }
  required int32 kafkaPartition;
  required int64 kafkaOffset;
  required int64 kafkaTimestamp;
  required binary kafkaPartitionOffset (String);
}"""


def everything(*, flatten: bool) -> Sample:
    """One record with every type, null wherever it may be."""
    inner = dict.fromkeys(_LEAVES, 0) | {"bool": False, "string": "", "bytes": b""}
    required = {"inner": inner, "list_required": [], "map_required": []}
    row: Row = {field.name: required.get(field.name) for field in fields(_RECORD)}
    return Sample(0, ShapeSettings(flatten=flatten), "snappy", None, _RECORD, [row], [0], [0])


def layout(path: str) -> str:
    """The Parquet schema of a file as text, without field ids and without how timestamps came to be what they are."""
    text = "\n".join(str(pq.ParquetFile(path).schema).strip().splitlines()[1:])
    return re.sub(r" field_id=-1|, is_from_converted_type=false|, force_set_converted_type=false", "", text)
