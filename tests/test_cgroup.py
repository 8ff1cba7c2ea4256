"""Control groups of both versions, on made-up hierarchies: where they are found, what is missing, who shares."""

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from iolab.base.errors import MachineError
from iolab.domain.trial import WeightedLoadPhase
from iolab.domain.workload import KINDS
from iolab.domain.workload.iostest import IostestOptions
from iolab.machines.host import groups
from iolab.machines.host.site import TargetPlace
from iolab.machines.system import block, cgroup, io_cost, mounts, swap
from iolab.machines.system.action import DisableController, SwapOff
from iolab.machines.system.action import cgroup as cgroup_action
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.cgroup import Cgroup, Hierarchy
from iolab.machines.system.undo import UndoJournal, restore_abandoned


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Mounts (filesystem, options) at tmp_path/cgroup, as /proc shows it."""
    root = tmp_path / "cgroup"
    root.mkdir()
    table = tmp_path / "mountinfo"
    own = tmp_path / "own"
    monkeypatch.setattr(mounts, "MOUNTINFO", table)
    monkeypatch.setattr(cgroup, "OWN_GROUPS", own)

    def mount(filesystem: str, options: str, own_groups: str = "0::/\n") -> Path:
        table.write_text(f"30 23 0:26 / {root} rw,nosuid shared:4 - {filesystem} none {options}\n")
        own.write_text(own_groups)
        return root

    return mount


def test_version_1_goes_below_this_process_s_own_group(mounted: Callable[..., Path]) -> None:
    root = mounted("cgroup", "rw,blkio", "7:blkio:/mine/here\n0::/\n")
    (root / "mine" / "here").mkdir(parents=True)
    assert cgroup.find("blkio", "io") == Hierarchy(1, "blkio", root, root / "mine" / "here")
    assert cgroup.find("memory", "memory") is None


def test_an_own_group_outside_the_mount_is_no_obstacle(mounted: Callable[..., Path]) -> None:
    root = mounted("cgroup", "rw,blkio", "7:blkio:/not/visible\n")
    assert cgroup.find("blkio", "io") == Hierarchy(1, "blkio", root, root)


def test_version_2_counts_only_with_the_controller(mounted: Callable[..., Path]) -> None:
    root = mounted("cgroup2", "rw")
    (root / "cgroup.controllers").write_text("cpu memory\n")
    assert cgroup.find("blkio", "io") is None
    assert cgroup.find("memory", "memory") == Hierarchy(2, "memory", root, root)


@pytest.mark.root
@pytest.mark.machine
def test_version_2_controllers_are_enabled_and_disabled_again(mounted: Callable[..., Path], state_dir: Path) -> None:
    root = mounted("cgroup2", "rw")
    (root / "cgroup.controllers").write_text("io memory pids\n")
    control = root / "cgroup.subtree_control"
    control.write_text("pids\n")
    with UndoJournal.open() as undo:
        group = cgroup.make(Hierarchy(2, "io", root, root), "test1", undo)
        assert group.path.is_dir()
        assert group.path.name.startswith("iolab-test1-")
        # A made-up file keeps what was written last; the kernel's adds up.
        assert control.read_text() == "+memory"
    assert not group.path.exists()


@pytest.fixture
def delegated(mounted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's group, which is delegated with two controllers, in a hierarchy that has three."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    root = mounted("cgroup2", "rw", "0::/user@1000.service/own.scope\n")
    group = root / "user@1000.service" / "own.scope"
    group.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("io memory cpu\n")
    for place in (group, group.parent):
        (place / "cgroup.controllers").write_text("memory cpu\n")
    for name in ("cgroup.procs", "cgroup.subtree_control"):
        (group / name).touch()
    return group


def test_a_user_has_the_delegated_group_and_its_controllers(
    delegated: Path, mounted: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = cgroup.find("memory", "memory")
    assert memory is not None
    assert memory.parent == delegated
    cgroup.require(memory)
    io = cgroup.find("blkio", "io")
    assert io is not None
    with pytest.raises(MachineError, match=r"no controller io.*Delegate=cpu io memory pids to /etc/systemd/sys"):
        cgroup.require(io)
    (delegated.parent / "cgroup.controllers").write_text("io memory cpu\n")
    with pytest.raises(MachineError, match=r"no controller io.*systemd-run --user --scope -p Delegate=yes"):
        cgroup.require(io)
    (delegated / "cgroup.procs").unlink()
    with pytest.raises(MachineError, match=r"need root, or in version 2 a group that is delegated"):
        cgroup.require(memory)
    # Beside another iolab, which has moved all of the group.
    root = mounted("cgroup2", "rw", "0::/user@1000.service/own.scope/iolab-beside-01234567\n")
    assert cgroup.version_2() == Hierarchy(2, "", root, delegated)


def test_what_runs_in_a_delegated_group_is_moved_beside_and_back(
    delegated: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one process, whose group is in a file, as it is moved back by another process."""
    where = delegated.parent / "where"
    where.write_text(str(delegated))

    def move(pid: int, group: Path) -> None:
        assert (delegated / "cgroup.subtree_control").read_text() in ("", "-memory"), "the kernel's EBUSY"
        where.write_text(str(group))

    def processes_in(group: Path) -> list[int]:
        return [7] if where.read_text() == str(group) else []

    for module in (cgroup, cgroup_action):
        monkeypatch.setattr(module, "move", move)
        monkeypatch.setattr(module, "processes_in", processes_in)
    hierarchy = cgroup.find("memory", "memory")
    assert hierarchy is not None
    with UndoJournal.open() as undo:
        group = cgroup.make(hierarchy, "one", undo)
        assert group.path.parent == delegated
        assert where.read_text().startswith(f"{delegated}/iolab-beside-")
        (delegated / "cgroup.subtree_control").write_text("memory")
        assert undo.restore()[1] == []
    assert where.read_text() == str(delegated)
    assert not list(delegated.glob("iolab-*"))


def test_a_controller_is_disabled_only_where_it_is_enabled(tmp_path: Path) -> None:
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("io memory\n")
    assert DisableController(str(control), "io").undo() is not None
    assert control.read_text() == "-io"
    control.write_text("memory\n")
    assert DisableController(str(control), "io").undo() is None
    assert DisableController(str(tmp_path / "gone"), "io").undo() is None


@pytest.fixture
def disk(tmp_path: Path, kernel_tree: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BlockDevice]:
    monkeypatch.setattr(block, "SYS", tmp_path / "sys")

    def make(scheduler: str) -> BlockDevice:
        queue = tmp_path / "sys" / "block" / "disk0" / "queue"
        queue.mkdir(parents=True, exist_ok=True)
        (queue / "scheduler").write_text(scheduler)
        return BlockDevice((259, 7), queue.parent)

    return make


def weighted(controller: str) -> WeightedLoadPhase:
    """iostest's phase of two groups."""
    options = IostestOptions(groups=2, controller=controller)
    (phase,) = (phase for phase in KINDS["iostest"].phases(options, 0) if phase.measured)
    assert isinstance(phase, WeightedLoadPhase)
    return phase


def refused(controller: str, device: BlockDevice | None) -> str:
    with pytest.raises(MachineError) as caught, UndoJournal.open() as undo:
        groups.make(weighted(controller), [TargetPlace("target", device)], undo)
    return str(caught.value)


def test_what_is_missing_is_said(
    mounted: Callable[..., Path], disk: Callable[..., BlockDevice], state_dir: Path
) -> None:
    root = mounted("cgroup", "rw,blkio")
    assert "needs version 2" in refused("cost", disk("[none] bfq"))
    assert 'scheduler = "bfq"' in refused("bfq", disk("[none] bfq"))
    assert "sudo modprobe bfq" in refused("bfq", disk("[none] kyber"))
    assert "version 1" in refused("auto", disk("[none] bfq"))
    assert "left the kernel with 5.0" in refused("cfq", disk("[none] bfq"))
    assert "block device" in refused("auto", None)
    mounted("cgroup2", "rw")
    (root / "cgroup.controllers").write_text("io\n")
    assert "CONFIG_BLK_CGROUP_IOCOST" in refused("cost", disk("[none] bfq"))
    assert "no io.cost" in refused("auto", disk("[none] bfq"))
    (root / "cgroup.controllers").write_text("cpu\n")
    assert "I/O controller" in refused("auto", disk("[bfq] none"))


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize(
    ("filesystem", "scheduler", "file"),
    [
        ("cgroup", "[bfq] none", "blkio.bfq.weight"),
        ("cgroup", "noop [cfq]", "blkio.weight"),
        ("cgroup2", "[bfq] none", "io.bfq.weight"),
        ("cgroup2", "[none] bfq", "io.weight"),
    ],
)
def test_each_group_gets_its_weight(
    mounted: Callable[..., Path],
    disk: Callable[..., BlockDevice],
    state_dir: Path,
    filesystem: str,
    scheduler: str,
    file: str,
) -> None:
    root = mounted(filesystem, "rw,blkio")
    (root / "cgroup.controllers").write_text("io\n")
    (root / "cgroup.subtree_control").write_text("io\n")
    qos = root / "io.cost.qos"
    qos.write_text("259:0 enable=1 ctrl=auto\n")
    undo = UndoJournal.open()
    made = groups.make(weighted("auto"), [TargetPlace("target", disk(scheduler))], undo)
    assert {name: group.get(file) for name, (group,) in made.of.items()} == {"test1": "100", "test2": "200"}
    enabled = file == "io.weight"
    assert qos.read_text() == ("259:7 enable=1" if enabled else "259:0 enable=1 ctrl=auto\n")
    for (group,) in made.of.values():
        (group.path / file).unlink()  # the kernel's own go with the directory
    assert undo.restore()[1] == []
    undo.close()
    assert not list(root.glob("iolab-*"))
    assert not enabled or qos.read_text() == "259:7 enable=0"


MODEL = "model=linear rbps=174019176 rseqiops=41708 rrandiops=370 wbps=178075866 wseqiops=42705 wrandiops=378"
QOS = "rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 max=10000.00"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Written back whole, the kernel's own parameters would be the user's from then on.
        (f"259:7 enable=0 ctrl=auto {QOS}", "259:7 enable=0 ctrl=auto"),
        (f"259:7 enable=0 ctrl=user {QOS}", f"259:7 enable=0 ctrl=user {QOS}"),
        (f"259:0 enable=1 ctrl=user {QOS}", "259:7 enable=0"),
    ],
    ids=["auto", "user", "another device's"],
)
def test_io_cost_is_set_back_as_it_was(
    disk: Callable[..., BlockDevice], tmp_path: Path, state_dir: Path, before: str, after: str
) -> None:
    qos, model = tmp_path / io_cost.QOS, tmp_path / io_cost.MODEL
    qos.write_text(f"{before}\n")
    model.write_text(f"259:7 ctrl=auto {MODEL}\n")
    with UndoJournal.open() as undo:
        assert io_cost.enable(tmp_path, disk("[none] bfq"), "rrandiops=90000", undo) == []
        assert qos.read_text() == "259:7 enable=1"
        assert model.read_text() == "259:7 ctrl=user model=linear rrandiops=90000"
    assert qos.read_text() == after
    assert model.read_text() == "259:7 ctrl=auto"


def test_a_model_that_the_kernel_guessed_is_noted(
    disk: Callable[..., BlockDevice], tmp_path: Path, state_dir: Path
) -> None:
    (tmp_path / io_cost.QOS).write_text(f"259:7 enable=1 ctrl=auto {QOS}\n")
    (tmp_path / io_cost.MODEL).write_text(f"259:7 ctrl=auto {MODEL}\n")
    with UndoJournal.open() as undo:
        (note,) = io_cost.enable(tmp_path, disk("[none] bfq"), None, undo)
    assert "rrandiops=370" in note
    assert "cost_model" in note
    assert (tmp_path / io_cost.QOS).read_text() == f"259:7 enable=1 ctrl=auto {QOS}\n"


@pytest.mark.parametrize(("number", "named"), [(errno.EROFS, True), (errno.EBUSY, True), (errno.EINVAL, False)])
def test_a_container_that_may_not_make_groups_names_how_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(MachineError, match=os.strerror(number)) as refused:
        Cgroup(tmp_path, 2).set("cgroup.subtree_control", "+io")
    assert ("--cgroupns=host" in str(refused.value.remedy)) == named


def test_buffered_writes_are_a_group_s_own_only_with_both_controllers(tmp_path: Path) -> None:
    (tmp_path / "io.stat").touch()
    assert not Cgroup(tmp_path, 2).owns_buffered_writes
    (tmp_path / "memory.current").touch()
    assert Cgroup(tmp_path, 2).owns_buffered_writes
    assert not Cgroup(tmp_path, 1).owns_buffered_writes


@pytest.mark.root
@pytest.mark.machine
def test_a_dead_run_s_group_goes_with_what_is_left_in_it(state_dir: Path, leftovers: None) -> None:
    hierarchy = cgroup.find("memory", "memory")
    if hierarchy is None:
        pytest.skip("no memory controller here")
    undo = UndoJournal.open()
    group = cgroup.make(hierarchy, "test", undo)
    with subprocess.Popen(["sleep", "60"]) as straggler:
        group.add(straggler.pid)
        undo._file.close()  # as kill -9 does: the lock goes, the file stays
        (line,) = restore_abandoned()
        assert str(group.path) in line
        assert straggler.wait(timeout=60) == -signal.SIGKILL
    assert not group.path.exists()
    assert restore_abandoned() == []


@pytest.mark.root
@pytest.mark.machine
def test_a_dead_run_s_swap_is_taken_off(state_dir: Path, loop_device: Path, leftovers: None) -> None:
    undo = UndoJournal.open()
    undo.before(SwapOff(str(loop_device)))
    swap.make(loop_device)
    swap.on(loop_device)
    assert swap.is_on(loop_device)
    undo._file.close()
    (line,) = restore_abandoned()
    assert str(loop_device) in line
    assert not swap.is_on(loop_device)
    assert SwapOff(str(loop_device)).undo() is None


@pytest.mark.root
@pytest.mark.machine
def test_swap_that_the_kernel_refuses_is_one_line(tmp_path: Path, state_dir: Path) -> None:
    holes = tmp_path / "holes"
    with holes.open("wb") as file:
        file.truncate(1 << 20)
    swap.make(holes)
    with pytest.raises(MachineError, match="takes no swap") as caught:
        swap.on(holes)
    assert str(holes) in str(caught.value)
