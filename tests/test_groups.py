"""Control groups of a mix: the arithmetic of entitlement, what is refused, and what the phases come to."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError, MachineError
from iolab.domain import native_types as native
from iolab.domain import simulated_machine
from iolab.domain.trial import ControlGroup, WeightedLoadPhase
from iolab.domain.trial.control_group import entitlements, from_the_top
from iolab.files.experiment import loads
from iolab.machines.host import groups
from iolab.machines.host.site import TargetPlace
from iolab.machines.system import cgroup, mounts
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.undo import UndoJournal

MIX = """
title = "Tenants"
{machine}
{target}
[workloads.tenants]
kind = "mix"
duration = "100ms"
{more}
[workloads.tenants.groups.slice]
io_weight = 300
[workloads.tenants.groups.web]
inside = "slice"
{web}
[workloads.tenants.groups.batch]
inside = "slice"
io_weight = 100
[workloads.tenants.jobs.reads]
group = "web"
jobs = 2
file_size = "1MiB"
[workloads.tenants.jobs.scan]
group = "batch"
file_size = "1MiB"
[settings.a]
{setting}
"""
SCRATCH = '[target]\nkind = "scratch"\nsize = "16MiB"'


def mix(*, web: str = "io_weight = 300", more: str = "", setting: str = "", machine: str = "", **new: str) -> str:
    text = MIX.format(web=web, more=more, setting=setting, machine=machine, target="" if machine else SCRATCH)
    for old, replaced in new.items():
        text = text.replace(old, replaced)
    return text


def main_phase(text: str, setting: str = "a") -> WeightedLoadPhase:
    phase = loads(text, "e.toml").workload_under("tenants", setting).phases(0, 1)[-1]
    assert isinstance(phase, WeightedLoadPhase)
    return phase


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        loads(text, "e.toml")
    return str(caught.value)


TREES = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(1, 1000)), min_size=1, max_size=10)


def tree(drawn: list[tuple[int, int | None]]) -> tuple[dict[str, str | None], dict[str, int | None]]:
    """Each group lies in one of those before it, or in none."""
    parents = {
        str(n): None if n == 0 or above % (n + 1) == n else str(above % (n + 1)) for n, (above, _) in enumerate(drawn)
    }
    return parents, {str(n): weight for n, (_, weight) in enumerate(drawn)}


@given(TREES)
def test_leaves_are_entitled_to_the_product_of_their_shares(drawn: list[tuple[int, int | None]]) -> None:
    parents, weights = tree(drawn)
    shares = entitlements(parents, weights)
    assert set(shares) == set(parents) - set(parents.values())
    assert sum(shares.values()) == pytest.approx(1)
    for leaf, share in shares.items():
        exact, at = Fraction(1), leaf
        while at is not None:
            siblings = [name for name, parent in parents.items() if parent == parents[at]]
            exact *= Fraction(weights[at] or 100, sum(weights[name] or 100 for name in siblings))
            at = parents[at]
        assert share == pytest.approx(float(exact))


@given(TREES, st.integers(2, 7))
def test_one_factor_for_all_weights_changes_no_share(drawn: list[tuple[int, int | None]], factor: int) -> None:
    parents, weights = tree([(above, weight or 100) for above, weight in drawn])
    scaled = {name: (weight or 100) * factor for name, weight in weights.items()}
    assert entitlements(parents, scaled) == pytest.approx(entitlements(parents, weights))


@given(TREES, st.randoms())
def test_groups_are_made_from_the_top(drawn: list[tuple[int, int | None]], random: Any) -> None:
    parents, _ = tree(drawn)
    made = [ControlGroup(name=name, inside=parent) for name, parent in parents.items()]
    random.shuffle(made)
    order = [group.name for group in from_the_top(made)]
    assert sorted(order) == sorted(parents)
    assert all(parent is None or order.index(parent) < order.index(name) for name, parent in parents.items())


def test_jobs_share_as_their_groups_are_entitled() -> None:
    phase = main_phase(mix(setting='scheduler = "bfq"'))
    assert {member.name: (member.weight, member.jobs) for member in phase.members} == {
        "web": (0.75, ["reads.0", "reads.1"]),
        "batch": (0.25, ["scan"]),
    }
    assert phase.controller == "auto"
    assert phase.measures == ("fairness_jain_weighted", "share_of_entitlement", "io_stalled_percent")
    assert WeightedLoadPhase.model_validate_json(phase.model_dump_json()) == phase


def test_two_settings_differ_in_one_key_of_one_group() -> None:
    text = mix(setting='[settings.b]\nworkload = { groups = { web = { io_weight = 900, memory_max = "64MiB" } } }')
    of_a, of_b = ({group.name: group.given for group in main_phase(text, name).groups} for name in ("a", "b"))
    assert of_a["web"] == {"io_weight": 300}
    assert of_b == {**of_a, "web": {"io_weight": 900, "memory_max": 64 << 20}}


def test_a_setting_names_no_group_that_the_mix_has_not() -> None:
    said = refused(mix(setting="[settings.b]\nworkload = { groups = { wep = { io_weight = 900 } } }"))
    assert "settings.b.workload.groups: workload tenants: groups.wep: unknown group; did you mean web?" in said


def test_alone_adds_a_setting_for_each_group_with_jobs() -> None:
    text = mix(more="alone = true", setting='scheduler = "bfq"\n[settings.b]\nscheduler = "none"')
    settings = loads(text, "e.toml").settings
    assert list(settings) == ["a", "a web alone", "a batch alone", "b", "b web alone", "b batch alone"]
    assert settings["b web alone"] == settings["b"]
    alone = main_phase(text, "b batch alone")
    assert [group.name for group in alone.groups] == ["slice", "batch"]
    assert [(member.name, member.weight) for member in alone.members] == [("batch", 1.0)]
    assert alone.job_names == ("scan",)
    assert "share_of_entitlement" not in alone.measures


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (mix(web="io_wieght = 1"), "did you mean io_weight?"),
        (mix(web="io_max = { raed = 1 }"), "did you mean read?"),
        (mix(web="io_weight = 1001"), "from 1 to 1000"),
        (mix(web='io_prio_class = "rt"'), "promote-to-rt"),
        (mix(web="io_latency = 5"), 'a duration such as "2s"'),
        (mix(web='memory_max = "1KiB"'), "at least 1MiB"),
        (mix(web="", more='verify = true'), "each is a process of its own"),
        (mix(more='io_cost_qos = "fast"'), "rpct=95"),
        (mix(more='io_cost_model = "rbps=0"'), "expected whole numbers"),
        (mix(more='only = ["wbe"]'), "did you mean web?"),
        (mix(more="only = []"), "name the groups that run"),
        (mix(more="alone = true", setting='[settings.b]\nworkload.only = ["web"]'), "keep one of them"),
        (mix().replace('group = "web"\n', ""), "each job is in one"),
        (mix().replace('group = "web"', 'group = "slice"'), "in the innermost groups only"),
        (mix().replace('group = "web"', 'group = "batch"'), "no job is in it"),
        (mix().replace("groups.slice]", 'groups.slice]\ninside = "web"'), "would lie inside itself"),
        (mix().replace("jobs.scan", "jobs.slice"), "nor that of a job"),
        (mix().replace('inside = "slice"', 'inside = "slcie"', 1), "did you mean slice?"),
        (mix(setting="[workloads.other]\nduration = \"1s\"", more="alone = true"), "the same groups"),
    ],
)  # fmt: skip
def test_groups_that_make_no_sense_are_refused_on_their_line(text: str, said: str) -> None:
    line = refused(text)
    assert said in line
    assert "e.toml:" in line


def test_a_simulated_machine_has_weights_and_limits_on_one_level_alone(iolab: Any) -> None:
    flat = mix(machine='machine = "model:nvme"', setting='scheduler = "bfq"').replace('inside = "slice"\n', "")
    flat = flat.replace("[workloads.tenants.groups.slice]\nio_weight = 300\n", "")
    nested = mix(machine='machine = "model:nvme"', setting='scheduler = "bfq"')
    assert "groups inside groups" in refused(nested)
    assert "memory_max of a group (web)" in refused(flat.replace("io_weight = 300", 'memory_max = "64MiB"'))
    limited = flat.replace("io_weight = 300", "io_max = { read = 1000000 }")
    assert main_phase(limited).control_groups[0].io_max == {"read": 1_000_000}
    buffered = limited.replace('group = "web"', 'group = "web"\ndirect = false\nread_percent = 50')
    assert "limits of buffered writes (io_max of web)" in refused(buffered)
    polling = limited.replace('group = "web"', 'group = "web"\npoll = true')
    assert "limits of a group that polls (io_max of web)" in refused(polling)
    assert main_phase(flat).controller == "auto"
    protected = flat.replace("io_weight = 300", 'io_latency = "5ms"')
    assert main_phase(protected).control_groups[0].io_latency == 5_000_000
    buffered = protected.replace('group = "web"', 'group = "web"\ndirect = false\nread_percent = 50')
    assert "a latency of buffered writes (io_latency of web)" in refused(buffered)
    idle = flat.replace("io_weight = 300", 'io_prio_class = "idle"')
    made = simulated_machine.with_groups(cast("native.MachineFile", {}), [main_phase(idle)])
    assert made["cgroups"][0]["io_prio_class"] == "idle"
    buffered = idle.replace('group = "web"', 'group = "web"\ndirect = false\nread_percent = 50')
    assert "the class of buffered writes (io_prio_class of web)" in refused(buffered)
    unshared = flat.replace('scheduler = "bfq"', 'scheduler = "none"')
    assert "or set io_cost_model or io_cost_qos" in refused(unshared)
    costed = unshared.replace('kind = "mix"', 'kind = "mix"\nio_cost_qos = "rpct=95 rlat=5000 min=50.5"')
    phase = main_phase(costed)
    made = simulated_machine.with_groups(cast("native.MachineFile", {}), [phase])
    assert made["io_cost"] == {"model": {}, "qos": {"rpct": 95, "rlat": 5000, "min": 50.5}}
    buffered = costed.replace('group = "web"', 'group = "web"\ndirect = false\nread_percent = 50')
    assert "the cost of buffered writes (io_cost of web)" in refused(buffered)


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Mounts one hierarchy of version 1 (cgroup) or 2 (cgroup2), a made-up one."""
    root = tmp_path / "cgroup"
    root.mkdir()
    monkeypatch.setattr(mounts, "MOUNTINFO", tmp_path / "mountinfo")
    monkeypatch.setattr(cgroup, "OWN_GROUPS", tmp_path / "own")
    (tmp_path / "own").write_text("0::/\n")

    def mount(filesystem: str) -> Path:
        line = f"30 23 0:26 / {root} rw shared:4 - {filesystem} none rw,blkio,memory,cpu\n"
        (tmp_path / "mountinfo").write_text(line)
        (root / "cgroup.controllers").write_text("io memory cpu\n")
        return root

    return mount


ALL_KEYS = """io_max = { read = 1000, write_iops = 5 }
io_latency = "10ms"
io_prio_class = "idle"
memory_max = "64MiB"
memory_high = "32MiB"
cpu_weight = 50"""
WRITTEN = {
    "cgroup2": {
        "io.max": "8:0 rbps=1000 wiops=5",
        "io.latency": "8:0 target=10000",
        "io.prio.class": "idle",
        "memory.max": str(64 << 20),
        "memory.high": str(32 << 20),
        "cpu.weight": "50",
    },
    "cgroup": {
        "blkio.throttle.read_bps_device": "8:0 1000",
        "blkio.throttle.write_iops_device": "8:0 5",
        "blkio.prio.class": "idle",
        "memory.limit_in_bytes": str(64 << 20),
        "cpu.shares": "512",
    },
}


@pytest.mark.root
@pytest.mark.parametrize("filesystem", WRITTEN)
def test_each_key_is_written_to_the_file_of_its_version(
    filesystem: str,
    version: Callable[[str], Path],
    tmp_path: Path,
    kernel_tree: Path,
    state_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = version(filesystem)
    keys = (
        ALL_KEYS
        if filesystem == "cgroup2"
        else ALL_KEYS.replace('io_latency = "10ms"\n', "").replace('memory_high = "32MiB"\n', "")
    )
    phase = main_phase(mix(web=keys).replace("io_weight = 300\n", "").replace("io_weight = 100\n", ""))
    monkeypatch.setattr(cgroup.Cgroup, "has", lambda self, file: True)
    device = BlockDevice((8, 0), tmp_path)
    undo = UndoJournal.open()
    made = groups.make(phase, [TargetPlace("target", device)], undo)
    (web,) = made.of["web"]
    assert web.path.parent == made.of["slice"][0].path
    assert {file: web.get(file) for file in WRITTEN[filesystem]} == WRITTEN[filesystem]
    if filesystem == "cgroup2":
        # A made-up file keeps what was written last.
        assert (web.path.parent / "cgroup.controllers").exists() is False
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()  # the kernel's own go with the directory
    assert undo.restore()[1] == []
    undo.close()
    assert not list(root.glob("iolab-*"))


@pytest.mark.root
def test_what_a_kernel_lacks_is_named_with_what_grants_it(
    version: Callable[[str], Path], tmp_path: Path, state_dir: Path, kernel_tree: Path
) -> None:
    version("cgroup")
    with pytest.raises(MachineError, match=r"io_latency of group web needs version 2.*boot with cgroup_no_v1"):
        groups.check([main_phase(mix(web='io_latency = "10ms"'))])
    with pytest.raises(MachineError, match="memory_high of group web needs version 2"):
        groups.check([main_phase(mix(web='memory_high = "10MiB"'))])
    phase = main_phase(
        mix(web='io_prio_class = "idle"').replace("io_weight = 300\n", "").replace("io_weight = 100\n", "")
    )
    groups.check([phase])
    with (
        UndoJournal.open() as undo,
        pytest.raises(MachineError, match=r"no blkio\.prio\.class.*CONFIG_BLK_CGROUP_IOPRIO=y"),
    ):
        groups.make(phase, [TargetPlace("target", BlockDevice((8, 0), tmp_path))], undo)


def test_a_user_is_told_that_groups_need_root(version: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for filesystem in ("cgroup", "cgroup2"):
        version(filesystem)
        with pytest.raises(MachineError, match=r"need root.*sudo iolab run.*systemd-run --user --scope"):
            groups.check([main_phase(mix())])
