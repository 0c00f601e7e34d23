"""Setting keys in a connector file leaves all else as it was."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.tune.command.edit import edited, with_numbers
from parquet_sink.config.properties import parse_properties
from parquet_sink.errors import InvalidConfiguration
from tests.messages import saying

SIZE, RECORDS, INTERVAL = (f"connect.ems.commit.{name}" for name in ("size.bytes", "records", "interval.ms"))
NUMBERS = {SIZE: 5_000_000, RECORDS: 50_000, INTERVAL: 20_000}


def test_comments_order_and_spelling_stay() -> None:
    """Only the three values differ; separators, indents and what stands around them are as before."""
    text = (
        f"# ours\nname = orders\n  {SIZE} : 1000000\n! a remark\n{INTERVAL}=5 \\\n   00\n\n{RECORDS}\t10000\nlast=1\n"
    )
    assert with_numbers(text, "a.properties", NUMBERS) == (
        f"# ours\nname = orders\n  {SIZE} : 5000000\n! a remark\n{INTERVAL}=20000\n\n{RECORDS}\t50000\nlast=1\n"
    )


def test_the_last_of_two_is_changed() -> None:
    """Of a key that is set twice the one that counts gets the new value."""
    assert with_numbers(f"{SIZE}=1\n{SIZE}=2\n", "a.properties", {SIZE: 3}) == f"{SIZE}=1\n{SIZE}=3\n"


@pytest.mark.parametrize("ended", ["\n", "\r\n", ""])
def test_an_absent_key_is_put_behind(ended: str) -> None:
    """A key that the file does not have comes last, with the file's own line ends."""
    line_end = ended or "\n"
    assert with_numbers(f"name=a{ended}", "a.properties", {SIZE: 3}) == f"name=a{line_end}{SIZE}=3{line_end}"


def test_a_key_that_goes_on_in_the_next_line_is_written_anew() -> None:
    """A key, or its separator, in two lines is found and becomes one line."""
    text = "connect.ems.commit.\\\n  records=7\nother=1\n"
    assert with_numbers(text, "a.properties", {RECORDS: 9}) == f"{RECORDS}=9\nother=1\n"


@pytest.mark.parametrize("old", ["1", '"1"'])
def test_json_keeps_its_form(old: str) -> None:
    """In JSON a number stays a number and a text a text; blanks and order stay."""
    text = f'{{ "name":"a",\n\t"config": {{"x": "[\\"}}" , "{SIZE}":  {old} , "y": 4}}, "tasks":[] }}'
    assert with_numbers(text, "a.json", {SIZE: 22}) == text.replace(f"  {old} ", f"  {old.replace('1', '22')} ")


def test_json_gets_an_absent_key() -> None:
    """A member that is absent comes last in the object of keys, in a line as the others."""
    text = json.dumps({"name": "a", "config": {"topics": "t"}}, indent=2)
    changed = with_numbers(text, "a.json", {SIZE: 22, RECORDS: 5})
    assert changed == json.dumps({"name": "a", "config": {"topics": "t", SIZE: 22, RECORDS: 5}}, indent=2)
    assert json.loads(with_numbers("{}", "a.json", {SIZE: 22})) == {SIZE: 22}
    assert json.loads(with_numbers('{"name": "a" }', "a.json", {SIZE: 22})) == {"name": "a", SIZE: 22}


def test_a_provided_value_is_not_overwritten() -> None:
    """A value that comes from a config provider is named and left alone."""
    with pytest.raises(InvalidConfiguration, match=saying(f"[{RECORDS}]", '"${env:N}"', "a.properties")):
        with_numbers(f"{RECORDS}=${{env:N}}\n", "a.properties", NUMBERS)


OURS = (f"{SIZE}=12", f"  {RECORDS} = 7\\", f"{INTERVAL}:")
LINES = st.lists(st.sampled_from([*OURS, "x", "# remark", "", "key=va\\", "  lue", "\\u0041=1", "=e", "\\"]))


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_file_keeps_its_other_keys(lines: list[str], line_end: str) -> None:
    """However a file is written and ends, three keys get their values and others keep theirs, or nothing changes."""
    text = line_end.join(lines)
    before = parse_properties(text, "a.properties").properties
    try:
        changed = with_numbers(text, "a.properties", NUMBERS)
    except InvalidConfiguration:
        assert "" in before  # of a backslash at the very end Java makes an empty key, which is nowhere else
        assert text.rstrip("\r\n").endswith("\\")
        return
    assert parse_properties(changed, "a.properties").properties == {
        **before,
        **{key: str(number) for key, number in NUMBERS.items()},
    }


def test_the_file_is_replaced_whole(tmp_path: Path) -> None:
    """Permissions, a link and UTF-8's mark stay, and no other file is left behind."""
    real = tmp_path / "real.properties"
    real.write_bytes(b"\xef\xbb\xbf" + f"name=\u00e4\n{SIZE}=1\n".encode())
    real.chmod(0o640)
    (tmp_path / "link.properties").symlink_to(real)
    edited(str(tmp_path / "link.properties"), {SIZE: 2}).write()
    assert real.read_bytes() == b"\xef\xbb\xbf" + f"name=\u00e4\n{SIZE}=2\n".encode()
    assert real.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.properties").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """What somebody else wrote between the look and the writing is not lost."""
    path = tmp_path / "a.properties"
    path.write_text(f"{SIZE}=1\n")
    edit = edited(str(path), {SIZE: 2})
    path.write_text(f"{SIZE}=9\n")
    with pytest.raises(InvalidConfiguration, match=saying(str(path), "changed it meanwhile", "try again")):
        edit.write()
    assert path.read_text() == f"{SIZE}=9\n"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the new file cannot take its place the old one stays, and the cause is told."""
    path = tmp_path / "a.properties"
    path.write_text(f"{SIZE}=1\n")
    edit = edited(str(path), {SIZE: 2})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        InvalidConfiguration, match=saying(f"[{path}]", "cannot be written", "No space left", "the right to write")
    ):
        edit.write()
    assert path.read_text() == f"{SIZE}=1\n"
    assert len(list(tmp_path.iterdir())) == 1
