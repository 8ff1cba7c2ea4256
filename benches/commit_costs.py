"""`iolab cost` against kernel commits that state what they cost or save, and against commits that cannot matter.

    python benches/commit_costs.py ask TREES ANSWERS [--only 6.1]   builds and counts; stopped and continued at any time
    python benches/commit_costs.py score ANSWERS [--write]          the tables of docs/reference/commit-costs.md

commit_costs.csv lists the commits. TREES has a git tree for each source (TREES/6.1, TREES/6.12), of Debian's
linux-source of that version at the tag `source`, and patches/FILE.patch for each commit. A patch that the source has
already is taken away from it: the base is the source without it, and the tip is the source.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIST = HERE / "commit_costs.csv"
PAGE = HERE.parent / "docs" / "reference" / "commit-costs.md"
NEUTRAL_PATHS = ("null-read-uring-32", "ext4-fsync")
"""Asked of each commit that cannot matter."""
FLAGGED_FROM = 1e-3
"""A share of the base from which on a change of such a commit counts as a false alarm."""
ROUNDS = 2
SEED = 1
START = "<!-- counted -->"


@dataclass(frozen=True)
class Commit:
    """A commit of the list. `id`: or its mail's Message-Id; `sign`: of the tip's change in `measure` by its message, or
    "0": it cannot matter; `adapted`: "yes" if lines of context were changed so that it applies."""

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
    """Counts what has no answer yet. What does not apply, build or run is answered by the reason."""
    answers.mkdir(exist_ok=True)
    for number, commit in enumerate(commits, 1):
        place = answers / f"{commit.file}.json"
        if place.exists():
            continue
        answer = counted(commit, (trees / commit.source).resolve(), trees / "patches" / f"{commit.file}.patch", answers)
        place.write_text(json.dumps(answer, indent=1) + "\n")
        print(
            f"{number} of {len(commits)}: {commit.title}: {answer.get('refused') or judged(commit, answer)}", flush=True
        )


def counted(commit: Commit, tree: Path, patch: Path, answers: Path) -> dict[str, Any]:
    """The report of `iolab cost`, or {"refused": why}."""
    start = _git(tree, "rev-parse", "source").stdout.strip()
    _git(tree, "checkout", "-q", "--force", "--detach", start)
    _git(tree, "clean", "-qfd")
    backwards = ["--reverse"] if commit.direction == "reversed" else []
    applied = subprocess.run(
        ["patch", "--strip=1", "--fuzz=3", "--force", "--silent", "--no-backup-if-mismatch", *backwards, "-i", patch],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    if applied.returncode:
        return {"refused": f"does not apply: {applied.stdout.strip().splitlines()[0]}"}
    _git(tree, "add", "--all")
    _git(tree, "commit", "-q", "-m", commit.title)
    changed = _git(tree, "rev-parse", "HEAD").stdout.strip()
    base, tip = (changed, start) if backwards else (start, changed)
    out = answers / f"{commit.file}.runs"
    command = [sys.executable, "-m", "iolab", "cost", f"{tree}@{base}", f"{tree}@{tip}", "--json"]
    command += ["--paths", commit.asked_on, "--rounds", str(ROUNDS), "--seed", str(SEED), "--out", str(out)]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return {"refused": ran.stderr.strip().splitlines()[-1]}
    return {"seconds": round(time.monotonic() - began, 1), **json.loads(ran.stdout)}


def _git(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", tree, *arguments], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Shown:
    """What was counted of a commit on the path whose measure changed most."""

    path: str
    difference: float
    share: float
    outcome: str

    def __str__(self) -> str:
        return f"{self.difference:+.2f} ({100 * self.share:+.2f} %) on {self.path}, {self.outcome}"


def judged(commit: Commit, answer: dict[str, Any]) -> Shown:
    """The path whose measure changed most, as a share; `outcome`: more, less or same, if certain."""
    paths = [one for one in answer["paths"] if commit.measure in one["per_operation"]]
    if not paths:
        return Shown("no path", 0.0, 0.0, "not measured")
    largest = max(paths, key=lambda one: abs(one["per_operation"][commit.measure]["share"] or 0.0))
    change = largest["per_operation"][commit.measure]
    if commit.measure == "kernel":
        outcome = largest["outcome"]
    else:
        outcome = "more" if change["low"] > 0 else "less" if change["high"] < 0 else "same"
    return Shown(largest["path"], change["difference"], change["share"] or 0.0, outcome)


def is_right(commit: Commit, shown: Shown) -> bool:
    """A claim: the sign is certain, and the claimed one. A commit that cannot matter: no path is flagged."""
    if commit.is_claim:
        return shown.outcome == {"-": "less", "+": "more"}[commit.sign]
    return not (shown.outcome in ("more", "less") and abs(shown.share) >= FLAGGED_FROM)


def score(commits: Sequence[Commit], answers: Path) -> str:
    """The counts in a sentence each, and the commits in two tables."""
    lines: list[str] = []
    for wanted, heading, right in (
        (True, "Claims", "sign right"),
        (False, "Commits that cannot matter", "not flagged"),
    ):
        rows, hits, asked, refused = [], 0, 0, 0
        for commit in commits:
            place = answers / f"{commit.file}.json"
            if commit.is_claim is not wanted or not place.exists():
                continue
            answer = json.loads(place.read_text())
            if why := answer.get("refused"):
                refused += 1
                rows.append(_row(commit, why, "not asked"))
                continue
            shown = judged(commit, answer)
            asked += 1
            hits += is_right(commit, shown)
            rows.append(_row(commit, str(shown), "yes" if is_right(commit, shown) else "**no**"))
        share = f"{100 * hits / asked:.0f} %" if asked else "none"
        lines += [f"## {heading}", "", f"{asked} were asked, {hits} {right} ({share}); {refused} could not be.", ""]
        lines += ["| commit | title | source | states | counted | right |", "|---|---|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _row(commit: Commit, counted: str, right: str) -> str:
    states = f"{commit.measure} {commit.sign}: {commit.claims}" if commit.is_claim else commit.claims
    source = f"{commit.source} {commit.direction}{', adapted' if commit.adapted else ''}"
    cells = (commit.id[:12], f"{commit.title} ({commit.year})", source, states, counted, right)
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
        ask(
            [one for one in commits if chosen.only in (None, one.source)],
            chosen.trees.absolute(),
            chosen.answers.absolute(),
        )
        return
    text = score(commits, chosen.answers)
    if chosen.write:
        PAGE.write_text(f"{PAGE.read_text().partition(START)[0]}{START}\n\n{text}")
    else:
        print(text)


if __name__ == "__main__":
    main()
