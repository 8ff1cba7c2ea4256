"""An experiment whose settings are the commits of a kernel tree: written out, so that its run can be read without the
repository."""

from __future__ import annotations

from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.base.toml import TomlTable, parse, write
from iolab.domain.machine import kind_of
from iolab.machines.system import git


def with_commits(text: str, name: str, repository: Path, good: str, bad: str, machine: str | None = None) -> str:
    """The experiment with a setting for each commit from good to bad along first parents, oldest first, whose kernel is
    that commit's. If the experiment has one setting, each has that setting's other keys, such as a scheduler.

    Args:
        text: the experiment's; `name` stands for its file in errors.
        machine: instead of the one that it names.

    Raises:
        InputError: an experiment that is not a guest machine's or has several settings; no such repository or commits.
    """
    document = parse(text, name).values
    if kind_of(machine or document.get("machine")) != "guest":
        raise InputError(
            "commits are the kernels of a guest machine",
            where=f"{name}: machine",
            remedy='write machine = "guest:KERNEL", or measure commits by a command: --measure',
        )
    settings = document.get("settings") or {}
    beside: TomlTable = next(iter(settings.values()), {}) if isinstance(settings, dict) else {}
    if len(settings) > 1 or "kernel" in beside:
        what = "the commits are the kernels of one setting"
        raise InputError(what, where=f"{name}: settings", remedy="leave one, without a kernel, or none")
    if settings:
        text = write({key: value for key, value in document.items() if key != "settings"})
    tree = repository.absolute()
    lines = [f"\n# {one_line(good)}..{one_line(bad)} of {one_line(str(tree))}"]
    for commit in git.repository(tree).commits(good, bad):
        setting = {**beside, "kernel": f"{tree}@{commit.sha}"}
        lines += [f"\n# {one_line(commit.subject)}", write({"settings": {commit.short: setting}}).strip()]
    return text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
