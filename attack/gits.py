"""Repositories that lie: subjects of any bytes, configurations that name programs, and damaged files. A search among
their commits ends in clear lines, in time, and runs nothing that they name."""

import os
import random
import shutil
import subprocess
from pathlib import Path

from family import Family
from in_child import lane_of
from mutate import mutated

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@a.invalid", "-c", "commit.gpgSign=false"]
COMMITS = 5
ENDS = ["\u2028", "\u0085", "\f", "\v", "\x1c", "\x1d", "\x1e", "\r", "\x1b[31m", "\t", "\u202e", " "]
PROGRAMS = [
    *("log.showSignature=true", "gpg.program", "gpg.ssh.program", "core.sshCommand", "core.fsmonitor", "core.pager"),
    *("core.editor", "core.alternateRefsCommand", "diff.external", "core.askPass", "credential.helper"),
    *("filter.odd.smudge", "filter.odd.process", "diff.odd.textconv", "uploadpack.packObjectsHook", "sequence.editor"),
    *(
        "merge.odd.driver",
        "core.gitProxy",
        "remote.origin.uploadpack",
        "alias.log",
        "alias.rev-list",
        "init.templateDir",
    ),
    *(
        "alias.rev-list",
        "pager.log",
        "interactive.diffFilter",
        "ssh.variant",
        "trailer.odd.command",
        "submodule.recurse=true",
    ),
]
VALUES = [
    *("i18n.logOutputEncoding=UTF-16", "i18n.commitEncoding=nonsense", "log.decorate=full", "color.ui=always"),
    *("format.pretty=fuller", "log.date=format:%%", "core.quotePath=true", "log.mailmap=true", "core.abbrev=4"),
    *("core.bare=true", "core.worktree=/etc", "core.repositoryFormatVersion=9", "extensions.partialClone=origin"),
    *("remote.origin.promisor=true", "remote.origin.url=ssh://nowhere.invalid/x", "include.path=/dev/zero"),
    *("core.checkStat=minimal", "core.logAllRefUpdates=always", "core.sparseCheckout=true", "core.symlinks=false"),
    *("http.proxy=http://127.0.0.1:1", "safe.directory=", "core.compression=99", "core.bigFileThreshold=1"),
]


class Cases:
    """In the child."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.case = directory / "case"
        self.ran = directory / "ran"
        self.program = directory / "program"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.ran}\nexit 1\n')
        self.program.chmod(0o755)

    def __call__(self, case: int) -> list[str]:
        from child import call

        rng = random.Random(f"{self.seed} gits {case}")
        shutil.rmtree(self.case, ignore_errors=True)
        repository = self.case / "repository"
        repository.mkdir(parents=True)
        self.ran.unlink(missing_ok=True)
        self._make(repository, rng)
        begin = ["bisect", "v0..main", "--git", str(repository), "--measure", "true", "--most", "6", "--confirm", "2"]
        out = ["--out", str(self.case / "hunt")]
        _, wrong = call(*begin, *out, *(["--json"] if rng.random() < 0.3 else []), statuses=(0, 1, 2, 3))
        if (self.case / "hunt").exists() and rng.random() < 0.3:
            wrong += call("bisect", "--resume", str(self.case / "hunt"))[1]
        if self.ran.exists():
            wrong.append(f"a program that the repository names ran: {self.ran.read_text()[:300]!r}")
        return wrong

    def _make(self, repository: Path, rng: random.Random) -> None:
        _git(repository, "init", "--quiet", "--initial-branch=main")
        (repository / ".gitattributes").write_text("* filter=odd diff=odd merge=odd\n")
        for number in range(COMMITS):
            (repository / "file").write_text(f"{number}\n")
            _git(repository, "add", ".")
            _git(repository, "commit", "--quiet", "--cleanup=verbatim", "-F", "-", given=_subject(rng))
            if number == 0:
                _git(repository, "tag", "v0")
        for _ in range(rng.choice((0, 1, 3, 6))):
            self._configure(repository / ".git", rng)
        if rng.random() < 0.4:
            self._damage(repository / ".git", rng)

    def _configure(self, git: Path, rng: random.Random) -> None:
        if rng.random() < 0.25:
            hook = git / "hooks" / rng.choice(["post-checkout", "reference-transaction", "post-index-change"])
            hook.parent.mkdir(exist_ok=True)
            hook.unlink(missing_ok=True)
            hook.symlink_to(self.program)
            return
        name, _, value = rng.choice(rng.choice([PROGRAMS, VALUES])).partition("=")
        section, _, key = name.rpartition(".")
        part, _, sub = section.partition(".")
        header = f'[{part} "{sub}"]' if sub else f"[{part}]"
        with (git / "config").open("a") as file:
            file.write(f"{header}\n\t{key} = {value or self.program}\n")

    def _damage(self, git: Path, rng: random.Random) -> None:
        files = [path for path in sorted(git.rglob("*")) if path.is_file() and not path.is_symlink()]
        path = rng.choice([one for one in files if "hooks" not in one.parts])
        kind = rng.random()
        content = path.read_bytes()
        path.chmod(0o644)
        if kind < 0.6:
            path.write_bytes(mutated(content, rng, [content]))
        elif kind < 0.8:
            path.unlink()
        else:
            path.unlink()
            os.mkfifo(path) if rng.random() < 0.5 else path.symlink_to("/dev/zero")


def _subject(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.4:
        return f"a{rng.choice(ENDS)}b".encode()
    if kind < 0.6:
        return rng.randbytes(rng.choice([1, 20, 200])).replace(b"\0", b"x") + b"x"
    return rng.choice([b"plain", b"%x00%H %n", b"-n1 --help", b"x" * 20_000, b"a\n\nb" * 500, b"$(touch ran)"])


def _git(at: Path, *arguments: str, given: bytes = b"") -> None:
    subprocess.run(["git", "-C", at, *AUTHOR, *arguments], input=given, check=True, capture_output=True)


FAMILY = Family(
    name="gits",
    what="repositories whose commits, configurations and files lie, searched: clear lines, and nothing of theirs runs",
    attacks=500,
    attacks_quick=6,
    lane=lambda lane: lane_of("gits", lane),
)
