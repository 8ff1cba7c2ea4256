"""Debian's source of the kernel by name: fetched, or as installed, and made a git tree. Packages of three files."""

import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.machines.guest import cache, debian_source
from iolab.machines.system import git
from support.command_line import CommandLine
from test_bisect_git import run_git

NAME = "linux-source-6.1"
VERSION = "6.1.9-1"
MAIL = """\
From: a@example.org
Subject: [PATCH] bio: another line

---
diff --git a/block/bio.c b/block/bio.c
--- a/block/bio.c
+++ b/block/bio.c
@@ -1 +1 @@
-what is not there
+another line
"""
TOOLS = {
    "apt-cache": f"""\
case "$1" in
pkgnames) printf '{NAME}\\nlinux-source-6.12\\nlinux-source\\n';;
show) [ "$3" != {NAME} ] || printf 'Package: {NAME}\\nVersion: {VERSION}\\nSize: 139331676\\n';;
esac
""",
    "apt-get": """\
[ "$1 $3" = "download NAME=VERSION" ] && [ -f "STORE/package.deb" ] || { echo "E: no network" >&2; exit 100; }
cp "STORE/package.deb" .
""".replace("NAME", NAME).replace("VERSION", VERSION),
    "dpkg-query": f"[ ! -f 'STORE/is-installed' ] || printf '%s' {VERSION}\n",
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the package lies that apt fetches; apt itself is three scripts, before others in PATH."""
    store = tmp_path / "store"
    tools = tmp_path / "tools"
    source = tmp_path / "made" / NAME
    package = tmp_path / "package"
    for directory in (store, tools, source / "block", package / "DEBIAN", package / "usr" / "src"):
        directory.mkdir(parents=True)
    for name, text in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{text.replace('STORE', str(store))}")
        (tools / name).chmod(0o755)
    (source / "block" / "bio.c").write_text("a line\n")
    (source / 'run \\ "me".sh').write_text("exit 0\n")
    (source / 'run \\ "me".sh').chmod(0o755)
    (source / "link").symlink_to("block/bio.c")
    for path in (source, *source.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
    archive = package / "usr" / "src" / f"{NAME}.tar.xz"
    with tarfile.open(archive, "w:xz") as files:
        files.add(source, NAME)
    (package / "DEBIAN" / "control").write_text(
        f"Package: {NAME}\nVersion: {VERSION}\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a\n"
    )
    subprocess.run(["dpkg-deb", "--build", package, store / "package.deb"], check=True, capture_output=True)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(debian_source, "INSTALLED", tmp_path / "usr-src")
    return store


def made(lines: list[str] | None = None) -> Path:
    return debian_source.tree(NAME, [].append if lines is None else lines.append)


def left() -> list[str]:
    return sorted(path.name for path in cache.directory(debian_source.FOLDER).iterdir())


def test_a_package_becomes_a_tree_of_one_commit(store: Path) -> None:
    lines: list[str] = []
    tree = made(lines)
    assert lines == [
        f"{NAME} {VERSION}: fetching 139 MB with apt-get",
        f"{NAME} {VERSION}: making a git tree of {NAME}.tar.xz",
    ]
    (only,) = git.repository(tree).commits("HEAD", "HEAD")
    assert only.subject == f"{NAME} {VERSION}"
    listed = run_git(tree, "-c", "core.quotePath=false", "ls-tree", "-r", "-z", "HEAD").split("\0")
    kinds = {line.partition("\t")[2]: line[:6] for line in listed if line}
    assert kinds == {"block/bio.c": "100644", "link": "120000", 'run \\ "me".sh': "100755"}
    assert run_git(tree, "show", "HEAD:block/bio.c") == "a line"
    assert run_git(tree, "show", "HEAD:link") == "block/bio.c"
    assert sorted(path.name for path in tree.iterdir()) == [".git"]
    # What is there is not fetched again.
    (store / "package.deb").unlink()
    assert made(lines) == tree and len(lines) == 2


def test_the_same_package_is_the_same_commit(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = git.repository(made()).sha("HEAD")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert git.repository(made()).sha("HEAD") == first


def test_the_newest_tree_is_taken(store: Path) -> None:
    for version in ("6.1.9-1", "6.1.100-1", "6.1.20-1"):
        (cache.directory(debian_source.FOLDER) / f"{NAME}_{version}").mkdir()
    (cache.directory(debian_source.FOLDER) / "linux-source-6.12_6.12.9-1").mkdir()
    assert made().name == f"{NAME}_6.1.100-1"


def test_an_installed_package_is_not_fetched(store: Path, tmp_path: Path) -> None:
    debian_source.INSTALLED.mkdir()
    (tmp_path / "package" / "usr" / "src" / f"{NAME}.tar.xz").rename(debian_source.INSTALLED / f"{NAME}.tar.xz")
    (store / "package.deb").rename(store / "is-installed")
    lines: list[str] = []
    assert git.repository(made(lines)).has("HEAD")
    assert lines == [f"{NAME} {VERSION}: making a git tree of {NAME}.tar.xz"]
    assert (debian_source.INSTALLED / f"{NAME}.tar.xz").exists()


def no_network(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "package.deb").unlink()


def no_apt(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = debian_source.command.find
    monkeypatch.setattr(debian_source.command, "find", lambda name: None if name == "apt-get" else find(name))


def half_an_archive(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = store.parent / "package" / "usr" / "src" / f"{NAME}.tar.xz"
    archive.write_bytes(archive.read_bytes()[:-40])
    package = [str(store.parent / "package"), str(store / "package.deb")]
    subprocess.run(["dpkg-deb", "--build", *package], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_network, "the package could not be fetched: E: no network; is a package index reachable"),
        (no_apt, "takes apt and dpkg; give the path of a git tree instead"),
        (half_an_archive, "no whole archive of source"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_and_leaves_nothing(
    spoil: Callable[[Path, pytest.MonkeyPatch], None], said: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(store, monkeypatch)
    with pytest.raises(MachineError) as refused:
        made()
    assert said in str(refused.value)
    assert left() == []


def test_a_name_that_no_package_has_is_refused(store: Path) -> None:
    with pytest.raises(InputError, match=r"linux-source-6\.1"):
        debian_source.tree("linux-source-6.2", [].append)


def test_a_series_is_applied_to_it(store: Path, iolab: CommandLine) -> None:
    (iolab.cwd / "series.mbox").write_text(MAIL)
    done = iolab("cost", "series.mbox", "--git", NAME, status=2)
    assert f"{NAME} {VERSION}: fetching 139 MB" in done.stderr
    assert "'bio: another line', does not apply to HEAD" in done.stderr and "block/bio.c" in done.stderr
