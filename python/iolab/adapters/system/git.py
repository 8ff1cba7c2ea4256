"""A git repository of somebody else's, which is read and never changed: a clone of our own shares its objects."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from iolab.adapters.system import command
from iolab.adapters.system.command import CommandFailed
from iolab.base.errors import InputError

SHA_CHARACTERS = 40
NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


@dataclass(frozen=True)
class Commit:
    """`tree`: the hash of its contents; `parents`: of a merge, more than one."""

    sha: str
    tree: str
    parents: int
    subject: str

    @property
    def short(self) -> str:
        """The hash as people write it; the name of a version that is no commit."""
        return self.sha[:12] if len(self.sha) == SHA_CHARACTERS else self.sha


@dataclass(frozen=True)
class Repository:
    """A repository, or a worktree of one."""

    path: Path

    def commits(self, good: str, bad: str) -> list[Commit]:
        """Good, and every commit after it to bad along first parents, oldest first. InputError for what is no commit,
        or no ancestor."""
        ends = [self.sha(name) for name in (good, bad)]
        try:
            self._git("merge-base", "--is-ancestor", *ends)
        except CommandFailed:
            raise InputError(f"{good} is no ancestor of {bad}", where=str(self.path)) from None
        form = "--format=%H%x00%T%x00%P%x00%s"
        listed = [
            self._git("log", "-1", form, ends[0]),
            self._git("log", "--reverse", "--first-parent", form, f"{ends[0]}..{ends[1]}"),
        ]
        rows = [line.split("\0") for text in listed for line in text.splitlines()]
        return [Commit(sha, tree, len(parents.split()), subject) for sha, tree, parents, subject in rows]

    def merged(self, merge: str) -> tuple[str, str]:
        """Of what a merge brought, where its branch began and where it ended."""
        first, second = self.sha(f"{merge}^1"), self.sha(f"{merge}^2")
        return self._git("merge-base", first, second).split()[0], second

    def clone(self, to: Path) -> Repository:
        """A clone without files, which borrows this one's objects. It is there whole or not at all."""
        part = to.with_name(f"{to.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        options = ("--quiet", "--shared", "--no-checkout", "--template=")
        self._git("clone", *options, str(self.path), str(part), inside=False)
        part.rename(to)
        return Repository(to)

    def check_out(self, sha: str) -> None:
        """Puts the commit's files into the worktree of a clone of ours; what is ignored or made by a build stays, for
        the next build. The caller sees to it that nobody else works in the clone: a lock on its index is one that a
        killed checkout left."""
        (self.path / ".git" / "index.lock").unlink(missing_ok=True)
        self._git("checkout", "--quiet", "--force", "--detach", sha)

    def sha(self, name: str) -> str:
        """The hash of the commit that the name stands for. InputError if there is none."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
        except CommandFailed:
            raise InputError(f"{name}: no commit of this repository", where=str(self.path)) from None

    def _git(self, *arguments: str, inside: bool = True) -> str:
        where = ("-C", str(self.path)) if inside else ()
        return command.run(["git", *NO_HOOKS, *where, *arguments], package="git", where=str(self.path))


def repository(path: Path) -> Repository:
    """InputError if it is none, or one that git refuses to read."""
    found = Repository(Path(os.path.abspath(path)))  # noqa: PTH100 (links stay as typed)
    try:
        found._git("rev-parse", "--git-dir")
    except CommandFailed as error:
        raise InputError(f"no git repository: {error.what}", where=str(path)) from None
    return found
