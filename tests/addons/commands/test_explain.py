"""`parquet-sink explain`: keys by name, last words, or as a file has them; what is near; examples that are valid."""

import pytest

from parquet_sink.addons.commands.explain import FILE, WORKER_FILE, beside, complete, example_of, found, places
from parquet_sink.cli.main import main
from parquet_sink.config.key import Key
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as terminals begin."""
    monkeypatch.setenv("COLUMNS", "80")


def told(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    status = main(["explain", *words])
    return status, *capsys.readouterr()


def test_a_key_is_explained_from_its_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    """Where it stands, what it means, type, default, limits, an example, and what is beside it."""
    status, out, err = told("connect.ems.commit.records", capsys=capsys)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "connect.ems.commit.records"
    assert lines[1].startswith(f"  in {FILE}; ")
    for begin in ("Type:", "Default:", "Values:", "Example:   connect.ems.commit.records=", "See also:"):
        assert any(line.strip().startswith(begin) for line in lines), begin
    assert "connect.ems.commit.interval.ms" in out
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("CONNECT.EMS.COMMIT.RECORDS", "connect.ems.commit.records"),
        ("commit.records", "connect.ems.commit.records"),
        ("transforms.route.regex", "transforms.N.regex"),
        ("predicates.p.pattern", "predicates.N.pattern"),
        ("value.converter.schemas.enable", "value.converter.schemas.enable"),
        ("schemas.enable", "key.converter.schemas.enable"),
        ("consumer.override.max.poll.records", "consumer.override.*"),
        ("consumer.fetch.max.bytes", "consumer.*"),
        ("config.providers.vault.class", "config.providers.*"),
        ("tls.ca.file", "tls.ca.file"),
    ],
)
def test_a_key_is_known_by_more_than_its_name(asked: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In any case, by its last words, by the user's name of a step, by a prefix that stands for many."""
    status, out, _ = told(asked, capsys=capsys)
    assert status == 0
    heads = {line for line in out.splitlines() if line and not line.startswith(" ")}
    assert name in heads or {name.replace("key.", side) for side in ("key.", "value.")} & heads


def test_what_several_keys_begin_with_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    """With a part of what each means; a full stop or star at the end changes nothing."""
    status, out, _ = told("connect.ems.commit", capsys=capsys)
    assert status == 0
    for name in ("connect.ems.commit.size.bytes", "connect.ems.commit.records", "connect.ems.commit.interval.ms"):
        assert f"  {name}" in out
    assert out == told("connect.ems.commit.*", capsys=capsys)[1]
    status, out, _ = told("RegexRouter", capsys=capsys)
    assert (status, "transforms.N.replacement" in out) == (0, True)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("connect.ems.comit.records", "connect.ems.commit.records"),
        ("commit.recrds", "connect.ems.commit.records"),
        ("bootstrap.server", "bootstrap.servers"),
        ("xyzzy", "commit"),
    ],
)
def test_what_is_no_key_names_the_nearest(asked: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Or how to find one; status 2."""
    status, out, err = told(asked, capsys=capsys)
    assert (status, out) == (2, "")
    assert near in err
    assert len(err.splitlines()) == 1


def test_a_key_of_both_files_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With both and with what is beside it, the same by its last words."""
    _, out, _ = told("value.converter.schema.registry.url", capsys=capsys)
    assert out.splitlines()[1].startswith(f"  in {FILE} and {WORKER_FILE}; ")
    assert out.count("Type:") == 1
    assert "See also:  value.converter.schema.registry.basic.auth.user.info," in out
    assert told("schema.registry.url", capsys=capsys)[1] == out


def test_every_key_is_found_by_its_name() -> None:
    """And what it sends to is there, too."""
    names = {one.key.name for one in places()}
    for one in places():
        assert one.key.name in {there.key.name for there in found(one.key.name)}
        assert set(beside(one)) <= names


def _problems(key: Key, text: str) -> list[str]:
    report = Report()
    read([key], Resolved({key.name: text}, {key.name: text}), report)
    return [problem for problem in report.problems if "${env" not in text]


def test_every_example_is_valid() -> None:
    """By the key's own declaration."""
    shown = 0
    for one in places():
        line = example_of(one.key)
        if line is None:
            continue
        name, _, value = line.partition("=")
        assert name == one.key.name.replace(".N.", ".myStep.")
        assert _problems(one.key, value) == [], line
        shown += 1
    assert shown > len(places()) / 3


def test_names_are_completed() -> None:
    """Those that begin so."""
    assert "connect.ems.commit.records" in complete("connect.ems.commit.", None)  # type: ignore[arg-type]
    assert complete("nothing.", None) == []  # type: ignore[arg-type]
