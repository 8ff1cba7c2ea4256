"""The simulated machine beside this kernel, in front of the same device.

A process paces a loop device by a known rule (`benches/paced_device.py`): a disk with one arm, or four servers that
take 2 ms each. This kernel's schedulers run the load of an experiment on that device, and the simulated machine runs
the same experiment with a device of the same rule. Nothing is fitted. *Ours* is the typical error of the model's
figures of a table, as a factor, and *peer* the typical error of the best null predictor, which uses nothing but the
column `none`, the weights, or one constant. The figures themselves are in `published/paced-*.toml`, whose rows this
bench writes; `iolab reproduce paced-arm paced-flat paced-shares` shows them, and [its
page](../model/model-against-kernel.md) explains what disagrees and why.
"""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import paced_device
from iolab.base import data
from result import NotMeasured, Result

ROOT = Path(__file__).parents[1]
DEVICES = {"paced-arm": "paced_arm", "paced-shares": "paced_arm", "paced-flat": "paced_flat"}
"""By published file: the device, of machines/devices/."""
ROUNDS = 2
"""On this kernel, of as many seconds as the experiments say."""
QUICK = [(r'duration( *)= "\d+s"', r'duration\1= "500ms"'), (r'warm_up( *)= "\d+s"', r'warm_up\1= "200ms"')]
Rows = dict[str, dict[str, list[float]]]
"""By table and row."""


def measure(quick: bool) -> list[Result]:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        raise NotMeasured("it takes root, loop devices and /dev/fuse")
    results = []
    for name in DEVICES:
        with tempfile.TemporaryDirectory(prefix="iolab-bench-") as directory:
            measured = on_kernel(name, Path(directory), quick=quick)
            results += compared(name, measured, Path(directory), quick=quick)
        if not quick:
            path = ROOT / "published" / f"{name}.toml"
            path.write_text(with_rows(path.read_text(), measured))
    return results


def on_kernel(name: str, directory: Path, *, quick: bool) -> Rows:
    """What the experiment of a published file gives on this kernel."""
    text = data.experiments()[name].read_text()
    with paced_device.paced(directory, ROOT / "machines" / "devices" / f"{DEVICES[name]}.toml") as paced:
        run(
            on_device(shorter(text) if quick else text, paced.device),
            directory / "kernel",
            rounds=1 if quick else ROUNDS,
        )
    print(f"   {name}: {paced.seen}", file=sys.stderr)
    return rows_of(name, directory / "kernel", quick=quick)


def rows_of(name: str, place: Path, *, quick: bool) -> Rows:
    """The cells of a published file, as the run in `place` measured them."""
    from iolab.files.store import read
    from iolab.studies.reproduction import load
    from iolab.studies.reproduction.run_values import RunValues

    found = RunValues(read(place))
    rows: Rows = {}
    for table in load(name).tables:
        for cell in table.cells:
            if cell.place is None:
                raise RuntimeError(f"{cell.name} of {table.key} has no place in the run")
            value = found.at(cell.place)
            if value.value is None and not quick:
                raise RuntimeError(f"{cell.name} of {table.key}: {value.reason}")
            rows.setdefault(table.key, {}).setdefault(cell.row, []).append(value.value or 0.0)
    return rows


def compared(name: str, measured: Rows, directory: Path, *, quick: bool) -> list[Result]:
    """A line for each table: how far off the model is, and the best null predictor."""
    from iolab.files.store import read
    from iolab.studies.reproduction import compare, load
    from iolab.studies.reproduction.null import best
    from iolab.studies.reproduction.score import QUARTER, typical_factor

    text = data.experiments()[name].read_text()
    run(shorter(text) if quick else text, directory / "model", rounds=1 if quick else None)
    published = load(name)
    tables = [
        replace(
            table,
            cells=[
                replace(cell, published=measured[table.key][cell.row][table.columns.index(cell.column)])
                for cell in table.cells
            ],
        )
        for table in published.tables
    ]
    results = []
    for table, found in zip(
        tables, compare(replace(published, tables=tables), read(directory / "model")).tables, strict=True
    ):
        cells = [one for one in found.compared if one.independent]
        factors = [one.factor for one in cells]
        null = best(table, cells)
        ours = typical_factor(factors) or 0.0
        results.append(
            Result(
                name=f"{name}/{table.key}: {sum(one <= QUARTER for one in factors)} of {len(factors)} within 25 %",
                unit="factor",
                ours=ours,
                peer=null.factor if null else None,
                peer_name=null.words if null else "",
                ratio=ours / null.factor if null else None,
                ratio_min=None,
                ratio_max=None,
                target="",
                met=None,
            )
        )
    return results


def on_device(text: str, device: Path) -> str:
    """The experiment, asked of a device here."""
    text, count = re.subn(r'^machine = "model:[\w-]+"\n', "", text, flags=re.MULTILINE)
    assert count == 1
    return f'{text}\n[target]\nkind = "device"\npath = "{device}"\n'


def shorter(text: str) -> str:
    for before, after in QUICK:
        text = re.sub(before, after, text)
    return text


def run(text: str, out: Path, *, rounds: int | None) -> None:
    path = out.with_suffix(".toml")
    path.write_text(text)
    options = [] if rounds is None else ["--rounds", str(rounds)]
    program = Path(sys.executable).with_name("iolab")
    subprocess.run(
        [program, "run", path, "--out", out, *options], check=True, capture_output=True, preexec_fn=with_priority
    )


def with_priority() -> None:
    """A reader that gets no CPU while others compute would be the host's business, not the scheduler's."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def with_rows(text: str, measured: Rows) -> str:
    """The published file, with these figures in its rows."""
    for table, rows in measured.items():
        lines = "".join(f'"{row}" = [{", ".join(figure(one) for one in values)}]\n' for row, values in rows.items())
        head = f"[tables.{table}.rows]\n"
        before, found, after = text.partition(head)
        assert found, f"no {head}"
        _, blank, rest = after.partition("\n\n")
        text = f"{before}{head}{lines}{blank[1:]}{rest}"
    return text


def figure(value: float) -> str:
    """Four digits that count."""
    return f"{float(f'{value:.4g}'):g}"
