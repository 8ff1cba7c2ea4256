"""`iolab cost` against kernel commits that state what they cost or save, and against commits that cannot matter.

    python benches/commit_costs.py ask TREES ANSWERS [--only 6.1]   builds and counts; stopped and continued at any time
    python benches/commit_costs.py score ANSWERS [--write]          the tables of docs/reference/commit-costs.md

commit_costs.csv lists the commits. TREES has a git tree for each source (TREES/6.1, TREES/6.12), of Debian's
linux-source of that version at the tag `source`, and patches/FILE.patch for each commit. A patch that the source has
already is taken away from it: the base is the source without it, and the tip is the source.
"""

import argparse
import csv
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iolab.presentation.table.cost import OTHER_FROM, OTHER_SHARE

HERE = Path(__file__).parent
LIST = HERE / "commit_costs.csv"
PAGE = HERE.parent / "docs" / "reference" / "commit-costs.md"
NEUTRAL_PATHS = ("null-read-uring-32", "ext4-fsync")
"""Asked of each commit that cannot matter."""
FLAGGED_FROM = 1e-3
"""A share of the base from which on a change of such a commit counts as a false alarm."""
ROUNDS = 2
ROUNDS_IF_UNCERTAIN = 6
SEED = 1
LISTS = ("first", "second", "third")
"""The second was made when the rule of what repeats had been chosen with the first one's answers in sight."""
START = "<!-- counted -->"


@dataclass(frozen=True)
class Commit:
    """A commit of the list. `id`: or its mail's Message-Id; `sign`: of the tip's change in `measure` by its message, or
    "0": it cannot matter; `adapted`: "yes" if lines of context were changed so that it applies; `list`: of LISTS."""

    file: str
    id: str
    title: str
    year: str
    claims: str
    measure: str
    sign: str
    paths: str
    source: str
    direction: str
    adapted: str
    list: str

    @property
    def is_claim(self) -> bool:
        return self.sign != "0"

    @property
    def asked_on(self) -> str:
        """The paths, as `--paths` takes them."""
        return ",".join(self.paths.split() if self.is_claim else NEUTRAL_PATHS)


def listed() -> list[Commit]:
    """The commits, in the order in which they were found."""
    with LIST.open(newline="") as file:
        return [Commit(**row) for row in csv.DictReader(file)]


def ask(commits: Sequence[Commit], trees: Path, answers: Path) -> None:
    """Counts what has no answer yet, and with more boots what a commit states and no interval shows. What does not
    apply, build or run is answered by the reason."""
    answers.mkdir(exist_ok=True)
    patches = {commit.file: trees / "patches" / f"{commit.file}.patch" for commit in commits}
    # A header compiles hundreds of files again: these come last.
    in_order = sorted(commits, key=lambda one: "+++ b/include" in patches[one.file].read_text())
    for number, commit in enumerate(in_order, 1):
        place = place_of(commit, answers)
        answer = json.loads(place.read_text()) if place.exists() else None
        try:
            if answer is None:
                tree = (trees / commit.source).resolve()
                kernels = made(tree, answers / f"worktree-{commit.source}", patches[commit.file], commit)
                answer = counted(kernels, commit, ROUNDS, answers)
            elif "refused" not in answer and commit.is_claim and judged(commit, answer).is_worth_more:
                kernels = answer["base"]["kernel"], answer["tip"]["kernel"]
                answer = counted(kernels, commit, ROUNDS_IF_UNCERTAIN, answers)
            else:
                continue
        except Refused as refused:
            answer = {"refused": str(refused)}
        place.write_text(json.dumps(answer, indent=1) + "\n")
        shown = answer.get("refused") or judged(commit, answer)
        print(f"{number} of {len(commits)}: {commit.title}: {shown}", flush=True)


class Refused(Exception):
    """A commit that does not apply, build or run."""


def made(tree: Path, place: Path, patch: Path, commit: Commit) -> tuple[str, str]:
    """Base and tip as `iolab cost` names them: the source, and the source with the patch or without it. Commits are
    made in `place`, a worktree of its own: what lies in `tree` stays as it is."""
    if not place.exists():
        _git(tree, "worktree", "add", "-q", "--detach", str(place), "source")
    _git(place, "checkout", "-q", "--force", "--detach", "source")
    _git(place, "clean", "-qfd")
    backwards = ["--reverse"] if commit.direction == "reversed" else []
    applied = subprocess.run(
        ["patch", "--strip=1", "--fuzz=3", "--force", "--silent", "--no-backup-if-mismatch", *backwards, "-i", patch],
        cwd=place,
        capture_output=True,
        text=True,
    )
    if applied.returncode:
        raise Refused(f"does not apply: {applied.stdout.strip().splitlines()[0]}")
    _git(place, "add", "--all")
    _git(place, "commit", "-q", "-m", commit.title)
    changed, source = (f"{tree}@{_git(place, 'rev-parse', name)}" for name in ("HEAD", "source"))
    return (changed, source) if backwards else (source, changed)


def counted(kernels: tuple[str, str], commit: Commit, rounds: int, answers: Path) -> dict[str, Any]:
    """The report of `iolab cost`, and how long it took."""
    command = [sys.executable, "-m", "iolab", "cost", *kernels, "--paths", commit.asked_on, "--rounds", str(rounds)]
    command += ["--seed", str(SEED), "--out", str(answers / f"{commit.file}.runs"), "--json"]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise Refused(ran.stderr.strip().splitlines()[-1])
    return {"seconds": round(time.monotonic() - began, 1), **json.loads(ran.stdout)}


def _git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", tree, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Shown:
    """What `iolab cost` states of a commit on one path. `difference`, `share`: of the path's measure, or of functions
    whose counts repeat if nothing is certain of the path; `statement`: more, less, or none of both; `is_unchanged`: no
    function whose count repeats changed, on any path."""

    path: str
    rounds: int
    difference: float
    share: float
    is_certain: bool
    statement: str
    is_of_path: bool = True
    is_unchanged: bool = False

    @property
    def has_sign(self) -> bool:
        return self.statement in ("more", "less")

    @property
    def is_worth_more(self) -> bool:
        """More boots may make the sign certain."""
        return not self.has_sign and not self.is_certain and self.difference != 0 and self.rounds == ROUNDS

    def __str__(self) -> str:
        certain = "" if self.is_certain or not self.difference else ", not certain"
        of = "" if self.is_of_path else " in functions that repeat"
        why = ", no function whose count repeats changed" if self.is_unchanged else ""
        return f"{self.difference:+.2f} ({100 * self.share:+.2f} %) on {self.path}{of}{certain}: {self.statement}{why}"


def judged(commit: Commit, answer: dict[str, Any]) -> Shown:
    """The path with the largest change of those of which something is stated, else of all."""
    paths = [_shown(commit.measure, one) for one in answer["paths"] if commit.measure in one["per_operation"]]
    if not paths:
        return Shown("no path", 0, 0.0, 0.0, is_certain=False, statement="not measured")
    repeatable = [one["per_operation"].get("repeatable") for one in answer["paths"]]
    is_unchanged = all(one is not None and one["base"] == one["tip"] == 0 for one in repeatable)
    largest = max(paths, key=lambda one: (one.has_sign, abs(one.share)))
    return replace(largest, is_unchanged=is_unchanged and not largest.has_sign)


def _shown(measure: str, path: dict[str, Any]) -> Shown:
    change = path["per_operation"][measure]
    base, of_kernel = change["base"], measure == "kernel"
    least = 0.0 if of_kernel else max(OTHER_FROM, OTHER_SHARE * base)
    statement = path["outcome"] if of_kernel else _sign(change, least)
    is_of_path = not of_kernel or path["of_repeatable"] not in ("more", "less")
    if not is_of_path:
        statement, change = path["of_repeatable"], path["per_operation"]["repeatable"]
    share = change["difference"] / base if base else 0.0
    certain = _sign(change) != "same"
    return Shown(path["path"], path["rounds"], change["difference"], share, certain, statement, is_of_path)


def _sign(change: dict[str, Any], least: float = 0.0) -> str:
    if abs(change["difference"]) < least:
        return "same"
    return "more" if change["low"] > 0 else "less" if change["high"] < 0 else "same"


def is_right(commit: Commit, shown: Shown) -> bool:
    """A claim: `iolab cost` states a change of the claimed sign. A commit that cannot matter: no path is flagged."""
    if commit.is_claim:
        return shown.statement == {"-": "less", "+": "more"}[commit.sign]
    return not (shown.has_sign and abs(shown.share) >= FLAGGED_FROM)


def score(commits: Sequence[Commit], answers: Path) -> str:
    """What the answers come to, and the commits in two tables."""
    found = [
        (commit, json.loads(place.read_text())) for commit in commits if (place := place_of(commit, answers)).exists()
    ]
    refused = [(commit, answer["refused"]) for commit, answer in found if "refused" in answer]
    shown = [(commit, judged(commit, answer)) for commit, answer in found if "refused" not in answer]
    claims, neutral = ([(one, of) for one, of in shown if one.is_claim is wanted] for wanted in (True, False))
    lists = [[(one, of) for one, of in claims if one.list == name] for name in LISTS]
    signed = [[one for one in of if one[1].has_sign] for of in lists]
    of_path = [[one for one in of if one[1].is_of_path] for of in signed]
    right = [[sum(is_right(*one) for one in of) for of in found] for found in (signed, of_path)]
    counts = [[len(of) for of in found] for found in (lists, signed, of_path)]
    unchanged = [sum(one.is_unchanged for _, one in of) for of in lists]
    total = (
        f"Of {len(commits)} commits {len(shown)} were counted, {len(refused)} could not be, and "
        f"{len(commits) - len(found)} were not asked. Of {len(neutral)} commits that cannot matter "
        f"{sum(not is_right(*one) for one in neutral)} were flagged."
    )
    lines = [
        *textwrap.wrap(total, 100),
        "",
        f"| | {' | '.join(f'{name} list' for name in LISTS)} |",
        f"|---|{'--:|' * len(LISTS)}",
        _line("claims that were counted", counts[0], counts[0]),
        _line("*more* or *less* is stated", counts[1], counts[0]),
        _line("of these: as the message has it", right[0], counts[1]),
        _line("no sign, and no function whose count repeats changed", unchanged, counts[0]),
        _line("*more* or *less* is stated of the whole path", counts[2], counts[0]),
        _line("of these: as the message has it", right[1], counts[2]),
    ]
    for heading, rows in (("Claims", claims), ("Commits that cannot matter", neutral)):
        lines += ["", f"## {heading}", "", "| commit | title | source | states | counted |", "|---|---|---|---|---|"]
        lines += [_row(commit, str(of)) for commit, of in rows]
    if refused:
        lines += ["", "## Not counted", "", "| commit | title | source | states | why |", "|---|---|---|---|---|"]
        lines += [_row(commit, why) for commit, why in refused]
    return "\n".join([*lines, ""])


def place_of(commit: Commit, answers: Path) -> Path:
    return answers / f"{commit.file}.json"


def _line(words: str, some: Sequence[int], of: Sequence[int]) -> str:
    shares = [f"{one}, {100 * one / whole:.0f} %" if whole else "" for one, whole in zip(some, of, strict=True)]
    return f"| {words} | {' | '.join(shares)} |"


def _row(commit: Commit, found: str) -> str:
    states = f"{commit.measure} {commit.sign}: {commit.claims}" if commit.is_claim else commit.claims
    source = f"{commit.source} {commit.direction}{', adapted' if commit.adapted else ''}"
    cells = (commit.id[:12], f"{commit.title} ({commit.year})", source, states, found)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    asking = verbs.add_parser("ask")
    asking.add_argument("trees", type=Path)
    asking.add_argument("answers", type=Path)
    asking.add_argument("--only", help="this source alone, so that two can be asked side by side")
    scoring = verbs.add_parser("score")
    scoring.add_argument("answers", type=Path)
    scoring.add_argument("--write", action="store_true", help="write the page's tables")
    chosen = parser.parse_args()
    commits = listed()
    if chosen.verb == "ask":
        asked = [one for one in commits if chosen.only in (None, one.source)]
        ask(asked, chosen.trees.absolute(), chosen.answers.absolute())
        return
    text = score(commits, chosen.answers)
    if chosen.write:
        PAGE.write_text(f"{PAGE.read_text().partition(START)[0]}{START}\n\n{text}")
    else:
        print(text)


if __name__ == "__main__":
    main()
