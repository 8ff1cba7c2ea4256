"""Guests on the processor itself: the probe that looks whether KVM answers, and rounds of times. KVM's place is taken
by TCG, and the kernels' by a few bytes that speak as an agent does: KVM works on few machines that run tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_machine import FakeExecutor, record_of
from iolab.base.errors import MachineError
from iolab.domain import control
from iolab.domain.phase_record import probes_of
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.machines.guest import guest, kvm, plan, programs, qemu
from iolab.machines.guest.limit import Deadline
from iolab.machines.guest.modules import Modules
from iolab.presentation.table import render
from support.agents import END, UP, answers
from support.stored import stored_run
from support.tiny_kernels import HANG, image, speaks

try:
    programs.qemu()
except MachineError as absent:
    pytest.skip(f"no guest machine here: {absent}", allow_module_level=True)


@pytest.fixture
def boards(monkeypatch: pytest.MonkeyPatch) -> list[qemu.Board]:
    """The board of each machine that ran; machines with KVM run on TCG."""
    monkeypatch.setitem(qemu._ACCELERATORS, "kvm", ["-accel", "tcg,thread=single"])
    monkeypatch.setattr(programs, "agent", lambda: Path("/dev/null"))
    monkeypatch.setattr(kvm, "LIMIT_S", 30.0)
    kvm.works.clear()
    seen: list[qemu.Board] = []
    run = qemu.run
    monkeypatch.setattr(qemu, "run", lambda board, *args, **words: (seen.append(board), run(board, *args, **words))[1])
    return seen


def test_a_processor_that_answers_is_asked_once_for_each_kernel(tmp_path: Path, boards: list[qemu.Board]) -> None:
    kernel = image(tmp_path / "kernel", speaks([UP, END]))
    for _ in range(3):
        kvm.check(kernel, Deadline.after(60))
    (board,) = boards
    assert board.accelerator == "kvm"
    assert "-icount" not in board.arguments(tmp_path)


def test_a_processor_that_hangs_is_given_up_in_a_line_that_says_what_to_do(
    tmp_path: Path, boards: list[qemu.Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm, "LIMIT_S", 1.0)
    with pytest.raises(MachineError, match="KVM runs no guest here: the guest did not end within 1 s") as error:
        kvm.check(image(tmp_path / "kernel", HANG), Deadline.after(60))
    assert (error.value.where, error.value.remedy) == ("guest.accelerator", 'leave it at "tcg"')


def test_a_processor_that_has_no_kvm_says_so(
    tmp_path: Path, boards: list[qemu.Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(qemu._ACCELERATORS, "kvm", ["-accel", "xen"])
    with pytest.raises(MachineError, match=r"KVM runs no guest here: .*xen"):
        kvm.check(image(tmp_path / "kernel", speaks([UP, END])), Deadline.after(60))


EXPERIMENT = """
machine = "guest:{slow}"
rounds = 5
seed = 3
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
[guest]
accelerator = "kvm"
memory = "128MiB"
[workloads.reads]
duration = "1s"
file_size = "8MiB"
layout = false
[settings.slow]
[settings.fast]
kernel = "{fast}"
"""


class Guests(FakeExecutor):
    """Runs each trial in a guest, whose kernel says what a machine of the setting's speed would."""

    def run(self, trial: Trial, on_progress: Callable[..., Any], should_stop: Callable[[], bool]) -> Record:
        assert trial.guest is not None
        said = record_of(trial, speed=self._faster.get(trial.setting, 1.0)).phases
        made = plan.make(control.amend(trial), Modules(None))
        kernel = Path(trial.guest.kernel)
        kvm.check(kernel, Deadline.after(60))
        image(kernel, speaks(answers(made, said)))
        return guest.execute(trial, on_progress, should_stop)


def test_kernels_are_compared_in_time_by_paired_rounds(tmp_path: Path, boards: list[qemu.Board]) -> None:
    paths = {name: image(tmp_path / name, speaks([UP, END])) for name in ("slow", "fast")}
    run = stored_run(tmp_path / "run", EXPERIMENT.format(**paths), executor=Guests(faster={"fast": 1.2}))
    records = [run.record(trial) for trial in run.trials["trial"].to_list()]
    assert [record.status for record in records] == ["ok"] * 10
    assert not any(probes_of(done) for record in records for done in record.phases)
    assert {record.observed["guest"]["kernel"] for record in records} == {"6.1.0-tiny"}  # type: ignore[index]
    # One boot per kernel to ask, then one per trial, both kernels in each round.
    assert len(boards) == 12
    rounds = {(record.spec.round, record.spec.setting) for record in records}
    assert rounds == {(number, setting) for number in range(5) for setting in ("slow", "fast")}
    assert "faster" in render(run, "plain")
