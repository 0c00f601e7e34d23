"""A command of one's own: rows and files in a folder that a connector writes to."""

from pathlib import Path


class Report:
    """`parquet-sink report FOLDER`."""

    help = "count rows and files below a folder"

    def add_arguments(self, parser):
        parser.add_argument("folder", type=Path, help="where a connector with `directory:` puts its files")
        parser.add_argument("--suffix", default=".parquet", help="of the files that count (default: %(default)s)")

    def run(self, args):
        from pyarrow.parquet import read_metadata  # here, and not above: `parquet-sink --help` loads this module, too

        files = sorted(args.folder.rglob(f"*{args.suffix}"))
        print(f"{len(files)} files, {sum(read_metadata(file).num_rows for file in files)} rows")
        return 0 if files else 1
