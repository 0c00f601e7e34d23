"""What MkDocs cannot know of this repository: the navigation, files outside of docs/, and names of the Python API.

- The navigation is docs/README.md: its headings are sections, its list items are pages.
- Pages at the top (ARCHITECTURE.md, say) and files that a page links to become pages of the site. So does a folder.
- A line of names in docs/reference/python-api.md becomes their signatures and docstrings.

MkDocs is imported where it is needed only, so that tests of the functions do without it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
TOP: Final = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages outside of docs/ in the navigation. README.md is the home page on GitHub; docs/README.md is it here."""
API_PAGE: Final = "reference/python-api.md"
_FILES: Final = "files/"
"""Where files are that are no pages of docs/."""
_PICTURES: Final = (".png", ".svg")
_LINK: Final = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_FENCE: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {"py": "python", "yml": "yaml", "yaml": "yaml", "json": "json", "toml": "toml", "service": "ini"}


_LABEL: Final = re.compile(r"^( *```\w+) ([^`{=\n]+)$", re.MULTILINE)
"""A fence whose language is followed by what it is: `json input`."""


def site_path(path: str) -> str:
    """Where the site has a file or folder of the repository."""
    if path.startswith("docs/") and path.endswith((".md", *_PICTURES)):
        return path.removeprefix("docs/")
    if path.endswith(".md"):
        return f"{_FILES}{path}"
    return f"{_FILES}{path}/index.md" if (ROOT / path).is_dir() else f"{_FILES}{path}.md"


def of_site(page: str) -> str:
    """The path in the repository of a page that has links of its own."""
    return page.removeprefix(_FILES) if page.startswith(_FILES) else f"docs/{page}"


def linked(path: str, text: str) -> Iterator[str]:
    """What a page of the repository links to in the repository, by paths."""
    for part in _FENCE.split(text)[::2]:
        for link in _LINK.findall(part):
            target = normpath(join(dirname(path), link.partition("#")[0] or "/"))
            if not target.startswith(("..", "/")) and (ROOT / target).exists():
                yield target


def with_links(path: str, text: str) -> str:
    """The page with links that lead to the same files on the site, and with labels of its fences as MkDocs has them."""

    def moved(found: re.Match[str]) -> str:
        target, mark, anchor = found[1].partition("#")
        whole = normpath(join(dirname(path), target or "/"))
        if whole.startswith(("..", "/")) or not (ROOT / whole).exists():
            return found[1]
        return relpath(site_path(whole), dirname(site_path(path)) or ".") + mark + anchor

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(moved, part) for part in parts[::2]]
    return _LABEL.sub(r'\1 title="\2"', "".join(parts))


def navigation(home: str) -> list[Any]:
    """The navigation from the text of docs/README.md: `##` and `###` are sections, `- [Title](page)` are pages."""
    found: list[Any] = ["README.md"]
    section = found
    for line in home.splitlines():
        if heading := re.match(r"(##+) (.+)", line):
            within = found if heading[1] == "##" else next(iter(found[-1].values()))
            section = []
            within.append({heading[2]: section})
        elif page := re.match(r"- \[([^]]+)\]\(([^)]+\.md)\)", line):
            section.extend(_entries(page[1], page[2]))
    return [one for one in found if isinstance(one, str) or next(iter(one.values()))]


def _entries(title: str, page: str) -> list[Any]:
    path = site_path(normpath(join("docs", page)))
    if path == f"{_FILES}README.md":
        return []  # docs/README.md is the home page here
    if not path.endswith("/README.md"):
        return [{title: path}]
    others = sorted(one.name for one in (ROOT / "docs" / path).parent.glob("*.md") if one.name != "README.md")
    return [{title: [path, *(join(dirname(path), name) for name in others)]}]


def page_of(path: str) -> str:
    """The text of a page for a file or a folder that is no page."""
    whole = ROOT / path
    if path.endswith(".md"):
        return whole.read_text(encoding="utf-8")
    head = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    if whole.is_dir():
        names = [str(one.relative_to(whole)) for one in files_in(whole)]
        return head + "".join(f"- [{name}]({name.removesuffix('.md')}.md)\n" for name in names)
    language = _LANGUAGES.get(whole.suffix.removeprefix("."), whole.suffix.removeprefix(".") or "text")
    return f"{head}```` {{ .{language} }}\n{whole.read_text(encoding='utf-8')}\n````\n"


def files_in(folder: Path) -> list[Path]:
    """The files of a folder and those below, without what Python keeps there."""
    found = (one for one in sorted(folder.rglob("*")) if one.is_file())
    return [one for one in found if not any(part == "__pycache__" or ".egg-info" in part for part in one.parts)]


def outside(pages: list[str]) -> dict[str, str]:
    """By path in the repository, the text of all that pages lead to and that is no page of docs/."""
    found: dict[str, str] = {}
    waiting = [*pages, *TOP]
    while waiting:
        path = waiting.pop()
        inside = path.startswith("docs/") and path.endswith((".md", *_PICTURES))
        if path in found or path.endswith(_PICTURES):
            continue
        text = page_of(path)
        if not inside:
            found[path] = text
        if path.endswith(".md"):
            waiting.extend(one for one in linked(path, text) if one not in pages)
        elif (ROOT / path).is_dir():
            waiting.extend(str(one.relative_to(ROOT)) for one in files_in(ROOT / path))
    return found


def with_signatures(text: str) -> str:
    """The page of the Python API, each line of names followed by what the source says of them."""
    module = ""
    lines = []
    for line in text.splitlines():
        if named := re.fullmatch(r"<!-- from (\S+) -->", line):
            module = named[1]
        elif re.fullmatch(r"`\w+`(, ?`\w+`)*,?", line):
            lines.extend(f"\n::: {module}.{name}\n" for name in re.findall(r"`(\w+)`", line))
        else:
            lines.append(line)
    return "\n".join(lines)


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """The navigation."""
    config.nav = navigation((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    return config


def on_files(files: "Files", *, config: "MkDocsConfig") -> "Files":
    """Pages for what is not below docs/, or no page there."""
    from mkdocs.structure.files import File

    pages = [f"docs/{one.src_uri}" for one in files.documentation_pages()]
    for path, text in outside(pages).items():
        files.append(File.generated(config, site_path(path), content=text))
    return files


def on_page_markdown(markdown: str, *, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Links as the site has them, and the Python API's signatures."""
    path = of_site(page.file.src_uri)
    if page.file.src_uri == API_PAGE:
        markdown = with_signatures(markdown)
    return with_links(path, markdown) if (ROOT / path).is_file() else markdown
