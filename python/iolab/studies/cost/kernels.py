"""The kernels that `iolab cost` compares: two by name, the ends of a range of commits, or a series of patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.domain.cost.report import KernelVersion
from iolab.machines.guest import debian_source, describe, kernel, series, tree
from iolab.machines.guest.tree import BuildFailed
from iolab.machines.system import git

BASE, TIP = "base", "tip"


@dataclass(frozen=True)
class Versions:
    """What is compared, oldest first."""

    kernels: list[KernelVersion]
    """Base, then each patch if asked for, then the tip."""
    steps: list[KernelVersion]
    """What lies between base and tip, oldest first: built only if the tip does not build, unless asked for."""
    tree: Path | None = None
    files: list[str] = field(default_factory=list)
    """What differs between base and tip, from the top of the tree."""
    notes: list[str] = field(default_factory=list)
    """How the kernels were built, if they were built now."""

    @property
    def base(self) -> KernelVersion:
        """The first."""
        return self.kernels[0]

    @property
    def tip(self) -> KernelVersion:
        """The last."""
        return self.kernels[-1]


def named(base: str, tip: str) -> Versions:
    """Two kernels that guest machines know by name."""
    return Versions([KernelVersion(BASE, base, base), KernelVersion(TIP, tip, tip)], [])


def tree_of(named: Path, report_line: Callable[[str], None]) -> Path:
    """The git tree of that path, or of Debian's source of that name, which is fetched if it is not there."""
    name = str(named)
    return (
        debian_source.tree(name, report_line)
        if debian_source.is_source(name) and not named.exists()
        else named.absolute()
    )


def of_range(tree: Path, text: str, *, each: bool) -> Versions:
    """The ends of `A..B`, and the commits between along first parents. InputError: there are none."""
    repository = git.repository(tree)
    first, dots, last = text.partition("..")
    if not (first and dots) or last.startswith("."):
        raise InputError(f"{text}: expected a range of commits", where="iolab cost", remedy="such as v6.12..my-branch")
    commits = repository.commits(first, last or "HEAD")
    if len(commits) < 2:
        raise InputError(f"no commit lies between {first} and {last or 'HEAD'}", where=str(tree))
    made = [(commit.sha, commit.subject) for commit in commits]
    return _versions(tree, made, repository.files_changed(first, last or "HEAD"), each=each)


def of_series(tree: Path, base: str, sources: Sequence[Path], *, each: bool) -> Versions:
    """A series of patches on the commit `base` (`series.apply`)."""
    applied = series.apply(tree, base, sources)
    (start,) = git.repository(tree).commits(base, base)
    made = [(start.sha, start.subject), *((patch.sha, patch.subject) for patch in applied)]
    files = sorted({file for patch in applied for file in patch.files})
    return _versions(tree, made, files, each=each)


def _versions(tree: Path, commits: Sequence[tuple[str, str]], files: list[str], *, each: bool) -> Versions:
    last = len(commits) - 1
    made = [
        KernelVersion(
            BASE if place == 0 else TIP if place == last else f"patch_{place}",
            f"{tree}@{sha}",
            f"{sha[:12]} {one_line(subject)}",
        )
        for place, (sha, subject) in enumerate(commits)
    ]
    steps = made[1:-1]
    return Versions([made[0], *(steps if each else []), made[-1]], steps, tree, files)


def prepared(versions: Versions, config: str | None, report_line: Callable[[str], None]) -> Versions:
    """The same, each kernel fetched or built, and how it was built.

    Raises:
        InputError: there is no such kernel, or one does not build: the patch and the compiler's first complaint.
    """
    made, notes = [], []
    for one in versions.kernels:
        report_line(f"{one.setting}: {one.label}")
        try:
            found = kernel.find(one.kernel, config=config if versions.tree else None)
        except BuildFailed as error:
            raise _blamed(versions, one, error, config, report_line) from None
        notes += [f"{one.setting}: {found.compiled}"] if found.compiled else []
        facts = describe.made(found)
        how = [f"configured as {facts['configuration']}"] if "configuration" in facts else []
        how += [f"built by {facts['compiler']}"] if "compiler" in facts else []
        made.append(replace(one, how=", ".join(how)))
    return replace(versions, kernels=made, notes=notes)


def _blamed(
    versions: Versions,
    failed: KernelVersion,
    error: BuildFailed,
    config: str | None,
    report_line: Callable[[str], None],
) -> InputError:
    """The error about the first commit that does not build, at or before the one that was found not to."""
    if failed is versions.base:
        return InputError(
            f"the base, {failed.label}, does not build: {_complaint(versions, error)}", where=str(versions.tree)
        )
    order = [one.setting for one in versions.steps]
    before = versions.steps[: order.index(failed.setting)] if failed.setting in order else versions.steps
    known = {one.kernel for one in versions.kernels[: versions.kernels.index(failed)]}
    culprit, complaint = failed, _complaint(versions, error)
    for one in before:
        if one.kernel in known:
            continue
        report_line(f"the tip does not build; trying {one.label}")
        try:
            kernel.find(one.kernel, config=config)
        except BuildFailed as earlier:
            culprit, complaint = one, _complaint(versions, earlier)
            break
    number = len(versions.steps) + 1 if culprit.setting == TIP else order.index(culprit.setting) + 1
    of = len(versions.steps) + 1
    return InputError(f"patch {number} of {of}, {culprit.label}, does not build: {complaint}", where=str(versions.tree))


def _complaint(versions: Versions, error: BuildFailed) -> str:
    """What the compiler says, files named from the top of the tree."""
    assert versions.tree is not None
    said = error.what.partition(" failed: ")[2] or error.what
    return said.replace(f"{tree.place_of(versions.tree) / 'source'}/", "")
