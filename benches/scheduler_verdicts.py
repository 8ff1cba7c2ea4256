"""The public demonstration: every experiment of experiments/schedulers on every class of device, and the verdicts as
the tables of docs/schedulers.md.

    benches/scheduler_verdicts.py --runs DIR [CLASS ...]

A class that is not named keeps its table. Runs stay in DIR, and are gone on with where they are.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.adapters.experiment import loads
from iolab.adapters.run import resume, run
from iolab.adapters.run.by_machine import ByMachine
from iolab.adapters.store.read import read
from iolab.base.errors import IolabError
from iolab.base.quantity import change, scale_for
from iolab.domain.summary import Summary, summarise
from iolab.presentation.progress import display
from statistics_simulation import write

if TYPE_CHECKING:
    from iolab.domain.executor import Executor

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "experiments" / "schedulers"
DOCUMENT = ROOT / "docs" / "schedulers.md"
WORKLOADS = ("boot", "database", "compile", "vm-images", "streaming", "small-files", "swap", "containers")
GUEST = "guest:6.1.0-56-cloud"
OF_GUESTS = ("boot",)
DRIVE = "\n[guest.drive_parameters]\nirqmode = 2\ncompletion_nsec = 100000\nhw_queue_depth = 4\n"
"""Of a guest: each request takes 100 microseconds, four at a time."""

ROUNDS_OF_MODELS = 6
MODELS = ("disk", "ssd", "nvme")


@dataclass(frozen=True)
class Class:
    """A class of devices. `machine`: instead of the file's; `left_out`: workloads that it can't do, and why."""

    machine: str | None
    left_out: dict[str, str]


CLASSES = {
    "host": Class(None, {"swap": "swap is a matter of the whole machine"}),
    "guest": Class(GUEST, {name: "an emulated second takes minutes" for name in WORKLOADS if name not in OF_GUESTS}),
    "disk": Class("model:one_disk", {"small-files": "the simulated disk has no mechanism for making files"}),
    "ssd": Class("model:sata_ssd", {"small-files": "the simulated device has no mechanism for making files"}),
    "nvme": Class("model:nvme", {"small-files": "the simulated device has no mechanism for making files"}),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge four schedulers over workloads and devices.")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("classes", nargs="*", choices=[*CLASSES, []], metavar="CLASS")
    given = parser.parse_args()
    with ByMachine() as executor:
        for name in given.classes or CLASSES:
            write({name: table(name, given.runs, executor)}, DOCUMENT)
    return 0


def table(name: str, runs: Path, executor: Executor) -> list[list[str]]:
    """A class's table: a row for each metric of each workload, a cell for each scheduler."""
    rows = [["workload", "metric", "none", "mq-deadline", "kyber", "bfq"]]
    for workload in WORKLOADS:
        if why := CLASSES[name].left_out.get(workload):
            rows.append([workload, f"not measured: {why}", "", "", "", ""])
            continue
        try:
            rows += verdicts(workload, measured(name, workload, runs / name / workload, executor))
        except IolabError as error:
            print(f"!! {name}, {workload}: {error}", file=sys.stderr)
            rows.append([workload, f"refused: {first_words(str(error))}", "", "", "", ""])
    return rows


def measured(name: str, workload: str, path: Path, executor: Executor) -> Summary:
    file = EXPERIMENTS / f"{workload}.toml"
    text = file.read_text()
    if (path / "journal.jsonl").is_file():
        rounds = ROUNDS_OF_MODELS if name in MODELS else None
        resume(path, executor=executor, progress=display(as_json=True), rounds=rounds)
    else:
        machine = CLASSES[name].machine
        if machine == GUEST:
            text = for_guest(text)
        experiment = loads(text, str(file), machine=machine if machine != GUEST else None)
        rounds = ROUNDS_OF_MODELS if name in MODELS else None
        run(experiment, path, executor=executor, progress=display(as_json=True), rounds=rounds)
    return summarise(read(path))


def for_guest(text: str) -> str:
    """The experiment in an emulated machine, where a second takes minutes: shorter, and on a bare drive."""
    text = text.replace("seed = 1\n", f'seed = 1\nmachine = "{GUEST}"\n', 1)
    text = re.sub(r"rounds = \d+", "rounds = 3", text)
    text = re.sub(r'duration = "2s"', 'duration = "200ms"', text)
    text = re.sub(r'file_size = "(\d+)MiB"', lambda found: f'file_size = "{max(8, int(found[1]) // 8)}MiB"', text)
    text = text.replace('size = "1GiB"', 'size = "256MiB"').replace("files = 300", "files = 50")
    if "fs_mark" not in text:
        text = text.replace('filesystem = "ext4"', 'filesystem = "none"')
        text = text.replace("direct = false\n", "")
    return text + DRIVE


def verdicts(workload: str, summary: Summary) -> list[list[str]]:
    rows = []
    for row in summary.rows:
        scale = scale_for(row.unit, [cell.typical for cell in row.cells.values()])
        cells = [workload, f"{row.metric}{f', {scale.suffix}' if scale.suffix else ''}"]
        for setting in ("none", "mq-deadline", "kyber", "bfq"):
            cell = row.cells.get(setting)
            if cell is None or cell.typical is None:
                cells.append("-")
            elif setting not in row.comparisons:
                cells.append(scale.number(cell.typical))
            else:
                judgement = row.comparisons[setting].judgement
                ratio = "" if judgement.ratio is None else f", {change(judgement.ratio)}"
                strong = judgement.verdict if judgement.verdict in ("same", "undecided") else f"**{judgement.verdict}**"
                cells.append(f"{scale.number(cell.typical)} {strong}{ratio}")
        rows.append(cells)
    return rows


def first_words(text: str) -> str:
    line = text.splitlines()[0].split(": ", 1)[-1]
    return line.replace("|", "/")[:120]


if __name__ == "__main__":
    sys.exit(main())
