"""Where simulated machines run, queue and complete I/O: settings, cells, and what probes and tables say of it."""

import contextlib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import MachineError
from iolab.files.store import RunData, read
from iolab.presentation.table import render
from support.machines import DETAILED, line_of, write_machine
from support.simulated import refusals, run

pytestmark = pytest.mark.usefixtures("state_dir")

EIGHT_CPUS = DETAILED.replace("numa_nodes = 2", "numa_nodes = 4")
READS = """\
machine = "model:small.toml"
rounds = 1
[workloads.reads]
pattern = "sequential"
block_size = "4KiB"
file_size = "4MiB"
layout = false
queue_depth = 2
jobs = 2
engine = "libaio"
operations = 300
[probes]
block = true
cpu = true
counters = true
"""
MATRIX = 'affinity = { application = ["X", "I"], queue = ["X", "A", "I"], completion = ["X", "A", "I"] }\n'
CELLS = {f"cell[A={a},Q={q},C={c}]": (a, q, c) for a, q, c in product("XI", "XAI", "XAI")}


@pytest.fixture(autouse=True)
def small_machine(here: Path) -> None:
    write_machine(here, EIGHT_CPUS)


def value(found: RunData, key: str, setting: str = "default") -> float:
    values: list[float] = found.values(key, "reads")[setting].to_list()
    return values[0]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    """All cells, and rows without one."""
    directory = tmp_path_factory.mktemp("matrix")
    write_machine(directory, EIGHT_CPUS)
    with contextlib.chdir(directory):
        run(f"{READS}[settings.cell]\n{MATRIX}[settings.free]\nrq_affinity = [0, 1]\n", cores=2)
    return read(directory / "out")


def test_bios_and_requests_are_counted_where_the_cell_puts_them(matrix: RunData) -> None:
    for setting, (application, queue, completion) in CELLS.items():
        queued = [value(matrix, f"queue_{side}", setting) for side in ("local", "remote")]
        completed = [value(matrix, f"completions_{side}", setting) for side in ("local", "remote")]
        is_local_queue = queue == "A" or (queue, application) == ("I", "I")
        is_local_completion = completion == "I" or (completion, application) == ("A", "I")
        assert queued == ([300, 0] if is_local_queue else [0, 300]), setting
        assert (completed[1] == 0, completed[0] == 0) == (is_local_completion, not is_local_completion), setting


def test_the_posted_table_is_shown(matrix: RunData) -> None:
    lines = render(matrix, "affinity").splitlines()
    rows = [line.split("|")[0].strip() for line in lines if "|" in line]
    assert [row for row in rows if len(row.split()) == 3][1:] == [" ".join(cell) for cell in CELLS.values()]
    assert "rq=0" in rows
    assert not any(" -" in line for line in lines if line.startswith(("X", "I", "rq")))


def test_cycles_and_the_split_of_cpu_time_are_shown(matrix: RunData) -> None:
    shown = render(matrix, "cycles")
    assert "CPUs: 8, frequency: 1 GHz" in shown
    assert "BACK END BUBBLES" in shown
    for setting in CELLS:
        shares = [value(matrix, f"cpu_{state}_percent", setting) for state in ("user", "kernel", "iowait", "idle")]
        assert sum(shares) == pytest.approx(100, abs=0.01)
        assert value(matrix, "cpu_irq_percent", setting) == 0, "ticks do not see hard interrupts"
        assert 0 < value(matrix, "stalled_cycles", setting) < value(matrix, "cpu_cycles", setting)


def test_what_cpus_take_from_each_other_is_counted(matrix: RunData) -> None:
    here, elsewhere = (value(matrix, "line_transfers_per_io", f"cell[A=I,Q=A,C={part}]") for part in "IX")
    assert elsewhere > here + 10
    assert value(matrix, "hand_over_transfer_cycles_mean", "cell[A=I,Q=A,C=X]") > 0


def test_cells_beyond_a_kernel_are_impossible_and_the_others_run() -> None:
    found = run(f"{READS}[settings.cell]\nkernel = '6.1'\nscheduler = 'none'\n{MATRIX}")
    by_setting = dict(zip(found.trials["setting"], found.trials["status"], strict=True))
    assert {by_setting[setting] for setting, (_, queue, _) in CELLS.items() if queue == "X"} == {"impossible"}
    assert "affinity" in read(found.path).record(0).controls_absent
    shown = render(found, "affinity")
    assert "6.1:" in shown
    assert "impossible here: " in shown


def test_a_run_of_nothing_but_impossible_cells_says_why() -> None:
    text = (
        f"{READS}[settings.s]\nkernel = '2.6.20'\naffinity = {{ application = 'X', queue = 'X', completion = 'X' }}\n"
    )
    with pytest.raises(MachineError, match="none of the trials can be run here"):
        run(text)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("cpus = [8]", "settings.s.cpus: CPU 8 given; the machine has 0 to 7"),
        ("irq_cpus = [8]", "settings.s.irq_cpus: drives.0.interrupt_cpu: "),
        ("rq_affinity = 2", "settings.s.rq_affinity: drives.0.queue.rq_affinity: "),
        ("completion_affinity = 8", "settings.s.completion_affinity: drives.0.affinity.completion: "),
        ("machine = { 'completion.form' = 'pigeon' }", "settings.s.machine.completion.form: "),
        ("machine = { 'cpus.topology.numa_nodes' = 0 }", "settings.s.machine.cpus.topology.numa_nodes: "),
    ],
)
def test_what_these_cpus_do_not_have_is_told_on_its_line(setting: str, said: str) -> None:
    text = f"{READS}[settings.s]\n{setting}\n"
    lines = refusals(text)
    assert lines[0].startswith(f"x.toml:{line_of(text, setting)}: {said}"), lines


def test_knobs_of_then_are_off_with_minus_one() -> None:
    settings = "[settings.off]\ncompletion_affinity = -1\nqueue_affinity = -1\n[settings.on]\ncompletion_affinity = 1\n"
    found = run(f"{READS}{settings}")
    assert value(found, "completions_remote", "on") > 0
    assert value(found, "queue_remote", "off") == value(found, "queue_remote", "on") == 0


def test_interrupts_are_dealt_out_and_tasks_stay_where_they_may_run() -> None:
    found = run(f"{READS}[settings.s]\ncpus = [2]\nirq_cpus = [1, 2]\n")
    model: dict[str, Any] | None = found.record(0).spec.model
    assert model is not None
    assert [drive["interrupt_cpu"] for drive in model["drives"]] == [1, 2]
    seen = found.record(0).phases[0]["probes"]["block"]["devices"]
    assert [device["total"]["queue_remote"] for device in seen] == [0, 0]
    assert sorted(device["total"]["completions_remote"] > 0 for device in seen) == [False, True]
