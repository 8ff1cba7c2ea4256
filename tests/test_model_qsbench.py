"""Kind qsbench on simulated machines: what is refused, what memory it takes, and what becomes of the load of 2003."""

from pathlib import Path
from typing import Any

import polars
import pytest
from iolab.base.errors import InputError
from iolab.domain.trial import SortPhase
from iolab.files.store import read
from iolab.presentation.table import render
from iolab.studies.run import plan
from support.machines import write_machine
from support.simulated import experiment, refusals, run

pytestmark = pytest.mark.usefixtures("state_dir")

GOLDEN = Path(__file__).parent / "golden" / "tables" / "model-qsbench.txt"
MIB = 1 << 20
SWAP = """
[swap]
drive = 0
bytes = 134217728
number_ns = 20
fault_ns = 3000
scan_ns = 200
"""
MACHINE = """\
kernel = "2.4.20"

[cpus]
count = 4
time_slice_ns = 100000000
call_ns = 6000
completion_ns = 6000
page_copy_ns = 44000
jitter = 0.05

[memory]
bytes = 50331648

[[drives]]
device = "scsi_10k_2003"
"""
HEAD = 'machine = "model:small.toml"\nrounds = 2\n'
SORTERS = '[workloads.sorters]\nkind = "qsbench"\n'
KERNELS = '[settings.old]\nkernel = "2.4.20"\n[settings.new]\nkernel = "2.5.59"\n'


@pytest.fixture(autouse=True)
def small_machine(here: Path) -> None:
    write_machine(here, MACHINE + SWAP)


def sorted_by(text: str) -> SortPhase:
    (phase,) = plan.trials(experiment(text), 1, seed=1)[0].phases
    assert isinstance(phase, SortPhase)
    return phase


def values(out: str, metric: str) -> dict[str, list[float]]:
    rows = read(Path(out)).metrics.filter(polars.col("metric") == metric)
    return {setting: part["value"].to_list() for (setting,), part in rows.partition_by("setting", as_dict=True).items()}


def test_a_share_is_of_the_machines_memory_where_no_limit_is_said() -> None:
    found = sorted_by(HEAD + SORTERS)
    assert (found.memory_limit_bytes, found.process_bytes) == (48 * MIB, int(48 * MIB * 0.3) // 4 * 4)
    given = sorted_by(HEAD + SORTERS + 'memory_limit = "32MiB"\nshare = 50\n')
    assert (given.memory_limit_bytes, given.process_bytes) == (32 * MIB, 16 * MIB)


def test_what_the_machine_lacks_is_refused_before_anything_runs(here: Path) -> None:
    assert refusals(HEAD + SORTERS + "cpus = [0]\nswappiness = 10\n") == [
        "x.toml:5: workloads.sorters.cpus: the simulated machine has no mechanism for choosing a process's CPUs",
        "x.toml:6: workloads.sorters.swappiness: the simulated machine has no mechanism for swappiness, which its "
        "kernels of 2003 do not have",
    ]
    write_machine(here, MACHINE)
    (line,) = refusals(HEAD + SORTERS)
    assert line.startswith("x.toml:4: workloads.sorters.kind: ")
    assert line.endswith("takes a machine with [swap]")


def test_a_wrong_swap_table_is_said_with_its_line(here: Path) -> None:
    write_machine(here, MACHINE + SWAP.replace("drive = 0", "drive = 3"))
    (line,) = refusals(HEAD + SORTERS)
    assert line == "small.toml:18: swap.drive: the machine has 1 drive, from 0"


def test_too_little_swap_is_an_error_without_a_traceback() -> None:
    with pytest.raises(InputError, match=r"processes need .* raise .swap. bytes"):
        run(HEAD + SORTERS + 'share = 200\n[settings.plain]\nmachine = { "swap.bytes" = 1048576 }\n', cores=2)


def test_one_runs_ahead_under_2_4_and_all_thrash_under_2_5(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times are a function of machine, experiment and seed: the table is golden."""
    monkeypatch.setenv("COLUMNS", "100")
    run(HEAD + SORTERS + KERNELS, cores=2)
    spread, elapsed = values("out", "elapsed_s_spread"), values("out", "elapsed_s")
    read_back, memory = values("out", "swap_in_bytes"), values("out", "memory_bytes_max")
    assert sum(elapsed["new"]) > 1.2 * sum(elapsed["old"])
    assert sum(read_back["new"]) > 1.5 * sum(read_back["old"])
    assert min(spread["old"]) > 0.3
    assert max(memory["old"] + memory["new"]) <= 48 * MIB
    assert render(read(Path("out")), "qsbench") == GOLDEN.read_text()


def test_a_run_says_what_its_processes_waited_for() -> None:
    run(HEAD + SORTERS, cores=2)
    record: Any = read(Path("out")).record(0)
    (phase,) = record.phases
    assert phase["clock"] == "model"
    assert [group["name"] for group in phase["groups"]] == ["sort.1", "sort.2", "sort.3", "sort.4"]
    assert all(group["faults_minor"] > 3000 for group in phase["groups"])
    assert sum(group["faults_major"] for group in phase["groups"]) > 0
