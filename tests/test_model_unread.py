"""A setting of a simulated machine that nothing there reads is refused on its line, with what would read it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.base.toml import parse
from iolab.domain import simulated_machine
from iolab.domain.control import CONTROLS, Control
from iolab.domain.machine import Model
from iolab.domain.simulated_machine import InvalidMachine
from iolab.files import machine_file
from iolab.files.experiment import Experiment
from support.command_line import CommandLine
from support.machines import line_of
from support.simulated import experiment, refusals

pytestmark = pytest.mark.usefixtures("state_dir", "here")

OF_EACH_KIND = {"one_disk", "eva-raid5", "nvme", "nfs-rdma-client", "vm-xfs", "quad-xeon", "ia64-4way", "bfq-groups"}
"""A machine each with a disk, an array, flash, a mount, XFS, memory, CPUs in detail and weighted groups."""
EACH_MACHINE = pytest.mark.parametrize(
    "machine",
    [pytest.param(name, marks=[] if name in OF_EACH_KIND else pytest.mark.long) for name in machine_file.names()],
)

DIRECT = '[workloads.w]\nduration = "1s"\nfile_size = "1MiB"\n'
BUFFERED = '[workloads.w]\nkind = "tiobench"\nthreads = 1\nfile_size = "1MiB"\ndirect = false\n'
FILES = '[workloads.w]\nkind = "fs_mark"\nfiles = 10\nfile_size = "0"\nsync = "none"\n'
SORT = '[workloads.w]\nkind = "qsbench"\nprocesses = 2\n'
NFS = """\
[workloads.w]
kind = "iozone"
threads = 1
file_size = "64KiB"
record_size = "1KiB"
tests = ["write"]
direct = true
"""


def text_of(machine: str, workload: str, setting: str) -> str:
    return f'machine = "model:{machine}"\nrounds = 1\n{workload}[settings.s]\n{setting}\n'


@pytest.mark.parametrize(
    ("machine", "workload", "setting", "said"),
    [
        ("nfs-rdma-client", NFS, 'scheduler = "none"', "the machine has no drives"),
        ("nfs-rdma-client", NFS, 'kernel = "6.1"', "it is read when a load's reads and writes are buffered"),
        ("one_disk", DIRECT + "direct = true\n", "read_ahead_kb = 64", "a load's reads are buffered"),
        ("sandy-bridge", FILES, "read_ahead_kb = 64", "a load's reads are buffered"),
        ("quad-xeon", SORT, 'machine = { "memory.dirty_percent" = 30 }', "a load's writes are buffered"),
        ("known-latency", DIRECT, "rotational = 1", "I/O goes to that drive under bfq or a scheduler before blk-mq"),
        ("one_disk", DIRECT, 'machine = { "title" = "other" }', "under the workload w, or any other"),
    ],
)
def test_what_nothing_reads_is_refused_on_its_line(machine: str, workload: str, setting: str, said: str) -> None:
    text = text_of(machine, workload, setting)
    line = refusals(text)[0]
    assert line.startswith(f"x.toml:{line_of(text, setting)}: settings.s.{setting.split()[0]}"), line
    assert said in line


NOTHING = "nothing in this machine reads it"
WEIGHTED = '[workloads.w]\nkind = "iostest"\njob = "drr"\ngroups = 2\nfile_size = "1MiB"\n'
UNREAD_OPTIONS = [
    (DIRECT, 'workload = { engine = "libaio" }', "settings.s.workload.engine", NOTHING),
    (DIRECT, "workload = { fixed_buffers = false }", "settings.s.workload.fixed_buffers", NOTHING),
    (DIRECT + "registered_files = false\n", "", "workloads.w.registered_files", NOTHING),
    (DIRECT + "poll = true\n", "", "workloads.w.poll", "polling takes queue.io_poll = 1"),
    (DIRECT + 'engine = ["io_uring", "libaio"]\n', "", "workloads.w.engine", NOTHING),
    (DIRECT + "drop_caches = true\n", "", "workloads.w.drop_caches", "caches are dropped for buffered I/O alone"),
    (DIRECT, "drop_caches = true", "settings.s.drop_caches", "w goes past the page cache, so nothing reads it"),
    *(
        (WEIGHTED, f'scheduler = "{name}"', "workloads.w.weights", "nothing enforces weights here: take scheduler bfq")
        for name in ("none", "mq-deadline", "kyber")
    ),
]


@pytest.mark.parametrize(("workload", "setting", "where", "said"), UNREAD_OPTIONS)
def test_an_option_of_a_workload_that_nothing_reads_is_refused(
    workload: str, setting: str, where: str, said: str
) -> None:
    (line,) = refusals(text_of("known-latency", workload, setting))
    assert line.partition(": ")[2].startswith(f"{where}: "), line
    assert said in line


@pytest.mark.parametrize(
    ("workload", "setting"),
    [
        (DIRECT + 'engine = "libaio"\n', ""),
        (DIRECT, 'workload = { engine = "psync" }'),
        (DIRECT + "poll = true\n", 'scheduler = "none"\nmachine = { "drives.0.queue.io_poll" = 1 }'),
        (WEIGHTED, 'scheduler = "bfq"'),
        (WEIGHTED + 'controller = "none"\n', 'scheduler = "none"'),
        (WEIGHTED + "weights = [100, 100]\n", 'scheduler = "none"'),
    ],
)
def test_an_option_that_is_read_or_compares_nothing_is_taken(workload: str, setting: str) -> None:
    assert experiment(text_of("known-latency", workload, setting)).settings


def test_the_command_line_says_so_in_one_line_and_runs_nothing(iolab: CommandLine) -> None:
    text = text_of("nfs-rdma-client", NFS, "nr_requests = 64")
    (iolab.cwd / "x.toml").write_text(text)
    outcome = iolab("run", "x.toml", "--out", "out", status=2)
    outcome.assert_one_clear_line(2, "settings.s.nr_requests", "the machine has no drives")
    assert not (iolab.cwd / "out").exists()


def test_what_is_read_of_one_drive_is_given_of_all() -> None:
    text = text_of("ia64-4way", DIRECT + "direct = true\n", "nr_requests = 64")
    assert experiment(text).settings


KINDS = {"direct": DIRECT + "direct = true\n", "buffered": BUFFERED, "fs_mark": FILES, "qsbench": SORT, "nfs": NFS}


@EACH_MACHINE
def test_every_control_is_read_or_refused_on_every_machine(machine: str) -> None:
    """Whatever a control changes of a machine, a component of it reads that under the workload, or the setting is
    refused: nothing passes of which the model says that nobody reads it."""
    lines = {control.name: control.example_line for control in CONTROLS.values() if changes_a_model(control)}
    refused, passed = 0, 0
    for workload in KINDS.values():
        found, taken = taken_by(machine, workload, [*lines.values()])
        refused += len(lines) - len(taken)
        passed += len(taken)
        for number in taken:
            name = [*lines][number]
            assert found is not None
            assert is_impossible(found, f"s{number}") or is_read(found, name, f"s{number}"), f"{name} under {workload}"
    assert refused > 20, "no machine runs all kinds of workloads"
    assert passed > 0 or machine == "nfs-rdma-client", "a mount reaches no drive"


@pytest.mark.parametrize("kind", KINDS)
@EACH_MACHINE
def test_every_key_of_every_machine_is_read_or_refused(machine: str, kind: str) -> None:
    """Only the first element of each array is tried."""
    keys = dict(leaves(machine_file.read(f"model:{machine}", Path()).table))
    assert len(keys) > 10
    lines = [f'machine = {{ "{key}" = {json.dumps(value)} }}' for key, value in keys.items()]
    found, taken = taken_by(machine, KINDS[kind], lines)
    for number in taken:
        assert found is not None
        assert is_read(found, "machine", f"s{number}"), f"{[*keys][number]} under {kind}"


def changes_a_model(control: Control) -> bool:
    value = parse(f"value = {control.example}\n", "example").values["value"]
    return bool(control.on_model(control.validate_for_model(value), drives=1))


def taken_by(machine: str, workload: str, lines: list[str]) -> tuple[Experiment | None, list[int]]:
    """An experiment with a setting for each line, s0 and so on, that the machine takes, and their numbers."""
    left = dict(enumerate(lines))
    while left:
        settings = "".join(f"[settings.s{number}]\n{line}\n" for number, line in left.items())
        try:
            return experiment(f'machine = "model:{machine}"\nrounds = 1\n{workload}{settings}'), [*left]
        except InputError as error:
            refused = {int(number) for number in re.findall(r"settings\.s(\d+)[.:]", str(error))}
            if not refused:
                assert "workloads.w" in str(error), "the workload is refused, whatever is set"
                break
            left = {number: line for number, line in left.items() if number not in refused}
    return None, []


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """The values of a machine's file by dotted path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        yield from leaves(value[0], (*path, "0")) if value else ()
    else:
        yield ".".join(path), value


@pytest.mark.parametrize("given", ["{ swap = {} }", '{ "hz" = 100, memory = { } }'])
def test_an_empty_table_that_changes_nothing_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="an empty table changes nothing"):
        experiment(text_of("one_disk", DIRECT, f"machine = {given}"))


def is_impossible(found: Experiment, setting: str = "s") -> bool:
    """A cell of `affinity` that the kernel cannot do: its trials say so, as on a host."""
    assert isinstance(found.machine, Model)
    try:
        simulated_machine.check(found.machine.under[setting])
    except InvalidMachine as error:
        return error.is_of_cell
    return False


def is_read(found: Experiment, name: str, setting: str = "s") -> bool:
    assert isinstance(found.machine, Model)
    [workload] = found.workloads
    table = found.machine.under[setting]
    places = len(table["drives"]) + len(table.get("mounts", ()))
    phases = found.workload_under(workload, setting).phases(seed=0, devices=places)
    changed = CONTROLS[name].on_model(found.settings[setting][name], len(table["drives"]))
    keys = [".".join(key) for key in changed or ()]
    return set(machine_file.unread(table, phases, keys)) != set(keys)
