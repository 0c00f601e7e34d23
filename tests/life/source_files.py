"""The files of a source's life: what was written where, what became of it, and what may be missing by now."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

WIDTH: Final = 7
"""Digits of a line's number, by which each line is another one."""


@dataclass
class Content:
    """What was written to one file until it was rotated, emptied or replaced.

    path: where it is; None: nowhere.

    sighted: a connector that ran had it under the name, with something in it. closed: nobody writes to it any more.
    copied: this is a copy. doubtful: a last line without its end that may be missing since memory was lost, what
    becomes of it, and since which warning.
    """

    name: Path
    path: Path | None
    lines: list[bytes] = field(default_factory=list)
    tail: bytes = b""
    sighted: bool = False
    closed: bool = False
    copied: bool = False
    doubtful: tuple[bytes, str, int] | None = None


class Forgotten(NamedTuple):
    """Memory of a file that was lost, until the next look. position: what is stored; since: which warning."""

    why: str
    since: int
    position: int


class Files:
    """Names that are followed, in one folder. now: seconds, which become the times of files."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self.folder, self._now = folder, now
        self.names = [folder / "log.txt", folder / "other.txt"]
        self.of: dict[Path, list[Content]] = {name: [] for name in self.names}
        self.lines: dict[bytes, tuple[Content, int]] = {}
        self.lost: dict[bytes, str] = {}
        """Lines that may be missing, and what becomes of them: `warned` if a warning must tell, else `free`."""
        self.since: dict[bytes, int] = {}
        self.warnings: list[str] = []
        self.sent: dict[bytes, int] = {}
        self._forgotten: dict[Path, Forgotten] = {}
        self._count = self._copies = 0
        self._tick = 0

    # what is written

    def write(self, name: Path, lines: int, *, large: int = -1, tail: bool = False) -> None:
        """Lines to the file of that name, which is made when it is not there.

        large: which of them is larger than a request may be at first. tail: and one without its end.
        """
        content = self._current(name)
        data = b""
        for number in range(lines):
            text = content.tail + self._text(80 if number == large else 0)
            data += text[len(content.tail) :] + b"\n"
            content.tail = b""
            self._add(content, text)
        if tail:
            more = self._text(0)
            content.tail += more
            data += more
        if data:
            self._close_before(content)
        with name.open("ab") as file:
            file.write(data)
        self._touch(name)

    def write_to_rotated(self, name: Path, lines: int) -> None:
        """As a program that did not open the new file yet."""
        content = self.of[name][-1] if self.of[name] else None
        if content is None or content.path in {None, name} or content.closed or content.copied:
            return
        assert content.path is not None
        data = b""
        for _ in range(lines):
            text = content.tail + self._text(0)
            data += text[len(content.tail) :] + b"\n"
            content.tail = b""
            self._add(content, text)
        with content.path.open("ab") as file:
            file.write(data)
        self._touch(content.path)
        self._overlooked(content)

    # what happens to files

    def rotate(self, name: Path) -> None:
        """Renamed; the next write makes a new one."""
        if (content := self._standing(name)) is None:
            return
        content.path = self._other_name(name)
        name.rename(content.path)
        self._overlooked(content)

    def copy_and_truncate(self, name: Path) -> None:
        """As logrotate's copytruncate: the copy has it all, and the file is empty."""
        if (content := self._standing(name)) is None:
            return
        copy = self._other_name(name)
        shutil.copyfile(name, copy)
        self._touch(copy)
        os.truncate(name, 0)
        self._touch(name)
        content.path, content.copied = copy, True
        self._overlooked(content)
        self.of[name].append(Content(name, name))

    def truncate(self, name: Path) -> None:
        """Emptied, and nobody has what was in it."""
        if (content := self._standing(name)) is not None:
            os.truncate(name, 0)
            self._touch(name)
            self._gone(content)
            self.of[name].append(Content(name, name))

    def rewrite(self, name: Path) -> None:
        """Other lines in the same file, of the same lengths."""
        if (old := self._standing(name)) is None or not (old.lines or old.tail):
            return
        tail = old.tail
        self._gone(old)
        new = Content(name, name)
        self.of[name].append(new)
        data = b""
        for line in old.lines:
            text = self._text(0)
            text += b"x" * (len(line) - len(text))
            data += text + b"\n"
            self._add(new, text)
        if tail:
            new.tail = self._text(0) + b"x" * (len(tail) - WIDTH)
            data += new.tail
        with name.open("r+b") as file:
            file.write(data)
        self._touch(name)

    def replace_by_copy(self, name: Path, lines: int) -> None:
        """As an editor saves: another file with the same content, and more at its end."""
        if (content := self._standing(name)) is None:
            return
        copy = self.folder / "saving"
        data = name.read_bytes()
        if content.tail:
            lines = max(lines, 1)
        for _ in range(lines):
            text = content.tail + self._text(0)
            data += text[len(content.tail) :] + b"\n"
            content.tail = b""
            self._add(content, text)
        if data:
            self._close_before(content)
        copy.write_bytes(data)
        copy.rename(name)
        self._touch(name)

    def replace(self, name: Path, lines: int) -> None:
        """By another file, and the old one is nowhere."""
        if (content := self._standing(name)) is None:
            return
        self._gone(content, whole=True)
        new = Content(name, name)
        self.of[name].append(new)
        texts = [self._text(0) for _ in range(lines)]
        other = self.folder / "saving"
        other.write_bytes(b"".join(text + b"\n" for text in texts))
        other.rename(name)
        for text in texts:
            self._add(new, text)
        if texts:
            self._close_before(new)
        self._touch(name)

    def remove(self, name: Path) -> None:
        """Nothing has that name any more."""
        if (content := self._standing(name)) is not None:
            name.unlink()
            self._gone(content, whole=True)

    def remove_rotated(self, name: Path) -> None:
        """The oldest of those that had the name, as log rotation does it."""
        for content in self.of[name]:
            if content.path is not None and content.path != name:
                content.path.unlink()
                self._gone(content, whole=True)
                return

    # what is known of it

    def saw(self, name: Path) -> None:
        """A connector that runs had a look at the name.

        Without memory it trusts its position; a last line that ends there, without its end, counts as sent.
        """
        content = self._standing(name)
        if content is not None and (size := os.path.getsize(name)) > 0:
            content.sighted = True
            if (forgotten := self._forgotten.pop(name, None)) is not None:
                trusted = content.tail and size == forgotten.position
                content.doubtful = (content.tail, forgotten.why, forgotten.since) if trusted else None

    def forgets(self, name: Path, position: int | None) -> None:
        """What tells files apart was lost: what is not sent before the next look may be missing.

        position: what is stored; None: nothing is, and no warning will tell.
        """
        why, since = "free" if position is None else "warned", len(self.warnings)
        self._forgotten[name] = Forgotten(why, since, position or 0)
        for content in self.of[name]:
            self._excuse(content, why)
            content.sighted = False
            content.doubtful = (content.tail, why, since) if content.tail else None

    def at(self, name: Path) -> Content | None:
        """What stands under the name."""
        return self._standing(name)

    def missing(self) -> Iterator[bytes]:
        """Lines that were not sent, and may not be missing: none at the end of a life."""
        for text, (content, _) in self.lines.items():
            if text not in self.sent and not self._is_excused(text, content):
                yield text

    def _is_excused(self, text: bytes, content: Content) -> bool:
        why = self.lost.get(text)
        if why is None:
            return False
        told = self.warnings[self.since[text] :]
        return why == "free" or any(str(content.name) in one for one in told)

    def _current(self, name: Path) -> Content:
        content = self._standing(name)
        if content is None:
            content = Content(name, name)
            self.of[name].append(content)
        return content

    def _standing(self, name: Path) -> Content | None:
        last = self.of[name][-1] if self.of[name] else None
        return last if last is not None and last.path == name else None

    def _close_before(self, content: Content) -> None:
        """A newer file has something: what is before it gets no more, and its last line counts as it is."""
        for one in self.of[content.name]:
            if one is content:
                return
            if not one.closed:
                one.closed = True
                if one.tail and one.path is not None:
                    self._add(one, one.tail)
                    if text_excuse := self._excuse_of(one):
                        self.lost[one.tail] = text_excuse
                        self.since[one.tail] = 0
                one.tail = b""

    def _excuse_of(self, content: Content) -> str | None:
        """Of a rotated file that nobody saw under its name."""
        if content.sighted:
            return None
        return "warned" if any(one.sighted for one in self.of[content.name]) else "free"

    def _overlooked(self, content: Content) -> None:
        """A file that came and went without having been seen."""
        if not content.sighted:
            self._excuse(content, self._excuse_of(content) or "free")

    def _gone(self, content: Content, *, whole: bool = False) -> None:
        """whole: a reader that has it open still has it all, and then its last line is one."""
        if whole and content.tail:
            self._add(content, content.tail)
            self.lost[content.tail], self.since[content.tail] = "free", 0
        content.path, content.closed = None, True
        self._excuse(content, "warned" if content.sighted else "free")
        content.tail = b""

    def _excuse(self, content: Content, why: str) -> None:
        """Those that may be missing by now; a loss that was told is not told again."""
        for text in content.lines:
            told = text in self.lost and self._is_excused(text, content)
            if text not in self.sent and not told:
                self.lost[text] = why
                self.since[text] = len(self.warnings)

    def _add(self, content: Content, text: bytes) -> None:
        self.lines[text] = content, len(content.lines)
        content.lines.append(text)
        if content.doubtful is not None and text == content.doubtful[0]:
            _, self.lost[text], self.since[text] = content.doubtful
        if content.name in self._forgotten:
            self.lost[text], self.since[text] = self._forgotten[content.name].why, len(self.warnings)

    def _text(self, more: int) -> bytes:
        self._count += 1
        return b"%0*d" % (WIDTH, self._count) + b"y" * more

    def _other_name(self, name: Path) -> Path:
        self._copies += 1
        return name.with_name(f"{name.name}.{self._copies}")

    def _touch(self, path: Path) -> None:
        """Times go on as the test says, and each write has another."""
        self._tick += 1
        at_ns = int(self._now() * 1e9) + self._tick * 1000
        os.utime(path, ns=(at_ns, at_ns))
