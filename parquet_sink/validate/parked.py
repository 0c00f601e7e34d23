"""What is known of parked records before a connector starts: whether they can be kept, and whether there are some."""

from parquet_sink.files import folders
from parquet_sink.kafka.settings import NAME_KEY
from parquet_sink.parked.names import any_parked
from parquet_sink.parked.settings import DIR, MAX_BYTES
from parquet_sink.settings.sink import SinkSettings


def parked(settings: SinkSettings, system_tmp: str, problems: dict[str, None], warnings: list[str]) -> None:
    """Adds what is found. system_tmp: the system's temporary folder."""
    base = settings.parked.base
    if settings.errors.parks and base is not None:
        reason = folders.unusable(base, settings.name)
        if reason is not None:
            problems[f"Invalid [{DIR}]. {reason}"] = None
            return
    if settings.errors.parks and base is None and settings.files.tmp_dir == system_tmp:
        warnings.append(
            f"Warning [{DIR}]. It is missing, so records that are passed over are kept in the system's temporary "
            f"folder, {system_tmp}, which the system may empty; name a folder that stays."
        )
    if any_parked(settings.parked_folder):
        warnings.append(f"Warning [{DIR}]. {_waiting(settings)}")


def on_cluster(settings: SinkSettings) -> str | None:
    """A warning for a connector whose tasks run on other machines; None where there is nothing to say."""
    if not settings.errors.parks or settings.parked.base is not None:
        return None
    return (
        f"Warning [{DIR}]. It is missing, so connector {settings.name} parks records in {settings.parked_folder}, "
        f"which other machines of a Spark cluster do not have; there it stops at the first record to be parked. Name "
        f"a folder that all of them share, or a dead-letter topic ({NAME_KEY})."
    )


def _waiting(settings: SinkSettings) -> str:
    from parquet_sink.parked.scan import scan  # loads Arrow, where there is something to count

    found = scan(settings.parked_folder)
    share = 100 * found.size_bytes / max(settings.parked.max_bytes, 1)
    skipped = f", beside {len(found.skipped):,} files that are none of ours or torn" if found.skipped else ""
    one = found.rows == 1
    return (
        f"{found.rows:,} record{'' if one else 's'} that the connector passed over {'is' if one else 'are'} parked in "
        f"{settings.parked_folder}{skipped} ({share:.0f} % of {MAX_BYTES}): parquet-sink parked list says why; mend "
        f"the cause, then parquet-sink parked replay sends them; parquet-sink parked drop gives up what will never be "
        f"good."
    )
