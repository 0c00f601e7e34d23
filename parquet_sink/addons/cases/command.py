"""`parquet-sink test`: what a connector file makes of records, compared with what is expected; no broker, no Spark."""

import argparse
import difflib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree as ET

from parquet_sink.addons.cases.records import Case, cases_of, read_expected, records_of, write_expected
from parquet_sink.config.report import printable
from parquet_sink.connectors.check import check_files
from parquet_sink.errors import InvalidConfiguration

DIFFERS: Final = 1
"""Exit status when something else came than was expected."""
_LISTS: Final = ("columns", "rows", "rejected", "failed")


_EXAMPLES: Final = """\
example:
  parquet-sink test orders.properties cases/

Exit status: 0 all came as expected, 1 something else came, 2 a file is wrong."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The connector file, its cases, and what is done with what comes."""
    parser.description = (
        "Runs the records of each case through the connector file, and compares rows, columns, rejected records, "
        "tables and names of files with the case's NAME.expected.json. Nothing is sent; no broker, registry or "
        "Spark is asked."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("file", metavar="connector.properties", help="connector file, .properties or .json")
    parser.add_argument("cases", metavar="CASES", nargs="+", help="folder of cases, or one case (.jsonl, .json)")
    parser.add_argument("--worker", metavar="FILE", help="worker file: converters and config providers")
    parser.add_argument("--update", action="store_true", help="write what comes as what is expected")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit's XML, too")


@dataclass(frozen=True)
class Result:
    """How a case went. text: what differs, empty where nothing does. updated: its expectation was written anew."""

    case: Case
    text: str
    seconds: float
    updated: bool = False


def run(args: argparse.Namespace) -> int:
    """0 when all that came was expected, 1 when not, 2 when a file is wrong. Raises SinkError."""
    cases = cases_of(args.cases)
    checked = check_files([args.file], args.worker)
    (settings,) = checked.require()
    topics = settings.kafka.topics
    every = [(case, records_of(case, topics), read_expected(case)) for case in cases]
    from parquet_sink.addons.cases.running import came_of  # after the files were found right: it loads Arrow

    results: list[Result] = []
    for case, records, expected in every:
        begin = time.monotonic()
        found = came_of(settings, records, case.schemas)
        came = written(found)
        same = json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)
        text = "" if same else "".join(_differences(case, None if expected is None else written(expected), came))
        updated = bool(args.update and text)
        if updated:
            write_expected(case, came)
        results.append(Result(case, text, time.monotonic() - begin, updated))
        for line in _lines(results[-1]):
            print(line)
    failed = [one for one in results if one.text and not one.updated]
    print(f"{len(results)} {'case' if len(results) == 1 else 'cases'}, {len(failed)} of which differ")
    if args.junit is not None:
        _write_junit(args.junit, results)
    return DIFFERS if failed else os.EX_OK


def written(found: object) -> str:
    """What came, or is expected, as its file has it: one row, column or rejected record on a line."""
    if not isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False, indent=2) + "\n"
    return "\n".join(_object(found, "")) + "\n"


def _object(found: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield f"{indent}{{" if not indent else "{"
    inner = indent + "  "
    for number, (name, value) in enumerate(found.items(), 1):
        comma = "," if number < len(found) else ""
        head = f"{inner}{json.dumps(name, ensure_ascii=False)}: "
        if name == "files" and isinstance(value, list) and all(isinstance(one, dict) for one in value) and value:
            yield f"{head}["
            for place, one in enumerate(value, 1):
                first, *others = _object(one, inner + "  ")
                lines = [f"{inner}  {first}", *others]
                lines[-1] += "," if place < len(value) else ""
                yield from lines
            yield f"{inner}]{comma}"
        elif name in _LISTS and isinstance(value, list) and value:
            yield f"{head}["
            yield from (
                f"{inner}  {json.dumps(one, ensure_ascii=False)}{',' if place < len(value) else ''}"
                for place, one in enumerate(value, 1)
            )
            yield f"{inner}]{comma}"
        else:
            yield f"{head}{json.dumps(value, ensure_ascii=False)}{comma}"
    yield f"{indent}}}"


def _differences(case: Case, before: str | None, came: str) -> Iterator[str]:
    if before is None:
        yield f"{case.expected} is not there; write it with --update. This came:\n"
        yield came
        return
    one, other = before.splitlines(keepends=True), came.splitlines(keepends=True)
    yield from difflib.unified_diff(one, other, str(case.expected), "what came")


def _lines(result: Result) -> Iterator[str]:
    if not result.text:
        yield f"ok       {printable(result.case.name)}"
    elif result.updated:
        yield f"updated  {printable(result.case.name)}"
    else:
        yield f"DIFFERS  {printable(result.case.name)}"
        yield from (f"  {printable(line)}" for line in result.text.splitlines())


def _write_junit(path: str, results: Sequence[Result]) -> None:
    failed = sum(bool(one.text) and not one.updated for one in results)
    suite = ET.Element("testsuite", name="parquet-sink", tests=str(len(results)), failures=str(failed), errors="0")
    for one in results:
        case = ET.SubElement(
            suite, "testcase", classname=str(one.case.path.parent), name=one.case.name, time=f"{one.seconds:.3f}"
        )
        if one.text and not one.updated:
            lines = "\n".join(printable(line) for line in one.text.splitlines())
            ET.SubElement(case, "failure", message="something else came than was expected").text = lines
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidConfiguration(
            [f"Invalid [--junit]. {path} cannot be written ({error.strerror or error}); name another file."]
        ) from None
