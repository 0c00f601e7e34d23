"""Keys for what may pass: how often, and how long, it is tried again before a connector fails."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.config.values import Values
from parquet_sink.pipeline.settings import RestartSettings
from parquet_sink.targets.keys import ERRORS

MOST: Final = ems("restart.max")
PAUSE: Final = ems("restart.interval.ms")
LONGEST: Final = ems("restart.interval.max.ms")
AWAY: Final = ems("away.timeout.ms")

RESTART_KEYS: Final = (
    Key(
        MOST,
        ERRORS,
        Type.INT,
        "How often a connector that failed for a reason that may pass (a lost Spark worker, no answer from Kafka in "
        "the middle of a range) is started again without progress, before it fails; `-1` without end.",
        default=5,
        minimum=-1,
        origin=Origin.OWN,
    ),
    Key(
        PAUSE,
        ERRORS,
        Type.LONG,
        "The pause before the first such start, in milliseconds. The n-th without progress is n times as long, up to "
        "`connect.ems.restart.interval.max.ms`.",
        default=2_000,
        minimum=100,
        origin=Origin.OWN,
    ),
    Key(
        LONGEST,
        ERRORS,
        Type.LONG,
        "The longest such pause, also of those below `connect.ems.away.timeout.ms`, in milliseconds.",
        default=60_000,
        minimum=100,
        origin=Origin.OWN,
    ),
    Key(
        AWAY,
        ERRORS,
        Type.LONG,
        "How long brokers that do not answer, and in a worker a config provider that does not answer when a stored "
        "connector is to start, are waited for before the connector fails, in milliseconds; `-1` without end. At the "
        "start of `run` without `listeners` brokers are waited for as long as `default.api.timeout.ms` says, a minute "
        "by default.",
        default=-1,
        minimum=-1,
        origin=Origin.OWN,
    ),
)


def restart_settings(values: Values) -> RestartSettings:
    """Of values read by these keys."""
    default = RestartSettings()
    found = [values.number(name) for name in (MOST, PAUSE, LONGEST, AWAY)]
    most, pause, longest, away = found
    return RestartSettings(
        default.most if most is None else most,
        default.pause_ms if pause is None else pause,
        default.longest_ms if longest is None else longest,
        default.away_ms if away is None else away,
    )
