"""`iolab cost`: what a change of the kernel costs on the I/O path, in instructions."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import EXIT_CONDITION, InputError
from iolab.base.plain_text import counted
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json, Seed
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.domain.cost.gate import Gate
    from iolab.domain.cost.report import CostReport
    from iolab.studies.cost.kernels import Versions

ROUNDS = 3
ROUNDS_MIN, ROUNDS_MAX = 2, 100
"""An interval takes two rounds."""
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="BASE TIP | A..B | SERIES...",
        help="Two kernels (iolab list kernels); with --git: a range of commits, or a series of patches: mboxes, "
        "maildirs or mails.",
    ),
]


def cost(
    what: Names,
    repository: Annotated[
        Path | None,
        typer.Option(
            "--git",
            metavar="TREE",
            help="The kernel's git tree, which is only read, or Debian's source by name, such as linux-source-6.1, "
            "which is fetched.",
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="COMMIT", help="The commit that a series is applied to.  [default: HEAD]")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Count each patch or commit too.")] = False,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Count this path only, or those that fit a pattern, such as null-*. May be given several times, or "
            "with commas. See: iolab list paths.  [default: all]",
            autocompletion=complete.cost_paths,
        ),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto", help="Count at most twelve paths: of those that run functions which the changed files define."
        ),
    ] = False,
    rounds: Annotated[int, typer.Option(help="Boots of each kernel on each path.")] = ROUNDS,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="How the tree's kernels are configured: a whole .config, or lines that change the default `plain`.",
        ),
    ] = None,
    memory: Annotated[bool, typer.Option("--memory", help="Count accesses to memory too; takes longer.")] = False,
    seed: Seed = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with status 1 if a path's change lies beyond this with its whole interval: "
            '"instructions > +0.5 %", "allocations > 0". May be given several times.',
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the runs go, one for each path; a directory of the same command is continued.  [default: a new "
            "one in iolab-runs]",
        ),
    ] = None,
    mail: Annotated[
        bool, typer.Option("--mail", help="Print text for a mail: 72 columns, versions, the command.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    json: Json = False,
) -> None:
    """Count what a change of the kernel costs on the I/O path, in instructions per operation, by path and by function.

    Kernels boot in an emulated machine: nothing is installed, nothing needs root, and this machine's kernel stays as it
    is. A tree's kernels are built incrementally, in a clone of iolab's own. What a series does to the kernel runs while
    it is built: read it first.
    """
    from iolab.domain.cost.gate import gate

    if [mail, markdown, json].count(True) > 1:
        raise InputError("give one of --mail, --markdown and --json", where="iolab cost")
    if not ROUNDS_MIN <= rounds <= ROUNDS_MAX:
        raise InputError(f"{rounds}: expected {ROUNDS_MIN} to {ROUNDS_MAX}", where="--rounds")
    gates = [gate(text, memory=memory) for text in fail_on or ()]
    # Paths that are given are made whole, so that the directory of another day has the same question.
    configured = None if config is None else str(config.absolute())
    if repository is None:
        _refuse({"--base": base, "--each": each or None, "--auto": auto or None, "--config": config})

    from iolab.files.store.directory import default_path
    from iolab.presentation.progress import display
    from iolab.studies.cost import auto as by_functions
    from iolab.studies.cost import kernels, suite
    from iolab.studies.cost.paths import chosen
    from iolab.studies.run.machine_executor import MachineExecutor

    taken = chosen([name for text in paths or () for name in text.split(",")])
    progress = display(as_json=json)
    of_tree = None if repository is None else kernels.tree_of(repository, progress.report_line)
    versions = _versions(what, of_tree, base, each=each)
    versions = kernels.prepared(versions, configured, progress.report_line)
    effort = suite.Effort(rounds, seed, memory, configured)
    notes = versions.notes
    place = out or default_path("cost")
    with MachineExecutor() as executor:
        if auto:
            selection = by_functions.selected(versions, taken, configured, executor=executor, progress=progress)
            taken, notes = selection.paths, [*selection.notes, *notes]
        measured = suite.measure(versions, taken, effort, place, executor=executor, progress=progress)
    report = suite.report(versions, measured, shlex.join(["iolab", *sys.argv[1:]]), notes)
    _show(report, place, mail=mail, markdown=markdown, json=json)
    exit_if_met(gates, report)


def _versions(what: Sequence[str], tree: Path | None, base: str | None, *, each: bool) -> Versions:
    from iolab.studies.cost import kernels

    if tree is None:
        if len(what) != 2:
            remedy = "such as: iolab cost 6.1.0-56-cloud 6.12.117+deb12-cloud; patches and commits go with --git TREE"
            raise InputError(f"{counted(len(what), 'name')}; expected two kernels", where="iolab cost", remedy=remedy)
        return kernels.named(*what)
    if len(what) == 1 and ".." in what[0] and not Path(what[0]).exists():
        if base is not None:
            raise InputError("a range of commits has its own base", where="--base", remedy="leave it out")
        return kernels.of_range(tree, what[0], each=each)
    return kernels.of_series(tree, base or "HEAD", [Path(name) for name in what], each=each)


def _refuse(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("is for the kernels of a tree", where=option, remedy="give --git TREE, or leave it out")


def _show(report: CostReport, place: Path, *, mail: bool, markdown: bool, json: bool) -> None:
    from iolab.presentation.table import cost as table

    if json:
        print_json({**report.as_dict(), "runs": str(place)})
    elif markdown:
        sys.stdout.write(table.markdown(report))
    elif mail:
        sys.stdout.write(table.mail(report))
    else:
        sys.stdout.write(table.text(report))
        print(f"\nRuns:   {place}")
        changed = next((path for path in report.paths if path.functions), None)
        if changed is not None:
            print(f"Next:   iolab show {place / changed.name} --as symbols")


def exit_if_met(gates: Sequence[Gate], report: CostReport) -> None:
    """Names the conditions that hold, and ends the command with status 1 if one does, or if no path was measured. A
    path that the base runs and the tip does not meets every condition."""
    held = [f"{path.name}: {gate.text}" for gate in gates for path in report.paths if gate.holds(path)]
    held += [f"{path.name}: the tip does not run it" for path in report.paths if gates and path.is_broken]
    if held:
        print(f"iolab: --fail-on holds: {'; '.join(held)}", file=sys.stderr)
    if all(path.why for path in report.paths):
        print("iolab: no path was measured", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
    if held:
        raise typer.Exit(EXIT_CONDITION)
