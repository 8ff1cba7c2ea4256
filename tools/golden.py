"""Deterministic texts: rewritten by `make golden`, compared by `make check`.

Five sorts. A page of docs/ (or README.md) may hold tables made from the registries, between two comments:

    <!-- table: workloads -->
    <!-- end of table -->

which `iolab.presentation.reference` renders; and a file in tests/golden/ is wholly made: `plans/` holds what each
experiment that comes with iolab comes to, so that a change to what is run, or in which order, shows as a difference;
`simulated/` holds the tables of some experiments on simulated machines, made shorter, so that a change to what the
model says shows too. docs/claims/ has a page for each published claim. And python/iolab/domain/native_types.py is made
from the schema of what crosses the border to Rust (native_types.py here).
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path
from textwrap import wrap

import native_types
from iolab.base import data
from iolab.files import experiment
from iolab.files.store import read
from iolab.machines.model import ModelExecutor
from iolab.presentation import reference
from iolab.presentation.progress.plain import PlainDisplay
from iolab.presentation.table import claim, render
from iolab.studies.claims import library
from iolab.studies.run import plan, run

ROOT = Path(__file__).parents[1]
NATIVE_TYPES = ROOT / "python" / "iolab" / "domain" / "native_types.py"
GOLDEN = ROOT / "tests" / "golden"
SIMULATED = {
    "cached-affinity": ("cycles", {"operations   = 100000": "operations = 1000"}),
    "completion-affinity-16": ("affinity", {'duration      = "18s"': 'duration = "200ms"'}),
}
"""By experiment: the table, and what is shorter than in its file."""
TABLE = re.compile(r"(?<=<!-- table: )(?P<name>[\w-]+)( -->\n).*?(?=<!-- end of table -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(description="Rewrite the deterministic texts.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if any is out of date")
    check = parser.parse_args().check
    outdated = {path: fresh for path, fresh in rendered().items() if not path.exists() or path.read_text() != fresh}
    for path, fresh in outdated.items():
        if check:
            sys.stdout.writelines(difference(path, fresh))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh)
            print(f"rewrote {path.relative_to(ROOT)}")
    if check and outdated:
        print("out of date: run `make golden`, read the difference, and commit it", file=sys.stderr)
    return 1 if check and outdated else 0


def rendered() -> dict[Path, str]:
    """Every file that holds a deterministic text -> what it should say."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        NATIVE_TYPES: native_types.render(),
        **{page: TABLE.sub(fresh_table, page.read_text()) for page in pages},
        # Whole pages, which are among those above.
        **{ROOT / "docs" / "claims" / f"{one.published.name}.md": claim.markdown(one) for one in library.stated()},
        **{GOLDEN / "plans" / f"{name}.txt": text for name, text in plans()},
        **{GOLDEN / "simulated" / f"{name}.txt": simulated(name, *shorter) for name, shorter in SIMULATED.items()},
    }


def fresh_table(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{name}{found[2]}\n{reference.render(name).strip()}\n\n"


@dataclass(frozen=True)
class Phases:
    """What a trial does, as the lines of its outline, and a checksum of what they leave out too."""

    lines: list[str]
    checksum: str

    def beyond(self, other: Phases) -> list[str]:
        """The lines that the other has not, each once."""
        return [line for line in dict.fromkeys(self.lines) if line not in other.lines]


def plans() -> Iterator[tuple[str, str]]:
    """By experiment; one that does what another does, such as in a guest what the model does, names the other."""
    first: dict[str, str] = {}
    for name, path in data.experiments().items():
        text = plan_of(path)
        like = first.setdefault(text, name)
        yield name, text if like == name else f"as {like}\n"


def plan_of(path: Path) -> str:
    """Checksums of the trials of two rounds with seed 1, in their order; who does which phases in the first; and each
    distinct list of phases once, without its seeds. Phases that differ in nothing but seeds are the same."""
    order: tuple[list[str], list[str]] = ([], [])
    settings: dict[str, list[str]] = {}
    distinct: dict[str, Phases] = {}
    for trial in plan.trials(experiment.load(path), 2, seed=1):
        # A replay names its trace by its whole path, which is another in every checkout.
        phases = json.loads(json.dumps([phase.model_dump() for phase in trial.phases]).replace(f"{ROOT}/", ""))
        known = SEED.sub("seed", json.dumps(phases))
        if known not in distinct:
            told = [stripped(phase) for phase in phases]
            lines = [line for phase in told for line in outline(unusual(phase), "- ", "  ")]
            distinct[known] = Phases(lines, checksum(json.dumps(told)))
        number = list(distinct).index(known) + 1
        order[trial.round].append(
            f"{trial.trial} {trial.round} {trial.seed} {trial.workload} {trial.setting}: {number}"
        )
        if trial.round == 0:
            settings.setdefault(f"{trial.workload}, seed {trial.seed}, phases {number}", []).append(trial.setting)
    head = [f"order of round {number}, sha256 {checksum(json.dumps(one))}" for number, one in enumerate(order)]
    for who, names in settings.items():
        head += wrap(f"{who}: {', '.join(names)}", LINE_LENGTH, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join((*head, *described(list(distinct.values())))) + "\n"


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def described(phases: list[Phases]) -> Iterator[str]:
    """The first in whole; of each other the lines that the one most like it, of those above, has not."""
    for number, one in enumerate(phases):
        head = f"phases {number + 1}, sha256 {one.checksum}"
        if not number:
            yield from ("", head, *one.lines)
            continue
        alike = min(phases[:number], key=lambda other: len(one.beyond(other)))
        yield from ("", f"{head}: as phases {phases.index(alike) + 1}, but", *one.beyond(alike))


SEED = re.compile(r'"?seed"?: \d+')
NUMBER = re.compile(r"\d+")
LINE_LENGTH = 118
USUAL: dict[str, object] = {
    **dict.fromkeys(("create", "extend", "fixed_buffers", "fresh_data", "registered_files"), True),
    "align_bytes": 4096,
    "arrival": {"kind": "closed", "think_every": 1},
    "file_order": "round_robin",
    "interval_ns": 100_000_000,
    "queue_depth": 1,
}
"""What an outline does not say: the values that most phases have."""


def stripped(value: object) -> object:
    """Without the keys that say nothing: null, false and what is empty."""
    if isinstance(value, dict):
        found = {key: stripped(inner) for key, inner in value.items()}
        return {key: inner for key, inner in found.items() if inner not in (None, False, [], {})}
    return [stripped(inner) for inner in value] if isinstance(value, list) else value


def unusual(value: object) -> object:
    """Without seeds, and without values that are usual."""
    if isinstance(value, dict):
        return {key: unusual(inner) for key, inner in value.items() if key != "seed" and USUAL.get(key) != inner}
    return [unusual(inner) for inner in value] if isinstance(value, list) else value


def outline(value: object, head: str, indent: str) -> list[str]:
    """The value as JSON on the line that `head` begins; what is too long for it, part by part on lines of its own. Of
    neighbours in a list that differ in nothing but numbers, the first."""
    line = f"{head}{json.dumps(value, ensure_ascii=False)}"
    if len(line) <= LINE_LENGTH or not isinstance(value, dict | list):
        return [line]
    if isinstance(value, dict):
        return _outline_of_table(value, head, indent)
    inner = indent + "  "
    if len(value) == 1:
        return outline(value[0], f"{head}- ", inner + "  ")
    lines = [head.rstrip()]
    for _, alike in groupby(value, key=lambda item: NUMBER.sub("0", json.dumps(item))):
        first, *others = alike
        lines += outline(first, f"{inner}- ", inner + "  ")
        if others:
            lines.append(f"{inner}({len(others)} more)")
    return lines


def _outline_of_table(table: dict[str, object], head: str, indent: str) -> list[str]:
    """Short values side by side, in their order; a long one on lines of its own."""
    lines = [head.rstrip()]
    has_room = True
    for key, item in table.items():
        one, *more = outline(item, f"{key}: ", indent + "  ")
        if more:
            lines += [f"{indent}{one}", *more]
            has_room = False
        elif has_room and len(lines[-1]) + len(one) < LINE_LENGTH:
            lines[-1] += f"{'' if lines[-1] == head.rstrip() else ','} {one}"
        else:
            lines.append(f"{indent}{one}")
            has_room = True
    return lines


def simulated(name: str, form: str, shorter: dict[str, str]) -> str:
    """A table of the experiment, run with its own seed."""
    path = data.experiments()[name]
    text = path.read_text()
    for before, after in shorter.items():
        assert before in text, f"{path} no longer has {before}"
        text = text.replace(before, after)
    with tempfile.TemporaryDirectory() as out, ModelExecutor() as executor:
        progress = PlainDisplay(StringIO())
        done = run(experiment.loads(text, str(path)), Path(out) / "run", executor=executor, progress=progress, rounds=1)
        return render(read(done.path), form)


def difference(path: Path, fresh: str) -> list[str]:
    old = path.read_text() if path.exists() else ""
    name = str(path.relative_to(ROOT))
    return list(
        difflib.unified_diff(old.splitlines(keepends=True), fresh.splitlines(keepends=True), name, f"{name} (fresh)")
    )


if __name__ == "__main__":
    sys.exit(main())
