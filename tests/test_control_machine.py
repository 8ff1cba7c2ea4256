"""Controls of the machine around the disk, on made-up sysfs trees where this machine may have none."""

import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base import cpu_list
from iolab.base.errors import InputError, MachineError
from iolab.domain import control
from iolab.machines.host.control import APPLIERS, Context, apply, power, priority, writeback
from iolab.machines.system import block, interrupt
from iolab.machines.system.block import BlockDevice, device_at, shown
from iolab.machines.system.undo import UndoJournal

CPUS = st.lists(st.integers(0, 200), min_size=1, max_size=20)


@given(CPUS)
def test_cpu_lists_and_masks_are_read_back(cpus: list[int]) -> None:
    wanted = sorted(set(cpus))
    assert cpu_list.parse(cpu_list.text(cpus)) == wanted
    assert cpu_list.of_mask(cpu_list.mask(cpus)) == wanted


@given(st.text(alphabet="0123456789-, x", max_size=12))
def test_any_text_is_a_cpu_list_or_none(text: str) -> None:
    cpus = cpu_list.parse(text)
    assert cpus is None or cpus == sorted(set(cpus))


def test_cpu_lists_and_masks_are_the_kernel_s() -> None:
    assert cpu_list.text([0, 1, 2, 5]) == "0-2,5"
    assert cpu_list.mask([0, 32]) == "1,00000001"
    assert cpu_list.same_mask("00000000,00000003\n", "3")
    assert cpu_list.parse("0-") is None


def made(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def tree(tmp_path: Path, kernel_tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of files: sys/ and proc/."""
    made(
        tmp_path,
        {"proc/interrupts": "", "sys/devices/virtual/workqueue/cpumask": "3\n", "proc/sys/vm/dirty_ratio": "20\n"},
    )
    monkeypatch.setattr(block, "SYS", tmp_path / "sys")
    monkeypatch.setattr(interrupt, "PROC", tmp_path / "proc")
    monkeypatch.setattr(writeback, "VM", tmp_path / "proc/sys/vm")
    monkeypatch.setattr(power, "DMA_LATENCY", tmp_path / "cpu_dma_latency")
    return tmp_path


@pytest.fixture
def undo(state_dir: Path) -> Iterator[UndoJournal]:
    with UndoJournal.open() as journal:
        yield journal


def disk_of(tree: Path, vectors: dict[int, tuple[str, str]]) -> BlockDevice:
    """A PCI disk whose interrupts have these names and CPUs."""
    pci = tree / "sys/devices/pci0000:00/0000:00:02.0"
    directory = pci / "nvme/nvme0/nvme0n1"
    made(directory, {"dev": "259:0\n"})
    (directory / "device").symlink_to(directory.parent)
    (pci / "msi_irqs").mkdir()
    lines = ["           CPU0       CPU1\n"]
    for number, (name, cpus) in vectors.items():
        (pci / "msi_irqs" / str(number)).write_text("msix\n")
        lines.append(f" {number}:          0   12174840  PCI-MSIX-0000:00:02.0   1-edge      {name}\n")
        made(tree / "proc/irq" / str(number), {"smp_affinity_list": cpus, "effective_affinity_list": cpus})
    (tree / "proc/interrupts").write_text("".join([*lines, "NMI:   0   0   Non-maskable interrupts\n"]))
    return block.device_in(directory)


def test_a_disk_s_own_interrupts_are_found_and_moved_and_put_back(tree: Path, state_dir: Path) -> None:
    disk = disk_of(tree, {40: ("nvme0q0", "0-1"), 41: ("nvme0q1", "0"), 42: ("nvme0q2", "1"), 50: ("eth0", "0")})
    (tree / "sys/devices/pci0000:00/0000:00:02.0/msi_irqs/50").unlink()
    assert [one.name for one in interrupt.interrupts_of(disk)] == ["nvme0q1", "nvme0q2"]
    assert interrupt.completing_cpus(disk) == [0, 1]
    with UndoJournal.open() as undo:
        applied = apply({"irq_cpus": [1]}, Context("disk", disk, undo))["irq_cpus"]
        assert applied.before == {"nvme0q1": "0", "nvme0q2": "1"}
        assert applied.applied == "1"
        assert (tree / "proc/irq/41/smp_affinity_list").read_text() == "1"
        assert (tree / "proc/irq/40/smp_affinity_list").read_text() == "0-1", "the admin queue's is left alone"
    assert (tree / "proc/irq/41/smp_affinity_list").read_text() == "0"


def test_an_interrupt_that_the_kernel_manages_says_so(
    tree: Path, undo: UndoJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = disk_of(tree, {41: ("nvme0q1", "0")})

    def refused(path: Path, text: str) -> int:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(Path, "write_text", refused)
    with pytest.raises(MachineError, match="manages this interrupt itself") as raised:
        apply({"irq_cpus": [1]}, Context("disk", disk, undo))
    assert raised.value.exit_status == 3


@pytest.mark.root
@pytest.mark.machine
def test_a_loop_device_has_no_interrupts(loop_device: Path, undo: UndoJournal) -> None:
    with pytest.raises(MachineError, match=r"no interrupts of its own.*workqueue_cpus"):
        apply({"irq_cpus": [0]}, Context("loop", device_at(loop_device), undo))


@pytest.mark.root
@pytest.mark.machine
def test_the_kernel_s_threads_are_kept_on_a_cpu_and_let_go(state_dir: Path) -> None:
    before = interrupt.workqueue_mask().read_text()
    last = max(os.sched_getaffinity(0))
    with UndoJournal.open() as undo:
        applied = apply({"workqueue_cpus": [last]}, Context("any", None, undo))["workqueue_cpus"]
        assert applied.applied == str(last)
        assert cpu_list.of_mask(interrupt.workqueue_mask().read_text()) == [last]
    assert interrupt.workqueue_mask().read_text() == before


def test_threads_cannot_be_kept_on_a_cpu_that_is_not_there(tree: Path, undo: UndoJournal) -> None:
    with pytest.raises(MachineError, match="CPU 9999 is not available"):
        apply({"workqueue_cpus": [9999]}, Context("any", None, undo))
    assert interrupt.workqueue_mask().read_text() == "3\n"


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize(
    ("controls", "other", "other_value"),
    [
        ({"dirty_ratio": 15}, "dirty_bytes", "33554432"),
        ({"dirty_bytes": 32 << 20}, "dirty_ratio", "25"),
        ({"dirty_background_ratio": 4}, "dirty_background_bytes", "8388608"),
        ({"dirty_background_bytes": 8 << 20}, "dirty_background_ratio", "7"),
    ],
)
def test_of_a_pair_of_thresholds_the_one_in_force_comes_back(
    state_dir: Path, controls: dict[str, Any], other: str, other_value: str
) -> None:
    """Setting one zeroes the other, so putting back zero would put back nothing."""
    (name,) = controls
    files = [writeback.VM / name, writeback.VM / other]
    found = {path: shown(path) for path in files}
    try:
        (writeback.VM / other).write_text(other_value)
        with UndoJournal.open() as undo:
            applied = apply(controls, Context("any", None, undo))[name]
            assert applied.before == {other: int(other_value)}
            assert [shown(path) for path in files] == [str(controls[name]), "0"]
            assert undo.restore()[1] == []
        assert [shown(path) for path in files] == ["0", other_value]
    finally:
        for path, value in found.items():
            if value != "0":
                path.write_text(value)
    assert {path: shown(path) for path in files} == found


@pytest.mark.root
@pytest.mark.machine
def test_the_flusher_s_times_have_units(state_dir: Path) -> None:
    files = [writeback.VM / f"dirty_{name}_centisecs" for name in ("expire", "writeback")]
    before = [shown(path) for path in files]
    with UndoJournal.open() as undo:
        applied = apply({"dirty_expire": "2s", "dirty_writeback": "250ms"}, Context("any", None, undo))
        assert [shown(path) for path in files] == ["200", "25"]
        assert [change.applied for change in applied.values()] == ["2s", "250ms"]
    assert [shown(path) for path in files] == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dirty_expire", "15ms"),
        ("dirty_expire", 30),
        ("dirty_bytes", 0),
        ("dirty_bytes", "much"),
        ("dirty_ratio", 101),
        ("bdi_strict_limit", 2),
        ("io_priority", "be/8"),
        ("io_priority", "rt/"),
        ("io_priority", 3),
        ("nice", -21),
        ("nice", True),
        ("irq_cpus", []),
        ("cpu_boost", 1),
        ("cpu_governor", "../x"),
        ("cpu_idle_states_disabled", "C6"),
        ("affinity", {"application": "A", "queue": "A", "completion": "A"}),
        ("affinity", {"application": "X", "queue": "A"}),
        ("affinity", {"application": "X", "queue": "A", "completion": -1}),
    ],
)
def test_nonsense_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        control.validate(name, value)


@pytest.mark.root
@pytest.mark.machine
def test_a_disk_s_share_of_dirty_pages_is_set_and_put_back(loop_device: Path, state_dir: Path) -> None:
    device = device_at(loop_device)
    values = {"bdi_min_ratio": 3, "bdi_max_ratio": 30, "bdi_strict_limit": 1}
    files = {name: device.directory / "bdi" / name.removeprefix("bdi_") for name in values}
    before = {name: shown(path) for name, path in files.items()}
    with UndoJournal.open() as undo:
        apply(values, Context("loop", device, undo))
        assert {name: shown(path) for name, path in files.items()} == {n: str(v) for n, v in values.items()}
    assert {name: shown(path) for name, path in files.items()} == before


@pytest.mark.root
@pytest.mark.machine
def test_priorities_are_inherited_by_what_the_trial_starts_and_given_back(undo: UndoJournal) -> None:
    before = [APPLIERS[name].read(Context("any", None, undo)) for name in ("io_priority", "nice")]
    with ExitStack() as until_end:
        context = Context("any", None, undo, until_end)
        applied = apply({"io_priority": "be/7", "nice": 3}, context)
        assert [change.applied for change in applied.values()] == ["be/7", 3]
        child = subprocess.run(["ionice"], capture_output=True, text=True, check=True).stdout
        assert child.strip() == "best-effort: prio 7"
        assert subprocess.run(["nice"], capture_output=True, text=True, check=True).stdout.strip() == "3"
    assert [APPLIERS[name].read(Context("any", None, undo)) for name in ("io_priority", "nice")] == before


@pytest.mark.parametrize("automatic", [True, False])
def test_a_niceness_that_counts_within_a_session_only_is_said_to(
    undo: UndoJournal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, automatic: bool
) -> None:
    (tmp_path / "autogroup").write_text(f"{int(automatic)}\n")
    monkeypatch.setattr(priority, "AUTOGROUPS", tmp_path / "autogroup")
    monkeypatch.setattr(priority.os, "setpriority", lambda *_: None)
    context = Context("any", None, undo)
    APPLIERS["nice"].apply(context, os.getpriority(os.PRIO_PROCESS, 0) + 1)
    assert [note for note in context.notes if "sched_autogroup_enabled" in note] == context.notes
    assert bool(context.notes) == automatic


def idle_states(tree: Path) -> list[Path]:
    found = []
    for cpu in range(2):
        for number, name in enumerate(("POLL", "C1", "C6")):
            directory = f"sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}"
            made(tree, {f"{directory}/name": f"{name}\n", f"{directory}/disable": "0\n"})
            found.append(tree / directory / "disable")
    return found


def test_idle_states_are_disabled_on_every_cpu_and_enabled_again(tree: Path, state_dir: Path) -> None:
    files = idle_states(tree)
    with UndoJournal.open() as undo:
        values = {"cpu_idle_states_disabled": ["C6"]}
        applied = apply(values, Context("any", None, undo))["cpu_idle_states_disabled"]
        assert (applied.before, applied.applied) == ([], ["C6"])
        assert [shown(path) for path in files] == ["0", "0", "1"] * 2
        with pytest.raises(MachineError, match=r"'C7'; did you mean C6|'C7'; there are"):
            apply({"cpu_idle_states_disabled": ["C7"]}, Context("any", None, undo))
    assert [shown(path) for path in files] == ["0"] * 6


def test_the_wake_up_time_is_demanded_while_the_trial_runs(tree: Path, undo: UndoJournal) -> None:
    idle_states(tree)
    power.DMA_LATENCY.write_bytes(struct.pack("=i", 2_000_000_000))
    with ExitStack() as until_end:
        context = Context("any", None, undo, until_end)
        applied = apply({"cpu_idle_latency_us_max": 20}, context)["cpu_idle_latency_us_max"]
        assert (applied.before, applied.applied) == (2_000_000_000, 20)
        assert str(power.DMA_LATENCY) in _open_files()
    assert str(power.DMA_LATENCY) not in _open_files()


def _open_files() -> list[str]:
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except FileNotFoundError:  # the listing's own
            continue
    return found


def test_the_governor_is_set_on_every_cpu_and_put_back(tree: Path, state_dir: Path) -> None:
    files = []
    for cpu, governor in enumerate(("schedutil", "powersave")):
        directory = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        offered = {f"{directory}/scaling_available_governors": "performance powersave schedutil\n"}
        made(tree, {f"{directory}/scaling_governor": f"{governor}\n", **offered})
        files.append(tree / directory / "scaling_governor")
    with UndoJournal.open() as undo:
        applied = apply({"cpu_governor": "performance"}, Context("any", None, undo))["cpu_governor"]
        assert applied.before == {"cpu0": "schedutil", "cpu1": "powersave"}
        assert [shown(path) for path in files] == ["performance"] * 2
        with pytest.raises(MachineError, match="did you mean performance"):
            apply({"cpu_governor": "performanse"}, Context("any", None, undo))
    assert [shown(path) for path in files] == ["schedutil", "powersave"]


@pytest.mark.parametrize(("file", "on", "off"), [("cpufreq/boost", "1", "0"), ("intel_pstate/no_turbo", "0", "1")])
def test_boost_is_switched_by_whichever_file_there_is(
    tree: Path, state_dir: Path, file: str, on: str, off: str
) -> None:
    path = tree / "sys/devices/system/cpu" / file
    made(path.parent, {path.name: on})
    with UndoJournal.open() as undo:
        applied = apply({"cpu_boost": False}, Context("any", None, undo))["cpu_boost"]
        assert (applied.before, applied.applied) == (True, False)
        assert shown(path) == off
    assert shown(path) == on


@pytest.mark.parametrize(
    ("name", "value", "lacks"),
    [
        ("cpu_governor", "performance", "no control of CPU frequencies"),
        ("cpu_boost", False, "no frequencies that could be boosted"),
        ("cpu_idle_states_disabled", ["C6"], "no CPU idle states"),
        ("cpu_idle_latency_us_max", 10, "no CPU idle states"),
    ],
)
def test_what_a_machine_lacks_is_named(tree: Path, undo: UndoJournal, name: str, value: Any, lacks: str) -> None:
    with pytest.raises(MachineError, match=lacks) as raised:
        apply({name: value}, Context("any", None, undo))
    assert raised.value.exit_status == 3
    assert "WriteFile" not in "".join(path.read_text() for path in (tree / "state" / "undo").glob("*.jsonl"))


SCHEDULERS: dict[str, dict[str, Any]] = {
    "bfq": {
        "slice_idle": ("0", "0"),
        "low_latency": (False, "0"),
        "max_budget": (1024, "1024"),
        "strict_guarantees": (True, "1"),
        "timeout_sync": ("200ms", "200"),
        "fifo_expire_sync": ("60ms", "60"),
        "fifo_expire_async": ("100ms", "100"),
        "back_seek_max": (4096, "4096"),
        "back_seek_penalty": (3, "3"),
    },
    "mq-deadline": {
        "read_expire": ("300ms", "300"),
        "write_expire": ("2s", "2000"),
        "writes_starved": (3, "3"),
        "front_merges": (False, "0"),
        "fifo_batch": (8, "8"),
        "prio_aging_expire": ("5s", "5000"),
    },
    "kyber": {"read_lat_nsec": ("1ms", "1000000"), "write_lat_nsec": ("5ms", "5000000")},
}


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize("name", SCHEDULERS)
def test_each_tunable_takes_its_unit_and_is_put_back(loop_device: Path, state_dir: Path, name: str) -> None:
    device = device_at(loop_device)
    (device.queue / "scheduler").write_text(name)
    directory = device.queue / "iosched"
    try:
        before = {path.name: shown(path) for path in directory.iterdir()}
        for tunable, (given, kernel) in SCHEDULERS[name].items():
            with UndoJournal.open() as undo:
                value = control.validate("scheduler", {"name": name, tunable: given})
                applied = apply({"scheduler": value}, Context("loop", device, undo))["scheduler"]
                assert applied.applied[tunable] == kernel != before[tunable]
            assert {path.name: shown(path) for path in directory.iterdir()} == before, tunable
    finally:
        (device.queue / "scheduler").write_text("none")
