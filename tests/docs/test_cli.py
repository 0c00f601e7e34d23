"""The documentation is true of the program: commands, options, keys, variables, make targets, links."""

import argparse
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.cli import main as cli
from parquet_sink.cli.documentation import page
from parquet_sink.config.key import find
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.errors import SinkError
from parquet_sink.process import logs
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

COMMANDS = plugins.BUILT_IN[plugins.COMMANDS]
ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def text_of(name: str) -> str:
    """A page."""
    return (ROOT / name).read_text(encoding="utf-8")


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of one command, with its options."""
    parser = cli.parser_for([command])
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    found = commands.choices[command]
    assert isinstance(found, argparse.ArgumentParser)
    return found


def options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Long options of a parser, and of those for its actions."""
    found = {word: action for action in parser._actions for word in action.option_strings if word.startswith("--")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                found |= options_of(one)
    return found


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_says_what_it_does(command: str) -> None:
    """Each option of each command has a help text, and that says the default where it is a number."""
    for word, action in options_of(parser_of(command)).items():
        text = (action.help or "").replace("%(default)g", str(action.default)).replace("(default: ", "(default ")
        assert len(text) > 5, word
        if isinstance(action.default, (int, float)) and not isinstance(action.default, bool):
            assert f"(default {action.default:g}" in text.replace(".0)", ")"), word


def test_the_page_of_commands_is_what_the_parsers_say() -> None:
    """After a change: python -m parquet_sink.cli.documentation > docs/reference/cli.md."""
    assert page() == text_of("docs/reference/cli.md")
    assert re.findall(r"^## ([a-z]+)$", page(), re.MULTILINE) == list(COMMANDS)


def code_lines(text: str) -> list[str]:
    """Lines of code blocks, fenced or indented, continued ones joined."""
    lines, fenced = [], False
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(line.strip())
    return lines


def command_lines(text: str) -> list[list[str]]:
    """What follows `parquet-sink` in code blocks, comments and where output goes left out."""
    found = []
    for line in code_lines(text):
        match = re.match(r"(?:[\w./-]*/)?parquet-sink (?!COMMAND)(.*)", line)
        if match is not None and "[" not in match[1] and "=" not in line.split("parquet-sink")[0]:
            found.append(shlex.split(match[1].partition(" > ")[0], comments=True))
    return found


EXAMPLES = [(name, words) for name in NAMES for words in command_lines(text_of(name))]


@pytest.mark.parametrize(("name", "words"), EXAMPLES, ids=[f"{name}: {' '.join(words)}" for name, words in EXAMPLES])
def test_command_lines_in_the_documentation_are_accepted(name: str, words: list[str]) -> None:
    """Every example of a command line that a reader may copy is understood by the program."""
    arguments = cli.parser_for(words).parse_args(words)
    assert words == ["--version"] or arguments.command == words[0]


def test_what_is_looked_for_in_the_documentation_is_found() -> None:
    """No pattern of these tests comes to match nothing unnoticed: each finds what is known to be there."""
    assert {words[0] for _, words in EXAMPLES} >= set(COMMANDS) - {"demo"}  # `make demo`
    assert {"README.md", "docs/reference/cli.md", "docs/how-to/operations.md"} <= {name for name, _ in EXAMPLES}
    everywhere = [(name, text_of(name)) for name in NAMES]
    assert {"README.md", "docs/README.md"} <= {name for name, text in everywhere if links(text)}
    assert {"docs/how-to/errors.md", "docs/how-to/operations.md"} <= {
        name for name, text in everywhere if keys_named(text)
    }
    assert {"README.md", "CONTRIBUTING.md"} <= {name for name, text in everywhere if make_targets(text)}
    assert {"ARCHITECTURE.md"} <= {name for name, text in everywhere if modules_named(text)}
    assert all(options_of(parser_of(command)) for command in COMMANDS)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    """Links of a page within the project."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    """Each link within the project names a file that is there, and a heading that the page has."""
    broken = []
    for link in links(text_of(name)):
        path, _, anchor = link.partition("#")
        page = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        if not page.exists() or (anchor and anchor not in anchors(page.read_text(encoding="utf-8"))):
            broken.append(link)
    assert broken == []


def test_extras_are_installed_from_a_copy_of_the_repository() -> None:
    """Whatever names an extra for pip means one that is there, and no package of a name that is not registered."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    files = [*PAGES, *(ROOT / "parquet_sink").rglob("*.py"), *(ROOT / "deploy").rglob("*.*"), ROOT / "Dockerfile"]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert [path for path, text in texts.items() if re.search(r"parquet[-_]sink\[", text)] == []
    lists = [found for text in texts.values() for found in re.findall(r"pip install '\.\[([\w,]+)\]'", text)]
    named = {name for found in lists for name in found.split(",")}
    assert {"worker", "target", "s3", "sql", "traces", "plot"} <= named <= set(extras)


def test_the_index_lists_every_page() -> None:
    """docs/README.md has a line for each page of the documentation, and docs/adr/README.md one for each decision."""
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    decisions = {name for name in pages if name.startswith("adr/")} - {"adr/README.md"}
    top = {f"../{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")}
    assert linked_first("docs/README.md") == pages - decisions - {"README.md"} | top
    assert {f"adr/{name}" for name in linked_first("docs/adr/README.md")} == decisions


def linked_first(name: str) -> set[str]:
    """What each item of a page's lists, or the first cell of each line of its tables, links to."""
    return set(re.findall(r"^[-|] \[[^\]]+\]\(([^)#]+)\)", text_of(name), re.MULTILINE))


def keys_named(text: str) -> list[str]:
    """Connector keys that a page names."""
    return re.findall(r"`(connect\.ems\.[a-z0-9.]+[a-z0-9])", text)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "docs/reference/configuration.md"])
def test_keys_in_the_documentation_exist(name: str) -> None:
    """A key that a page names is in the table of keys."""
    assert [key for key in keys_named(text_of(name)) if find(EMS_KEYS, key) is None and not _is_prefix(key)] == []


def _is_prefix(name: str) -> bool:
    """`connect.ems.convert` of `connect.ems.convert.*`."""
    return any(key.name.startswith(f"{name}.") for key in EMS_KEYS)


def test_consumer_settings_in_the_documentation_are_taken() -> None:
    """Settings of the worker file in docs/how-to/kafka-security.md are keys of the worker file."""
    named = re.findall(r"^(consumer\.[a-z.]+)=", text_of("docs/how-to/kafka-security.md"), re.MULTILINE)
    assert named
    assert [name for name in named if find(WORKER_KEYS, name) is None] == []


def make_targets(text: str) -> set[str]:
    """Targets of the Makefile that a page tells to make."""
    in_code = {line.split()[1] for line in code_lines(text) if re.match(r"make [a-z]", line)}
    return in_code | set(re.findall(r"`make ([a-z][\w-]*)", text))


@pytest.mark.parametrize("name", NAMES)
def test_make_targets_in_the_documentation_exist(name: str) -> None:
    """`make something` in code is a target of the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    assert make_targets(text_of(name)) - targets == set()


def test_the_log_levels_are_those_documented() -> None:
    """The levels in docs/reference/cli.md and docs/how-to/operations.md are the program's."""
    for name in ("docs/reference/cli.md", "docs/how-to/operations.md"):
        line = next(line for line in text_of(name).splitlines() if logs.LEVEL_VARIABLE in line and "`DEBUG`" in line)
        assert re.findall(r"`([A-Z]+)`", line) == list(logs.LEVELS)


def test_exit_statuses_are_those_documented() -> None:
    """Every exit status of an error of the program is in docs/reference/cli.md and in docs/how-to/operations.md."""
    statuses = {SinkError.exit_status, *(kind.exit_status for kind in all_errors(SinkError))}
    for name in ("docs/reference/cli.md", "docs/how-to/operations.md"):
        table = set(re.findall(r"^\| (\d+)", text_of(name), re.MULTILINE))
        assert {str(status) for status in statuses} | {"0"} <= table


def all_errors(kind: type[SinkError]) -> list[type[SinkError]]:
    """All errors below one."""
    return [one for child in kind.__subclasses__() for one in (child, *all_errors(child))]


def test_the_architecture_shows_every_package() -> None:
    """The tree in ARCHITECTURE.md has one line for each package and each module at the top."""
    package = ROOT / "parquet_sink"
    there = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    there |= {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    tree = re.search(r"^parquet_sink/\n(.*?)^tests/", text_of("ARCHITECTURE.md"), re.MULTILINE | re.DOTALL)
    assert tree is not None
    assert set(re.findall(r"^  (\S+)", tree[1], re.MULTILINE)) == there


def modules_named(text: str) -> list[str]:
    """Python files that a page names."""
    return re.findall(r"`((?:\w+/)*\w+\.py)`", text)


@pytest.mark.parametrize("name", NAMES)
def test_modules_in_the_documentation_exist(name: str) -> None:
    """A file of the package or the tests that a page names is there."""
    named = modules_named(text_of(name))
    places = (ROOT, ROOT / "parquet_sink", ROOT / "tests", ROOT / "integration")
    assert [one for one in named if not any((place / one).is_file() for place in places)] == []


def test_every_transform_has_a_section() -> None:
    """docs/reference/transforms has a heading for each transform and predicate that is built in."""
    lines = [
        line for name in NAMES if name.startswith("docs/reference/transforms/") for line in text_of(name).splitlines()
    ]
    headings = {line.strip("# ").lower() for line in lines if line.startswith("#")}
    names = {name for group in (plugins.TRANSFORMS, plugins.PREDICATES) for name in plugins.BUILT_IN[group]}
    simple = {name.rpartition(".")[2].partition("$")[0].lower() for name in names}
    assert len(simple) > 20
    assert simple - headings == set()


def test_a_new_version_is_in_the_changelog() -> None:
    """CHANGELOG.md has a section for the version of the package."""
    assert f"## [{cli.__version__}]" in text_of("CHANGELOG.md")
