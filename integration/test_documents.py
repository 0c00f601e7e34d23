"""What the documents show is typed: each page's shell blocks in order, in a folder of the page's own.

A block that is indented, or fenced as `sh`, is for a shell; every other block has a fence that names what it is.
A shell block that no test can run has a comment before it, `<!-- not run: WHY -->`.

A page begins with what docs/README.md tells its reader to have: a broker with the topic `orders`, the reference target,
`orders.properties` and `worker.properties`. They are on ports that are free; a page's `localhost:9092`, `:8085` and
`:8083` become these.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from integration import processes
from integration.by_file import ByFile
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.process.cache import cache_folder

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = [
    path for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]) if path.name != "CHANGELOG.md"
]
NOT_RUN: Final = re.compile(r"\s*<!-- not run: (.+?) -->")
SHELL: Final = "sh"
OTHER_NAMES: Final = {"", "bash", "shell", "console", "shell-session", "zsh"}
"""Fences behind which a shell block could hide."""
PAGE_S: Final = 600.0
PORTS: Final = {"9092": "kafka", "8085": "target", "8083": "worker"}
RECORDS: Final = 6_000
"""In each topic-partition of the topic orders."""


@dataclass(frozen=True)
class Block:
    """A shell block: its first line's number from 1, its text, and why it is not run ('': it is)."""

    line: int
    text: str
    excuse: str


def blocks_of(text: str) -> Iterator[Block]:
    """The shell blocks of a page in order. Raises ValueError for a fence without a name, or a reason for none."""
    lines, at, excuse = [*text.split("\n"), ""], 0, ""
    while at < len(lines):
        line, begin = lines[at], at + 1
        if comment := NOT_RUN.match(line):
            excuse = comment[1]
        elif fence := re.match(r"\s*```(\S*)", line):
            if fence[1] in OTHER_NAMES:
                raise ValueError(f"line {begin}: a fence is {SHELL}, or names what else it has")
            at = next(end for end in range(at + 1, len(lines)) if lines[end].strip() == "```")
            if fence[1] == SHELL:
                yield Block(begin + 1, "\n".join(lines[begin:at]), excuse)
                excuse = ""
        elif line.startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            while lines[at].startswith("    ") or (not lines[at].strip() and lines[at + 1].startswith("    ")):
                at += 1
            yield Block(begin, "\n".join(one[4:] for one in lines[begin - 1 : at]), excuse)
            at, excuse = at - 1, ""
        elif line.strip() and excuse:
            raise ValueError(f"line {begin}: what is not run here? ({excuse})")
        at += 1
    if excuse:
        raise ValueError(f"the end: what is not run here? ({excuse})")


PRELUDE: Final = r"""
set -eEuo pipefail
at=0
declare -A pids=()
never=$TMPDIR/never # nothing is written to it: to wait for that starts no program, as `sleep` would, hundreds of times
mkfifo "$never"
trap 'failed $? "$BASH_COMMAND"' ERR
trap 'for one in "${!pids[@]}"; do end "$one"; done' EXIT

failed() {
    trap - ERR
    echo "== the block at line $at: status $1: $2" >&2
    tail -n 40 *.typed >&2 || true
    exit "$1"
}

end() { # ends a program as Ctrl-C does, and wants its status to be 0
    local pid=${pids[$1]-}
    unset "pids[$1]"
    if [ -n "$pid" ]; then kill -INT "$pid"; wait "$pid"; fi
}

begin() { # starts a program, and waits until it is of use; one of its kind that still runs is ended first
    local log=$1.typed sign
    case $1 in
        run) if grep -qs '^topics' "${@: -1}"; then sign='accepted |delivered '; else sign=': running'; fi ;;
        worker) sign='REST API at' ;;
        target) sign='target ready at' ;;
        kafka) sign='listens on' ;;
    esac
    end "$1"
    : > "$log" # the one before has the sign
    env --default-signal=INT parquet-sink "$@" > "$log" 2>&1 &
    pids[$1]=$!
    until [[ $(< "$log") =~ $sign ]]; do kill -0 "${pids[$1]}"; read -rt 0.1 <> "$never" || true; done
}

parquet-sink() {
    set -- "${@/%--wait/--wait=240}" # as long as a busy machine may take
    case " $* " in
        *' --until-caught-up '* | *' --tool '*) command parquet-sink "$@" ;;
        ' run '* | ' worker '* | ' target '* | ' kafka '*) begin "$@" ;;
        *' --watch '*) timeout --signal INT --preserve-status 5 parquet-sink "$@" ;;
        *) command parquet-sink "$@" ;;
    esac
}

curl() { command curl --silent --show-error --fail-with-body "$@"; }
"""
"""What lets a page's lines stand as they are: what runs until Ctrl-C is left running, an HTTP error is curl's."""


@dataclass(frozen=True)
class Place:
    """Where a page is typed. ports: those of a page (see PORTS) to those that listen."""

    folder: Path
    ports: Mapping[str, int]

    def here(self, text: str) -> str:
        """A text of the repository with the ports of this place."""
        known = "|".join(self.ports)
        return re.sub(
            rf"((?:localhost|127\.0\.0\.1):|--port )({known})\b", lambda it: it[1] + str(self.ports[it[2]]), text
        )

    def prepare(self) -> None:
        """The files of the reader."""
        shutil.copytree(ROOT / "config", self.folder / "config")
        (self.folder / "tmp").mkdir()
        for path in (self.folder / "config").iterdir():
            if path.is_file():
                path.write_text(self.here(path.read_text(encoding="utf-8")), encoding="utf-8")
        with (self.folder / "config" / "worker.properties").open("a", encoding="utf-8") as worker:
            worker.write(f"\nlisteners=http://localhost:{self.ports['8083']}\n")
        for name in ("orders", "worker"):
            shutil.copy(self.folder / "config" / f"{name}.properties", self.folder)

    def type(self, blocks: list[Block]) -> None:
        """Types blocks into one shell; fails with the line of the block, its command and what all of them said."""
        mark = uuid4().hex
        script = PRELUDE + "".join(f"\nat={one.line}\n{self.here(one.text)}\nend run\n" for one in blocks)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "PARQUET_SINK_CACHE": str(cache_folder()),
            "PARQUET_SINK_BOOTSTRAP_SERVERS": f"localhost:{self.ports['9092']}",
            "PARQUET_SINK_URL": f"http://localhost:{self.ports['8083']}",
            processes.MARK: mark,
        }
        said = self.folder / "said"
        try:
            with said.open("wb") as out:
                status = subprocess.run(
                    ["bash", "-c", script],
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    timeout=PAGE_S,
                    check=False,
                ).returncode
        finally:
            for process in processes.of_run(mark):
                processes.kill(process)
        assert status == 0, said.read_text(errors="replace")[-8_000:]


@pytest.fixture
def place(request: pytest.FixtureRequest, broker: Broker, target: TargetProcess, tmp_path: Path) -> Iterator[Place]:
    """Where a page is typed; what it made in Kafka is gone afterwards."""
    folder = tmp_path / "typed"
    folder.mkdir()
    shared = {"9092": int(broker.bootstrap_servers.rpartition(":")[2]), "8085": int(target.url.rpartition(":")[2])}
    typed = "\n".join(one.text for one in blocks_of(request.param.read_text(encoding="utf-8")) if not one.excuse)
    own = {
        port: free_port()
        for port, name in PORTS.items()
        if re.search(rf"^parquet-sink {name} (?!.*--tool).*--port", typed, re.MULTILINE)
    }
    place = Place(folder, {**shared, "8083": free_port(), **own})
    place.prepare()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    topics, groups = topics_of(admin), groups_of(admin)
    broker.create_topic("orders", 4)
    for partition in range(4):
        numbers = range(partition, 4 * RECORDS, 4)
        broker.produce("orders", [(str(n).encode(), order(n)) for n in numbers], partition=partition)
    yield place
    for group in groups_of(admin) - groups:
        admin.delete_consumer_groups([group])[group].result()
    for topic in topics_of(admin) - topics:
        broker.delete_topic(topic)


def topics_of(admin: AdminClient) -> set[str]:
    """The names of all topics that are not Kafka's own."""
    return {name for name in admin.list_topics().topics if not name.startswith("__")}


def groups_of(admin: AdminClient) -> set[str]:
    """The names of all consumer groups."""
    return {one.group_id for one in admin.list_consumer_groups().result().valid}


def order(number: int) -> bytes:
    """The value of a record."""
    return f'{{"order_id": {number}, "name": "Ada", "qty": {number % 7}}}'.encode()


def named(pages: list[Path]) -> list[str]:
    """Pages by their paths in the repository."""
    return [str(page.relative_to(ROOT)) for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=named(PAGES))
def test_each_block_is_run_or_excused(page: Path) -> None:
    """A fence says what it has, a reason stands before a shell block, and no output is shown behind a prompt."""
    text = page.read_text(encoding="utf-8")
    assert all(block.text.strip() for block in blocks_of(text))
    assert re.findall(r"^ *\$ .*", text, re.MULTILINE) == []


TYPED: Final = [page for page in PAGES if any(not one.excuse for one in blocks_of(page.read_text(encoding="utf-8")))]


README: Final = ROOT / "README.md"
"""Typed in each run, as all who come read it; the other pages take turns."""
LONG: Final = {"quickstart": 120, "first-connector": 60, "operations": 60}
"""Seconds that some take; others take some 25."""


def turns(page: Path) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a page."""
    return () if page == README else (pytest.mark.in_turn(seconds=LONG.get(page.stem, 25)),)


@pytest.mark.timeout(PAGE_S + 60)
@pytest.mark.parametrize(
    ("place", "page"),
    [pytest.param(page, page, marks=turns(page)) for page in TYPED],
    ids=named(TYPED),
    indirect=["place"],
)
def test_what_a_page_shows_works(place: Place, page: Path) -> None:
    """Its shell blocks, typed in order from the page's beginning, all end well."""
    place.type([one for one in blocks_of(page.read_text(encoding="utf-8")) if not one.excuse])


def test_pages_are_shared_out(request: pytest.FixtureRequest) -> None:
    """For the processes of `make test` each page is as a file of its own; all else of this file stays together."""
    scopes, here = ByFile.__new__(ByFile), request.node.nodeid.partition("::")[0]
    pages = [f"{here}::{test_what_a_page_shows_works.__name__}[{name}]" for name in named(TYPED)]
    assert [scopes._split_scope(one) for one in pages] == pages
    assert scopes._split_scope(request.node.nodeid) == here


def test_blocks_are_found() -> None:
    """Indented or fenced, beside blocks that are something else; a reason belongs to the next block alone."""
    page = "a\n\n    b \\\n      c\n\n    d\n\n- e\n\n  ```sh\n  f\n  ```\n"
    page += "\n<!-- not run: g -->\n\n    h\n\n```json\ni\n```\n"
    found = [(one.line, one.text, one.excuse) for one in blocks_of(page)]
    assert found == [(3, "b \\\n  c\n\nd", ""), (11, "  f", ""), (16, "h", "g")]


@pytest.mark.parametrize(
    "page", ["```\na\n```\n", "```bash\na\n```", "<!-- not run: a -->\n\nb", "<!-- not run: a -->"]
)
def test_no_block_hides(page: str) -> None:
    """A fence without a name could be for a shell, and so could one of another name; a reason for nothing is a slip."""
    with pytest.raises(ValueError, match="line 1|line 3|the end"):
        list(blocks_of(page))
