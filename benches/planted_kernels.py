"""`iolab bisect --git` over commits of Debian's kernel tree, with planted costs. A history has 12 commits. None, one or
two of them cost instructions on the path of an I/O; the others change code that the load does not run. The kind, place
and size of each cost follow from a seed, which is drawn unless `--seed` gives one. Each search is the command that a
user gives, and its whole answer is judged: the commits that it names, or that nothing changes, and the functions that
it marks with a star. A range is right if it holds the planted commit and otherwise only commits that do not build.
[Bisection](../bisection.md#how-often-it-is-right-among-kernels) has a row for each kind of history, which this bench
rewrites.

`--count` is the number of histories. The bench can be stopped at any time; with the seed of an earlier campaign it
continues that campaign and reuses its results. IOLAB_KERNEL_TREE names an existing tree of Debian's source, as
TREE@COMMIT; without it, a tree is made and built, which takes ten minutes. The histories become branches of the tree.
"""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from alternate import cpu_of_children_s
from guest_counts import kernel_tree
from planted_histories import KINDS, History, drawn, written
from result import NotMeasured, Result, plain
from statistics_simulation import write

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "bisection.md"
COUNT = 20
STATED = 0.95
CONFIRM = 3
COUNTS_ONLY = True
"""Nothing that is judged depends on how the extension was built."""


@dataclass(frozen=True)
class Judged:
    """The outcome of one history."""

    kind: str
    answer: str
    """In words, with what was planted."""
    probability: float
    decided: bool
    is_right: bool
    innocent: list[str]
    """Commits that were named and cost nothing, and functions that were reported as changed at such commits."""
    functions: list[bool]
    """Whether its function was named, for each planted commit."""
    trials: int
    """Those of the search and the fresh ones."""
    wall_s: float | None
    processor_s: float | None
    """None: the search was stopped, and went on."""


def measure(quick: bool, seed: int | None = None, count: int = COUNT) -> list[Result]:
    tree, base = chosen_tree()
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    command = f"benches/run.py planted_kernels --seed {seed} --count {count}"
    print(f"   seed {seed}; to go on after a stop: {command}", file=sys.stderr)
    place = campaign(seed)
    found = [judged(tree, base, seed, number, place) for number in range(1 if quick else count)]
    if not quick:
        write({"planted": table(found)}, DOCUMENT)
    return totals(found, [command])


def chosen_tree() -> tuple[Path, str]:
    """The tree, and the commit that all histories begin with."""
    from iolab.base.errors import IolabError
    from iolab.machines.guest import programs

    try:
        programs.qemu(), programs.agent(), programs.counter()
    except IolabError as error:
        raise NotMeasured(str(error)) from error
    named = os.environ.get("IOLAB_KERNEL_TREE")
    if named is None:
        return kernel_tree(), "base"
    tree, _, base = named.rpartition("@")
    return Path(tree), base


def campaign(seed: int) -> Path:
    from iolab.machines.guest import cache

    return cache.directory("bench", f"planted-{seed}")


def judged(tree: Path, base: str, seed: int, number: int, place: Path) -> Judged:
    """As it was found before, if it was."""
    known = place / f"{number}.json"
    if known.exists():
        return Judged(**json.loads(known.read_text()))
    history = drawn(seed, number)
    commits = written(history, tree, base, seed, number)
    found = judge(history, commits, search(history, f"{tree}@{base}", commits, place / str(number)))
    beside = known.with_suffix(".new")
    beside.write_text(json.dumps(asdict(found), indent=2) + "\n")
    beside.rename(known)
    print(f"   {number}: {found.kind}: {'right' if found.is_right else 'WRONG'}: {found.answer}", file=sys.stderr)
    return found


@dataclass(frozen=True)
class Searched:
    said: str
    """What the command prints."""
    finding: dict[str, object]
    """The same as JSON."""
    trials: int
    wall_s: float | None
    processor_s: float | None


def search(history: History, kernel: str, commits: Sequence[str], place: Path) -> Searched:
    run, experiment = place / "run", place / "history.toml"
    goes_on = (run / "experiment.toml").exists()
    if not goes_on:
        subprocess.run(["rm", "-rf", place], check=True)
        place.mkdir()
        experiment.write_text(f'machine = "guest:{kernel}"\nrounds = 1\n{history.experiment}')
    tree = kernel.rpartition("@")[0]
    ends = ["--good", commits[0], "--bad", commits[-1]]
    begin = [str(experiment), "--git", tree, *ends, "--confirm", str(CONFIRM), "--out", str(run)]
    began, used = time.monotonic(), cpu_of_children_s()
    said = iolab("bisect", *(["--resume", str(run)] if goes_on else begin))
    took, used = time.monotonic() - began, cpu_of_children_s() - used
    (place / "answer.txt").write_text(said)
    finding = json.loads(iolab("bisect", "--resume", str(run), "--json"))
    return Searched(said, finding, trials_of(run), None if goes_on else took, None if goes_on else used)


def iolab(*arguments: str) -> str:
    program = str(Path(sys.executable).with_name("iolab"))
    done = subprocess.run(
        [program, *arguments], env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"iolab {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def trials_of(run: Path) -> int:
    from iolab.files.store import read

    return read(run).trials["trial"].n_unique()


def judge(history: History, commits: Sequence[str], searched: Searched) -> Judged:
    names = {commit[:12]: number for number, commit in enumerate(commits)}
    found = searched.finding
    ranges = [(names[change["first"]], names[change["last"]]) for change in found["changes"]]  # type: ignore[attr-defined]
    planted = sorted(history.planted)
    named = [[number for number in planted if first <= number <= last] for first, last in ranges]
    tight = all(set(range(first, last)) <= history.unbuildable for first, last in ranges)
    if history.counts:
        is_right = found["kind"] == "changes" and named == [[number] for number in planted] and tight
    else:
        is_right = found["kind"] == "none"
    starred = list(functions(searched.said, names))
    innocent = [f"commit {first} to {last}" for (first, last), holds in zip(ranges, named, strict=True) if not holds]
    innocent += [
        f"{symbol} at {first} to {last}"
        for symbol, first, last in starred
        if not any(first < number <= last for number in planted)
    ]
    seen = [
        any(
            first < number <= last and not symbols.isdisjoint(re.split(r" -> | \+ ", symbol))
            for symbol, first, last in starred
        )
        for number, symbols in ((number, set(history.planted[number])) for number in planted)
    ]
    return Judged(
        kind=history.kind,
        answer=f"planted {planted}, unbuildable {sorted(history.unbuildable)}, said {found['kind']} {ranges}",
        probability=float(found["probability"]),  # type: ignore[arg-type]
        decided=found["stopped"] == "decided" and float(found["probability"]) >= STATED,  # type: ignore[arg-type]
        is_right=is_right,
        innocent=innocent,
        functions=seen,
        trials=searched.trials,
        wall_s=searched.wall_s,
        processor_s=searched.processor_s,
    )


def functions(said: str, names: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Each function that the answer reports as changed, with the two commits around the change: those with a star of
    the tables of two commits, and all of the table of functions that changed once."""
    between: tuple[int, int] | None = None
    for line in said.splitlines():
        if heading := re.search(r": ([0-9a-f]{12}) against ([0-9a-f]{12})$", line.strip()):
            between = names[heading[2]], names[heading[1]]
        elif not line.strip():
            between = None
        elif between is not None and line.rstrip().endswith("*"):
            yield re.split(r"\s{2,}", line.strip())[0], *between
        elif step := re.search(r"^(\S+) .*\s([0-9a-f]{12}) and ([0-9a-f]{12})$", line.strip()):
            yield step[1], names[step[2]], names[step[3]]


def table(found: Sequence[Judged]) -> list[list[str]]:
    heading = ["planted", "histories", "right", "stated, mean", "innocent named", "functions named"]
    rows = [[*heading, "trials, mean", "processor time, mean", "wall time, mean"]]
    for kind in KINDS:
        if own := [one for one in found if one.kind == kind]:
            rows.append(_row(kind, own))
    return [*rows, _row("all", found)]


def _row(name: str, found: Sequence[Judged]) -> list[str]:
    seen = [is_named for one in found for is_named in one.functions]
    return [
        name,
        str(len(found)),
        str(sum(one.is_right for one in found)),
        f"{statistics.mean(one.probability for one in found):.1%}",
        str(sum(bool(one.innocent) for one in found)),
        f"{sum(seen)} of {len(seen)}",
        f"{statistics.mean(one.trials for one in found):.0f}",
        _mean_s([one.processor_s for one in found]),
        _mean_s([one.wall_s for one in found]),
    ]


def _mean_s(times: Sequence[float | None]) -> str:
    known = [one for one in times if one is not None]
    return f"{statistics.mean(known):.0f} s" if known else "-"


def totals(found: Sequence[Judged], commands: list[str]) -> list[Result]:
    stating = [one for one in found if one.decided]
    named = [is_named for one in found for is_named in one.functions]
    unsure = len(found) - len(stating)
    innocent = sum(len(one.innocent) for one in found)
    times: list[tuple[str, Callable[[Judged], float | None]]] = [
        ("processor time of a history, builds included", lambda one: one.processor_s),
        ("wall time of a history", lambda one: one.wall_s),
    ]
    return [
        share("whole answers right, of those that state 95 %", [one.is_right for one in stating], 0.95, commands),
        none(f"histories whose answer states less than 95 %, of {len(found)}", unsure, aim=False),
        none(f"innocent commits named in {len(found)} histories", innocent, aim=True),
        share("planted commits whose function is named", named, 0.9, commands),
        plain("trials of a history, including the fresh ones", "count", [float(one.trials) for one in found]),
        *(
            plain(name, "s", known)
            for name, of in times
            if (known := [taken for one in found if (taken := of(one)) is not None])
        ),
    ]


def share(name: str, right: Sequence[bool], aim: float, commands: list[str]) -> Result:
    ours = sum(right) / len(right) if right else 0.0
    name = f"{name}: {sum(right)} of {len(right)}"
    return Result(name, "share", ours, None, "", ours / aim, None, None, f">= {aim:g}", ours >= aim, commands)


def none(name: str, found: int, *, aim: bool) -> Result:
    target, met = ("none", found == 0) if aim else ("", None)
    return Result(name, "count", float(found), None, "", None, None, None, target, met)
