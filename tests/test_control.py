"""Controls: what they take, what they do to a trial, and what they do to a queue."""

import math
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError, MachineError
from iolab.domain import control
from iolab.domain.control import CONTROLS, Control
from iolab.machines.host.control import APPLIERS, Context, apply
from iolab.machines.system.block import device_at, shown
from iolab.machines.system.undo import UndoJournal
from support.trials import io_trial, scratch_target

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.lists(st.integers(-1, 8), max_size=4),
    st.dictionaries(st.text(max_size=8), st.one_of(st.integers(), st.text(max_size=6)), max_size=3),
)


@given(name=st.sampled_from(sorted(CONTROLS)), value=JUNK)
def test_a_value_is_refused_in_one_line_or_normalized_once(name: str, value: Any) -> None:
    try:
        normalized = control.validate(name, value)
    except InputError as error:
        assert "\n" not in error.what or (isinstance(value, (str, dict)))
        return
    assert control.validate(name, normalized) == normalized


@pytest.mark.parametrize("name", CONTROLS)
def test_each_example_is_valid(name: str) -> None:
    table = tomllib.loads(CONTROLS[name].example_line)
    control.validate(name, table[name])


def test_an_unknown_control_names_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean scheduler"):
        control.validate("schedular", "bfq")


@pytest.mark.parametrize(
    ("value", "normalized"),
    [
        ("bfq", {"name": "bfq"}),
        (
            {"name": "bfq", "slice_idle": 0, "low_latency": False},
            {"name": "bfq", "slice_idle": "0", "low_latency": "0"},
        ),
    ],
)
def test_schedulers_are_normalized_to_what_the_kernel_reads(value: Any, normalized: dict[str, str]) -> None:
    assert control.validate("scheduler", value) == normalized


@pytest.mark.parametrize(
    ("name", "value", "normalized"),
    [("slice_idle", "8ms", "8"), ("slice_idle_us", "8ms", "8000"), ("read_lat_nsec", "2ms", "2000000")],
)
def test_tunables_that_are_times_take_units(name: str, value: str, normalized: str) -> None:
    assert control.validate("scheduler", {"name": "x", name: value})[name] == normalized


def test_a_time_that_the_kernel_s_unit_cannot_say_is_refused() -> None:
    with pytest.raises(InputError, match="multiple of"):
        control.validate("scheduler", {"name": "bfq", "slice_idle": "1500us"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scheduler", {"slice_idle": 8}),
        ("scheduler", {"name": "none", "slice_idle": 8}),
        ("scheduler", "../../etc/passwd"),
        ("scheduler", {"name": "bfq", "../nr_requests": 8}),
        ("nr_requests", True),
        ("nr_requests", 3),
        ("rq_affinity", 3),
        ("read_ahead_kb", -1),
        ("read_ahead_kb", math.inf),
        ("cpus", []),
        ("cpus", "0-"),
        ("drop_caches", "yes"),
        ("filesystem", "ext5"),
        ("mount_options", 7),
    ],
)
def test_nonsense_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        control.validate(name, value)


def test_cpus_are_read_as_the_kernel_writes_lists() -> None:
    assert control.validate("cpus", "0-2,5") == [0, 1, 2, 5]
    assert control.validate("cpus", 1) == [1]
    assert control.validate("cpus", [3, 1, 3]) == [1, 3]


def test_filesystem_controls_override_the_target() -> None:
    trial = io_trial(scratch_target(), controls={"mount_options": "noatime", "filesystem": "xfs", "mkfs_options": "-K"})
    target = control.amend(trial).target
    assert (target.filesystem, target.mkfs_options, target.mount_options) == ("xfs", "-K", "noatime")  # type: ignore[union-attr]


def test_filesystem_controls_need_a_scratch_target(tmp_path: Path) -> None:
    trial = io_trial({"kind": "directory", "path": str(tmp_path)}, controls={"filesystem": "xfs"})
    with pytest.raises(InputError, match="scratch"):
        control.amend(trial)


def test_mount_options_need_a_filesystem() -> None:
    trial = io_trial(scratch_target(filesystem=None), controls={"mount_options": "noatime"})
    with pytest.raises(InputError, match="bare"):
        control.amend(trial)


def test_cpus_and_drop_caches_reach_the_phases() -> None:
    trial = control.amend(io_trial(scratch_target(), controls={"cpus": [0], "drop_caches": True}))
    assert all(group["cpus"] == [0] for phase in trial.phases for group in phase.load["groups"])
    assert [phase.load["drop_caches"] for phase in trial.phases] == [phase.measured for phase in trial.phases]


@pytest.fixture
def context(loop_device: Path, state_dir: Path, leftovers: None) -> Iterator[Context]:
    """Restores when the test is over; `leftovers` checks that."""
    with UndoJournal.open() as undo:
        yield Context("test device", device_at(loop_device), undo)


@pytest.mark.root
def test_each_queue_control_takes_effect_and_is_restored(loop_device: Path, state_dir: Path) -> None:
    device = device_at(loop_device)
    values: dict[str, Any] = {
        "scheduler": {"name": "mq-deadline", "fifo_batch": "8"},
        "nr_requests": 64,
        "rq_affinity": 2,
        "nomerges": 1,
        "read_ahead_kb": 512,
        "max_sectors_kb": 256,
        "rotational": 0,
        "iostats": 0,
        "add_random": 1,
    }
    before = {
        path.name: path.read_text() for path in device.queue.iterdir() if path.is_file() and os.access(path, os.R_OK)
    }
    with UndoJournal.open() as undo:
        applied = apply(values, Context("test device", device, undo))
        assert list(applied) == list(values)
        assert applied["scheduler"].applied["name"] == "mq-deadline"
        assert applied["scheduler"].applied["fifo_batch"] == "8"
        for name in set(values) - {"scheduler"}:
            assert applied[name].applied == str(values[name]) == shown(device.queue / name)
            assert APPLIERS[name].read(Context("test device", device, undo)) == str(values[name])
    after = {name: (device.queue / name).read_text() for name in before}
    assert after == before


@pytest.mark.root
def test_restoring_a_scheduler_restores_what_the_switch_reset(loop_device: Path, state_dir: Path) -> None:
    """The kernel forgets a scheduler's tunables and the queue's depth with each switch."""
    device = device_at(loop_device)
    scheduler, depth = device.queue / "scheduler", device.queue / "nr_requests"
    scheduler.write_text("none")  # a loop device keeps what its last user left
    default_depth = shown(depth)
    try:
        scheduler.write_text("mq-deadline")
        (device.queue / "iosched" / "fifo_batch").write_text("7")
        depth.write_text("99")
        with UndoJournal.open() as undo:
            apply({"scheduler": {"name": "bfq"}}, Context("test device", device, undo))
            assert shown(depth) != "99"
        assert shown(scheduler) == "mq-deadline"
        assert shown(device.queue / "iosched" / "fifo_batch") == "7"
        assert shown(depth) == "99"
    finally:
        scheduler.write_text("none")
        depth.write_text(default_depth)


@pytest.mark.root
def test_an_unknown_tunable_names_the_nearest_one(context: Context) -> None:
    with pytest.raises(InputError, match="did you mean slice_idle"):
        apply({"scheduler": {"name": "bfq", "slice_idl": "0"}}, context)


@pytest.mark.root
def test_an_unknown_scheduler_names_those_there_are(context: Context) -> None:
    with pytest.raises(MachineError, match=r"did you mean bfq.*modprobe"):
        apply({"scheduler": {"name": "bfqq"}}, context)


@pytest.mark.root
@pytest.mark.parametrize(("gone", "instead"), [("cfq", "bfq"), ("noop", "none")])
def test_nobody_is_told_to_load_what_the_kernel_has_no_more(gone: str, instead: str, context: Context) -> None:
    with pytest.raises(MachineError, match=f'{gone} left the kernel with 5.0.*scheduler = "{instead}"') as refused:
        apply({"scheduler": {"name": gone}}, context)
    assert "modprobe" not in str(refused.value)


@pytest.mark.root
def test_a_value_beyond_the_device_s_limit_names_the_limit(context: Context) -> None:
    assert context.device is not None
    limit = shown(context.device.queue / "max_hw_sectors_kb")
    with pytest.raises(MachineError, match=f"at most {limit}"):
        apply({"max_sectors_kb": 10 * int(limit)}, context)


@pytest.mark.root
def test_a_value_that_the_kernel_changes_is_noted(context: Context) -> None:
    applied = apply({"read_ahead_kb": 1001}, context)["read_ahead_kb"]
    assert applied.applied != "1001"
    assert applied.notes == (f"read_ahead_kb: asked for 1001, the kernel made it {applied.applied}",)


def test_without_a_device_there_is_no_queue(state_dir: Path) -> None:
    with pytest.raises(InputError, match="no block device"), UndoJournal.open() as undo:
        apply({"nomerges": 1}, Context("/dev/shm", None, undo))


def test_a_cpu_that_is_not_there_is_refused(state_dir: Path) -> None:
    with pytest.raises(MachineError, match="CPU 9999"), UndoJournal.open() as undo:
        apply({"cpus": [9999]}, Context("x", None, undo))


def test_a_control_amends_the_trial_or_is_applied_to_this_machine() -> None:
    amending = {name for name, one in CONTROLS.items() if type(one).amend is not Control.amend}
    assert set(APPLIERS) <= set(CONTROLS) <= amending | set(APPLIERS)


def test_the_documented_table_has_every_control_once() -> None:
    table = control.settings_table()
    for name in CONTROLS:
        assert table.count(f"| `{name}` |") == 1


def test_the_settings_page_is_up_to_date() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "settings.md").read_text()
    assert control.settings_table() in page, "run: make golden"
