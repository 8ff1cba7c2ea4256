"""A git repository of somebody else's, which is read and never changed: a clone of our own shares its objects.

Whatever its configuration, the user's or the machine's contains, git runs no program for it, asks no network, and
prints what we asked for: all calls go through `_git`.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError, MachineError
from iolab.machines.system import command
from iolab.machines.system.command import CommandFailed

SHA_CHARACTERS = 40
NOTHING = "/bin/false"
PLAIN = {
    "advice.detachedHead": "false",
    "color.ui": "false",
    "core.alternateRefsCommand": NOTHING,
    "core.askPass": NOTHING,
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.gitProxy": NOTHING,
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": NOTHING,
    "credential.helper": "",
    "diff.external": NOTHING,
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "gpg.program": NOTHING,
    "gpg.ssh.program": NOTHING,
    "gpg.x509.program": NOTHING,
    "i18n.logOutputEncoding": "UTF-8",
    "log.mailmap": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}
"""What a repository may set that runs a program, asks a network or changes what is printed."""
VARIABLES = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
QUESTION_S = 20.0
"""What git answers at once, unless a file that it reads never ends."""
AUTHOR = {"user.name": "iolab", "user.email": "iolab@localhost", "core.autocrlf": "false"}
"""Who commits patches; their authors are the mails' own."""
FIELDS = ("%H", "%T", "%P", "%s")


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
        form = ("-z", f"--format={'%x00'.join(FIELDS)}")
        first = self._git("log", "-1", *form, ends[0])
        others = self._git("log", "--reverse", "--first-parent", *form, f"{ends[0]}..{ends[1]}")
        # Each field and each commit ends in a NUL, which no field has: a subject may have all other ends of lines.
        fields = [text for listed in (first, others) for text in listed.split("\0")[:-1]]
        rows = zip(*(fields[place :: len(FIELDS)] for place in range(len(FIELDS))), strict=True)
        return [Commit(sha, tree, len(parents.split()), subject) for sha, tree, parents, subject in rows]

    def merged(self, merge: str) -> tuple[str, str]:
        """Where the branch that a merge brought began and ended."""
        first, second = self.sha(f"{merge}^1"), self.sha(f"{merge}^2")
        return self._git("merge-base", first, second).split()[0], second

    def begin(self, branch: str) -> None:
        """Makes an empty repository of the directory."""
        self._git("init", "--quiet", "--template=", f"--initial-branch={branch}")

    def clone(self, to: Path) -> Repository:
        """A clone without files, which borrows this one's objects. It is there whole or not at all."""
        part = to.with_name(f"{to.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        options = ("--quiet", "--shared", "--no-checkout", "--template=")
        self._git("clone", *options, str(self.path), str(part), inside=False, changes={"protocol.file.allow": "always"})
        part.rename(to)
        return Repository(to)

    def check_out(self, sha: str) -> None:
        """Puts the commit's files into the worktree of a clone of ours; what is ignored or made by a build stays, for
        the next build. The caller sees to it that nobody else works in the clone: a lock on its index is one that a
        killed checkout left."""
        (self.path / ".git" / "index.lock").unlink(missing_ok=True)
        self._git("checkout", "--quiet", "--force", "--detach", sha)

    def apply_mail(self, mail: Path) -> str:
        """Commits the patch of a mail onto what is checked out of a clone of ours; the new commit's hash, which follows
        from the parent and the mail. CommandFailed, with everything as before, if it does not apply, not even by a
        merge of the files' versions that it names."""
        try:
            self._apply(mail)
        except CommandFailed as refused:
            self._forget_mail()
            try:
                self._apply(mail, "--3way")
            except CommandFailed:
                self._forget_mail()
                # The first says which line of which file; a merge says less.
                raise refused from None
        return self.sha("HEAD")

    def _apply(self, mail: Path, *options: str) -> None:
        words = ("--quiet", "--committer-date-is-author-date", "--no-gpg-sign", *options)
        self._git("am", *words, str(mail), changes=AUTHOR)

    def _forget_mail(self) -> None:
        """Also what a killed `git am` left."""
        shutil.rmtree(self.path / ".git" / "rebase-apply", ignore_errors=True)
        (self.path / ".git" / "index.lock").unlink(missing_ok=True)
        self._git("reset", "--quiet", "--hard")

    def begin_mails(self, sha: str) -> None:
        """Checks out the commit that patches are applied to, whatever was left of others."""
        shutil.rmtree(self.path / ".git" / "rebase-apply", ignore_errors=True)
        self.check_out(sha)

    def files_changed(self, before: str, after: str) -> list[str]:
        """The files that differ between two commits, from the top of the tree."""
        listed = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-only", self.sha(before), self.sha(after))
        return [name for name in listed.split("\0") if name]

    def has(self, sha: str) -> bool:
        """Whether there is such a commit."""
        try:
            self.sha(sha)
        except InputError:
            return False
        return True

    def sha(self, name: str) -> str:
        """The hash of the commit that the name stands for. InputError if there is none."""
        try:
            return self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", limit_s=QUESTION_S
            ).strip()
        except CommandFailed:
            raise InputError(f"{name}: no commit of this repository", where=str(self.path)) from None

    def _git(
        self,
        *arguments: str,
        inside: bool = True,
        changes: Mapping[str, str] | None = None,
        limit_s: float | None = None,
    ) -> str:
        where = ("-C", str(self.path)) if inside else ()
        begin = words(changes or {})
        try:
            return command.run(
                [*begin, *where, *arguments],
                package="git",
                where=str(self.path),
                variables=VARIABLES,
                limit_s=limit_s,
            )
        except MachineError as error:
            what = error.what.replace(" ".join(begin), "git", 1)
            if isinstance(error, CommandFailed):
                raise CommandFailed(what, where=error.where) from None
            raise MachineError(what, where=error.where, remedy=error.remedy) from None


def words(changes: Mapping[str, str]) -> list[str]:
    """How each call of git begins."""
    return ["git", *(word for key, value in {**PLAIN, **changes}.items() for word in ("-c", f"{key}={value}"))]


def split_mails(source: Path, directory: Path) -> list[Path]:
    """The mails of an mbox, of a maildir or of a single mail, a file each in `directory`, in their order there.
    CommandFailed: git reads none there."""
    Repository(directory)._git("mailsplit", "-b", f"-o{directory}", "--", str(source), inside=False)
    return sorted(one for one in directory.iterdir() if one.name.isdigit())


def repository(path: Path) -> Repository:
    """InputError if it is none, or one that git refuses to read."""
    found = Repository(Path(os.path.abspath(path)))  # noqa: PTH100 (links stay as typed)
    try:
        asked = ("--absolute-git-dir", "--git-common-dir")  # the second differs in a worktree beside the first
        answers = [found._git("rev-parse", one, limit_s=QUESTION_S).removesuffix("\n") for one in asked]
    except CommandFailed as error:
        raise InputError(f"no git repository: {error.what}", where=str(path)) from None
    for directory in {os.path.realpath(found.path / answer) for answer in answers}:
        _check_files(directory)
    return found


def _check_files(directory: str) -> None:
    """InputError if git would read what never ends, a pipe or a device, in the place of one of its files. Its daemon's
    socket lies there too, and is not read."""
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 (of thousands of objects)
            with suppress(OSError):
                kind = os.stat(path).st_mode  # noqa: PTH116
                if not (stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
                    raise InputError(
                        "is a pipe or a device; git would read it without end", where=path, remedy="remove it"
                    )
