"""An experiment whose settings are the commits of a kernel tree: written out, so that its run can be read without the
repository."""

from __future__ import annotations

from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.base.toml import parse
from iolab.domain.machine import kind_of
from iolab.machines.system import git


def with_commits(text: str, name: str, repository: Path, good: str, bad: str, machine: str | None = None) -> str:
    """The experiment with a setting for each commit from good to bad along first parents, oldest first, whose kernel is
    that commit's.

    Args:
        text: the experiment's; `name` stands for its file in errors.
        machine: instead of the one that it names.

    Raises:
        InputError: an experiment that is not a guest machine's or has settings; no such repository or commits.
    """
    document = parse(text, name).values
    if kind_of(machine or document.get("machine")) != "guest":
        raise InputError(
            "commits are the kernels of a guest machine",
            where=f"{name}: machine",
            remedy='write machine = "guest:KERNEL", or measure commits by a command: --measure',
        )
    if document.get("settings"):
        raise InputError("the commits are the settings", where=f"{name}: settings", remedy="leave [settings] out")
    tree = repository.absolute()
    lines = [f"\n# {one_line(good)}..{one_line(bad)} of {one_line(str(tree))}"]
    for commit in git.repository(tree).commits(good, bad):
        lines += [f"\n# {one_line(commit.subject)}", f'[settings."{commit.short}"]']
        lines += [f"kernel = {_quoted(f'{tree}@{commit.sha}')}"]
    return text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
