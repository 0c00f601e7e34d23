"""The folder that takes the files."""

from parquet_sink.config.declared import declared, filled_by
from parquet_sink.config.key import ems
from parquet_sink.targets.directory.address import folder_of


@declared(group="The target", optional=True)
class DirectorySettings:
    """folder: absolute, and there already. target_table: names the folder within it that the files are in."""

    folder: str = filled_by(
        ems("endpoint"), computed=lambda values, machine: folder_of(values.text(ems("endpoint")) or "")
    )
    target_table: str = filled_by(ems("target.table"), missing="give the name of the table that the target fills.")
