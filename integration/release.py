"""`make release`: sdist, wheel, SBOM and digests of the commit that is checked out, into `dist/`; nothing is uploaded.

What git has of the commit is built twice, in two folders, by the tools of this environment; files are made with the
commit's time (SOURCE_DATE_EPOCH). Ends with 0 when both builds are equal byte by byte, hold what they should, and pass
`twine check`; with 1 otherwise.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from gzip import GzipFile
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Final

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from parquet_sink import __version__

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
NAME: Final = f"parquet_sink-{__version__}"
NOT_DELIVERED: Final = {"dev", "release", "docs"}
IN_C: Final = (
    "parquet_sink/kafka/native_reader.c",
    "parquet_sink/convert/json/native_json.c",
    "parquet_sink/addons/formats/protobuf/native_protobuf.c",
)
"""Extras for those who change the package: no part of an installation."""
_LINK: Final = "120000"
UNFIT: Final = re.compile(r"\.so$|\.pyc$|^(tests|integration|build|dist|\.venv)/|\.(parquet|sqlite|log|jar|pem)$")
"""What no sdist has: compiled files, tests and their data, and what an environment leaves behind."""


class Wrong(Exception):
    """The release is not fit, and why."""


def run(*words: str | Path, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a command writes to standard output; its standard error is shown."""
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Wrong(f"`{' '.join(map(str, words))}` ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def digest(path: Path) -> str:
    """SHA-256, as `sha256sum` has it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packed_again(path: Path, at_s: int) -> None:
    """Gives an sdist one order, one owner and one time: setuptools writes those of the machine."""
    with tarfile.open(path) as old:
        files = [(member, old.extractfile(member)) for member in sorted(old.getmembers(), key=lambda one: one.name)]
        made = path.with_suffix(".new")
        with (
            made.open("wb") as raw,
            GzipFile(filename="", mode="wb", fileobj=raw, mtime=at_s) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            for member, content in files:
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                member.mtime, member.pax_headers = at_s, {}
                member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                new.addfile(member, content)
    made.replace(path)


def built(folder: Path, at_s: int) -> Path:
    """The folder with sdist and wheel; the wheel is built of what the sdist holds."""
    python, source, out = Path(sys.executable), folder / "source", folder / "out"
    source.mkdir(parents=True)
    archive = folder / "source.tar"
    run("git", "archive", "--output", archive, "HEAD")
    with tarfile.open(archive) as files:
        files.extractall(source, filter="data")
    flags = f"-g0 -ffile-prefix-map={folder}=."  # else the folder's name stands in the compiled reader
    env = os.environ | {"SOURCE_DATE_EPOCH": str(at_s), "CFLAGS": flags, "TMPDIR": str(folder)}
    env |= {"PATH": f"{python.parent}{os.pathsep}{env['PATH']}", "PYTHONHASHSEED": "0"}
    run(python, "-m", "build", "--no-isolation", "--sdist", "--outdir", out, source, env=env)
    packed_again(out / f"{NAME}.tar.gz", at_s)
    unpacked = folder / "unpacked"
    with tarfile.open(out / f"{NAME}.tar.gz") as files:
        files.extractall(unpacked, filter="data")
    run(python, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder / "raw", unpacked / NAME, env=env)
    (wheel,) = (folder / "raw").glob("*.whl")
    run(python, "-m", "auditwheel", "repair", "--wheel-dir", out, wheel, env=env)  # names the oldest Linux it runs on
    return out


def names_in(path: Path) -> list[str]:
    """The files of an sdist, without its top folder, or of a wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return sorted(wheel.namelist())
    with tarfile.open(path) as sdist:
        return sorted(name.partition("/")[2] for name in sdist.getnames() if "/" in name)


def check_contents(sdist: Path, wheel: Path) -> None:
    """Each has what it should, and nothing of tests or of a machine."""
    in_sdist, in_wheel = names_in(sdist), names_in(wheel)
    strange = [name for name in in_sdist if UNFIT.search(name)]
    strange += [name for name in in_wheel if not name.startswith(("parquet_sink/", f"{NAME}.dist-info/"))]
    if strange:
        raise Wrong(f"These files have no place in a release: {', '.join(strange[:10])}.")
    tracked = [line.split() for line in run("git", "ls-files", "--stage", "parquet_sink").splitlines()]
    wanted = {name for mode, *_, name in tracked if mode != _LINK and not name.endswith(".c")}
    wanted |= {
        f"parquet_sink/addons/devkit/demo/{name}" for name in run("git", "ls-files", "config/*.properties").split()
    }
    missing = [*(wanted - set(in_wheel)), *(wanted - set(in_sdist))]
    missing += {"LICENSE", "README.md", "pyproject.toml", *IN_C} - set(in_sdist)
    missing += [] if sum(name.endswith(".abi3.so") for name in in_wheel) == len(IN_C) else ["what is compiled"]
    if missing:
        raise Wrong(
            f"The release lacks {', '.join(sorted(missing)[:10])}. Files of the package need a pattern in package-data."
        )


def needed() -> Iterator[str]:
    """`name==version` of all that an installation with each of its extras has, as this environment has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: each for name, each in project["optional-dependencies"].items() if name not in NOT_DELIVERED}
    waiting = [Requirement(one) for each in (project["dependencies"], *extras.values()) for one in each]
    seen: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        for extra in {"", *one.extras} - {known for name, known in seen if name == canonicalize_name(one.name)}:
            seen.add((canonicalize_name(one.name), extra))
            for text in requires(one.name) or ():
                further = Requirement(text)
                if further.marker is None or further.marker.evaluate(default_environment() | {"extra": extra}):
                    waiting.append(further)
    yield from sorted({f"{name}=={distribution(name).version}" for name, _ in seen})


def write_sbom(path: Path, at_s: int) -> int:
    """CycloneDX, of what is installed here; how many packages it names."""
    lines = list(needed())
    listed = path.with_suffix(".txt")
    listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("requirements", listed, "--pyproject", ROOT / "pyproject.toml", "--mc-type", "application")
    env = os.environ | {"SOURCE_DATE_EPOCH": str(at_s)}
    run(sys.executable, "-m", "cyclonedx_py", *words, "--output-reproducible", "--of", "JSON", "-o", path, env=env)
    listed.unlink()
    found = json.loads(path.read_text(encoding="utf-8"))
    found["metadata"]["component"]["version"] = __version__  # which pyproject.toml takes from the package
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return len(lines)


def release() -> None:
    """Raises Wrong."""
    if run("git", "status", "--porcelain"):
        raise Wrong("There are changes that are not committed: a release is of a commit. See `git status`.")
    if f"## [{__version__}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        raise Wrong(f"CHANGELOG.md has no section for {__version__}: rename Unreleased, with the date.")
    commit, at = run("git", "log", "-1", "--format=%H %ct").split()
    with tempfile.TemporaryDirectory() as temporary:
        first, second = (built(Path(temporary, name), int(at)) for name in ("first", "second-and-longer"))
        names = sorted(path.name for path in first.iterdir())
        differ = [name for name in names if digest(first / name) != digest(second / name)]
        if differ:
            raise Wrong(f"Two builds of one commit differ: {', '.join(differ)}.")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
    (wheel,), sdist = DIST.glob("*.whl"), DIST / f"{NAME}.tar.gz"
    check_contents(sdist, wheel)
    print(run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel).strip())
    sbom = DIST / f"{NAME}.cdx.json"
    packages = write_sbom(sbom, int(at))
    files = (sdist, wheel, sbom)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in files)
    (DIST / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(f"commit {commit}: two builds are equal; the SBOM names {packages} packages; in dist/:\n\n{sums}")
    print(f"""What is left for a person:
  1. read what `.ci/run` said of this commit, and CHANGELOG.md
  2. git tag --sign v{__version__} && git push origin v{__version__}
  3. compare SHA256SUMS with a second machine that has the same Python and C compiler
  4. the wheel's name has the oldest Linux that it runs on; for older ones build it in a manylinux container
  5. twine upload {sdist.relative_to(ROOT)} {wheel.relative_to(ROOT)}
  6. publish dist/SHA256SUMS and dist/{sbom.name} beside the tag
  7. set the next version in parquet_sink/__init__.py, with an empty Unreleased in CHANGELOG.md""")


def main() -> int:
    """The exit status."""
    try:
        release()
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
