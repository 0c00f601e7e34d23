"""Keys that every kind of target has: where files go, and what happens when they are not taken."""

from typing import Final

from parquet_sink.config.checks import PRINTABLE
from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Check, Key, Origin, Type, Value, ems
from parquet_sink.config.quantity import Unit
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.plugins import BUILT_IN, TARGETS
from parquet_sink.targets import table_map
from parquet_sink.targets.push.settings import TARGET, PushSettings
from parquet_sink.targets.settings import ERRORS, RetrySettings
from parquet_sink.targets.target_class import PUSH, TYPE, built_in, of_endpoint


def _wrong_endpoint(value: Value) -> str | None:
    return of_endpoint(str(value)).wrong(str(value))


ADDRESS: Final = Check("a URL: https, or http to a loopback address; or `directory:` and a path", _wrong_endpoint)


def _wrong_map(value: Value) -> str | None:
    try:
        table_map.parse(str(value))
    except ValueError as error:
        return str(error)
    return None


TABLES: Final = Check("`pattern:table`, separated by commas", _wrong_map)

*_SIGNING, _CONNECTION, _LENGTH = keys_of(PushSettings, TARGET)

_BY_ADDRESS: Final = "directory"
"""Named by its addresses alone."""

TARGET_KEYS: Final = (
    Key(
        TYPE,
        TARGET,
        Type.STRING,
        "What takes the files: a push API (or, by its address, a folder), or a bucket of S3, see "
        "[s3.md](../how-to/s3.md).",
        default=PUSH,
        choices=tuple(name for name in BUILT_IN[TARGETS] if name != _BY_ADDRESS),
        origin=Origin.OWN,
    ),
    Key(
        ENDPOINT,
        TARGET,
        Type.STRING,
        "Full URL of the push API; nothing is appended to its path. Shape: "
        "`https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items`. Or "
        "`directory:/path/to/folder`: files are put into a folder that is there, see "
        "[directory.md](../how-to/directory.md).",
        default_text="required for a push API or a folder",
        check=ADDRESS,
    ),
    *_SIGNING,
    Key(
        ems("target.table"),
        TARGET,
        Type.STRING,
        "Table that the target fills; sent with every file. Of a folder, the name of the folder within it. For S3, "
        "what `{table}` stands for in `connect.ems.s3.prefix`.",
        default_text="required for a push API or a folder",
        check=PRINTABLE,
    ),
    Key(
        ems("target.table.map"),
        TARGET,
        Type.STRING,
        "Tables of topics, `pattern:table` separated by commas: `orders-(.*):ORDERS_$1,audit:AUDIT`. The first pattern "
        "(a regular expression) that is all of a topic's name decides, `$1` being what its first group found. Files of "
        "other topics go to `connect.ems.target.table`. Primary keys are the same for all tables.",
        check=TABLES,
        default_text="one table for all topics",
        origin=Origin.OWN,
    ),
    _CONNECTION,
    _LENGTH,
)

ERROR_KEYS: Final = (
    *keys_of(RetrySettings),
    Key(
        ems("stop.timeout.ms"),
        ERRORS,
        Type.LONG,
        unit=Unit.MILLISECONDS,
        doc="How long a stop waits for the flush in progress, in milliseconds; connectors of a process stop side "
        "by side. Then it is given up: what the target accepted is committed, and the rest is sent again at the next "
        "start, under the same names.",
        default=30_000,
        minimum=0,
        origin=Origin.OWN,
    ),
    Key(
        ems("error.policy.continue.on.invalid.input"),
        ERRORS,
        Type.BOOLEAN,
        "Divert records that have no row, and go on, as `errors.tolerance=all` does. Without either the connector "
        "stops and names the record.",
        default=False,
    ),
)

_TOLD: Final = frozenset(key.name for key in TARGET_KEYS)
OTHER_TARGET_KEYS: Final = tuple(key for one in built_in() for key in one.keys if key.name not in _TOLD)
"""Those that a class of targets adds."""
