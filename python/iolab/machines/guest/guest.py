"""Runs a trial in a guest machine: packs it, boots it, makes the record of what its agent reported and its counter
saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from iolab.base.errors import InputError, MachineError
from iolab.base.plain_text import one_line
from iolab.base.quantity import format_bytes
from iolab.base.strict_json import JsonObject
from iolab.domain import control, members_of
from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.domain.phase_record import Observations, PhaseRecord, failures_of
from iolab.domain.probe.instructions import NAME as INSTRUCTIONS
from iolab.domain.record import Fault, Record, impossible, interrupted
from iolab.domain.trial import (
    GuestMachine,
    Phase,
    ScratchTarget,
    SortPhase,
    TimedCommandPhase,
    Trial,
    WeightedLoadPhase,
)
from iolab.machines.guest import commands, counter_output, debug_files, kernel, kvm, plan, qemu, sorts, symbols
from iolab.machines.guest.agent_message import AbsentFileAnswer, Failure, MemberRecords, WriteAnswer
from iolab.machines.guest.describe import observed
from iolab.machines.guest.directory import made_directory
from iolab.machines.guest.kernel_paths import path_of
from iolab.machines.guest.limit import Deadline, GuestEnded
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.reader import AgentReport
from iolab.machines.guest.steps import Plan
from iolab.machines.guest.tree import BuildFailed
from iolab.machines.host import outcome

LEARNING_LIMIT_S = 300.0


def execute(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
    """The trial's record; status `interrupted` when `should_stop` became true, `impossible` when this kernel does not
    build or has not what a control asks for, `failed` when the machine ended early.

    Raises:
        InputError: there is no such kernel, or something of the trial has no meaning there.
        MachineError: this machine cannot run such a guest.
    """
    on_progress(Progress(phase="", doing="preparing"))
    started_unix_ns = time.time_ns()
    assert trial.guest is not None
    try:
        found = kernel.find(trial.guest.kernel, trial.guest.modules, trial.guest.config)
    except BuildFailed as error:
        return impossible(trial, {"kernel": error.what})
    try:
        return _in_time(trial, found, Deadline.after(trial.guest.time_limit_ns / 1e9), on_progress, should_stop)
    except GuestEnded as error:
        return _failed(trial, started_unix_ns, Fault(what=str(error)))


def _in_time(
    trial: Trial, found: kernel.Kernel, deadline: Deadline, on_progress: OnProgress, should_stop: ShouldStop
) -> Record:
    """GuestEnded if the guest is not what it should be, or not done by then."""
    assert trial.guest is not None
    started_unix_ns = time.time_ns()
    if trial.guest.accelerator == "kvm":
        kvm.check(found.image, deadline)
    source = _source(trial, found, deadline)
    amended = control.amend(trial)
    made = plan.make(amended, Modules(found.modules))
    counts = INSTRUCTIONS in trial.probes
    functions = learn(found, deadline, should_stop) if counts else None
    if counts and functions is None:
        return interrupted(trial)
    with _directory(amended) as directory:
        machine = _Machine(amended, made, directory, found, functions, source, deadline, should_stop, on_progress)
        return machine.record(trial, machine.run(), started_unix_ns)


@dataclass
class _Machine:
    """A guest of one trial."""

    trial: Trial
    plan: Plan
    directory: Path
    found: kernel.Kernel
    functions: bytes | None
    """The functions of the kernel outside of its modules; None: nothing is counted."""
    source: debug_files.Source | None
    """None: inlined functions are their callers'."""
    deadline: Deadline
    should_stop: ShouldStop
    on_progress: OnProgress
    _began: float = field(default_factory=time.monotonic)

    @property
    def guest(self) -> GuestMachine:
        assert self.trial.guest is not None
        return self.trial.guest

    def run(self) -> AgentReport:
        initramfs = self.directory / "initramfs"
        initramfs.write_bytes(self.plan.packed())
        board = qemu.Board(
            self.found.image,
            initramfs,
            self.guest.cpus,
            self.guest.memory_bytes,
            " ".join([*self.plan.parameters, self.guest.command_line]),
            _drives(self.trial, self.directory),
            self.guest.accelerator,
            self._counter(),
            self.found.label,
        )
        self.deadline.check("making it", self.found.label)
        return qemu.run(
            board,
            self.directory,
            self.plan.steps,
            deadline=self.deadline,
            should_stop=self.should_stop,
            on_look=self._show_progress,
        )

    def record(self, trial: Trial, report: AgentReport, started_unix_ns: int) -> Record:
        if report.failed is not None:
            return self._failed(trial, report.failed, started_unix_ns)
        if absent := self._absent(report):
            return impossible(trial, absent)
        phases = self._phases(report) if report.ended else []
        faults = [fault for done in phases for fault in outcome.faults(done)]
        failed = any(failures_of(done) for done in phases)
        done_phases = zip(self.plan.phases.values(), phases, strict=False)
        measured = [done for phase, done in done_phases if phase.measured]
        return Record(
            spec=trial,
            status=outcome.status(faults, interrupted=not report.ended, failed=failed),
            started_unix_ns=started_unix_ns,
            ended_unix_ns=time.time_ns(),
            controls_applied=self._applied(report),
            controls_absent={},
            phases=measured,
            observed=observed(trial, report.up, self.found),
            faults=faults,
            notes=[*self._notes(), *(note for done in phases for note in outcome.notes(done))],
        )

    def _notes(self) -> list[str]:
        several = "with several virtual CPUs, times are those of this machine, and counts vary more"
        found = [several] if self.guest.cpus > 1 and self.guest.accelerator == "tcg" else []
        if self.functions is not None and self._has_drive_of_qemu and qemu.completes_at_any_time(self.directory):
            found.append(f"this QEMU completes the I/O of {self.guest.drive} at any time, so that totals vary by boot")
        return found

    def _phases(self, report: AgentReport) -> list[PhaseRecord]:
        """All, laying out too, with what was counted of them."""
        found: list[PhaseRecord] = []
        seen = self._observations(report)
        for number, (step, phase) in enumerate(self.plan.phases.items()):
            answer = cast(Any, report.answer(step))
            done = _record(phase, answer.record)
            if self.functions is not None:
                done = {**done, **seen(number, answer.ops)}
            found.append(done)
        return found

    def _observations(self, report: AgentReport) -> Callable[[int, int], Any]:
        if self.functions is None:
            return lambda number, operations: {}
        try:
            windows = counter_output.windows(counter_output.content_of(self._counts), len(self.plan.phases))
        except ValueError as error:
            why = str(error)
            return lambda number, operations: {"probes_absent": {INSTRUCTIONS: why}}
        table = symbols.parse(self.functions + (report.symbols or b""))

        def observe(number: int, operations: int) -> Any:
            memory, cache = (
                bool(self._counter_options.get("memory")),
                self._counter_options.get("cache_bytes") is not None,
            )
            one = counter_output.observation(
                windows[number],
                table,
                operations,
                memory=memory,
                cache=cache,
                one_cpu=self.guest.cpus == 1,
                source=self.source,
            )
            return {"probes": Observations(instructions=one)}

        return observe

    @property
    def _counts(self) -> Path:
        return self.directory / "counts"

    @property
    def _counter_options(self) -> Mapping[str, Any]:
        """The probe's options."""
        return self.trial.probes.get(INSTRUCTIONS, {})

    def _counter(self) -> dict[str, str] | None:
        """Its arguments; None: nothing is counted."""
        if self.functions is None:
            return None
        chains = bool(self._counter_options.get("chains"))
        path = self.directory / "functions"
        path.write_text(symbols.parse(self.functions).watched(chains=chains))
        options = {"out": str(self._counts), "functions": str(path)}
        options |= (
            {"memory": "on"} if self._counter_options.get("memory") or self._counter_options.get("cache_bytes") else {}
        )
        options |= (
            {"cache": str(self._counter_options["cache_bytes"])} if self._counter_options.get("cache_bytes") else {}
        )
        options |= {"completion": "own"} if self._has_drive_of_qemu else {}
        return options | ({"chains": "on"} if chains else {})

    @property
    def _has_drive_of_qemu(self) -> bool:
        """Whose completions come at a time of the machine's own, if this QEMU lets the counter do that."""
        return self.guest.cpus == 1 and self.guest.drive in qemu.EMULATED

    def _applied(self, report: AgentReport) -> dict[str, JsonObject]:
        found: dict[str, JsonObject] = {}
        for step, name in self.plan.controls.items():
            answer = report.answer(step)
            path = str(self.plan.steps[step]["path"])
            one = found.setdefault(name, {"before": {}, "applied": {}})
            written = answer if isinstance(answer, WriteAnswer) else None
            cast(Any, one["before"])[path] = None if written is None else written.before
            cast(Any, one["applied"])[path] = None if written is None else written.after
        return found

    def _absent(self, report: AgentReport) -> dict[str, str]:
        """The controls that this kernel or drive does not have, and why."""
        answers = ((name, report.answer(step)) for step, name in self.plan.controls.items())
        return {name: answer.absent for name, answer in answers if isinstance(answer, AbsentFileAnswer)}

    def _failed(self, trial: Trial, failed: Failure, started_unix_ns: int) -> Record:
        what = one_line(failed.what)
        if failed.of_plan:
            raise InputError(what, where=f"guest {self.guest.kernel}")
        phase = None if failed.step is None else self.plan.phases.get(failed.step)
        name = None if phase is None else phase.name
        return _failed(trial, started_unix_ns, Fault(what=what, errno=failed.errno, phase=name))

    def _show_progress(self, report: AgentReport) -> None:
        """Which phase: the guest is not disturbed while it works."""
        elapsed_ns = int((time.monotonic() - self._began) * 1e9)
        done = len(report.steps) - 1
        coming = [(step, phase) for step, phase in self.plan.phases.items() if step > done]
        if report.up is None or not coming or coming[0][0] > done + 1:
            self.on_progress(Progress(phase="", doing="preparing", elapsed_ns=elapsed_ns))
            return
        _, phase = coming[0]
        doing: Any = "running" if phase.measured else "laying out"
        self.on_progress(Progress(phase=phase.name, doing=doing, elapsed_ns=elapsed_ns))


def _record(phase: Phase, report: Any) -> PhaseRecord:
    if isinstance(report, MemberRecords):
        return members_of.merged(cast(WeightedLoadPhase, phase), cast(list[PhaseRecord], report.records), [])
    if isinstance(phase, SortPhase):
        return sorts.record(phase, report)
    return commands.record(phase, report) if isinstance(phase, TimedCommandPhase) else cast(PhaseRecord, report)


def learn(found: kernel.Kernel, deadline: Deadline, should_stop: Callable[[], bool] = lambda: False) -> bytes | None:
    """The kernel's functions outside of its modules, read in a guest unless they are known or its build left them; None
    if it was stopped.

    Raises:
        GuestEnded: it did not get to its end.
        MachineError: it does not report them.
    """
    identity = found.identity()
    text = symbols.known(identity)
    if text is None and found.map is not None:
        text = symbols.of_map(found.map)
        symbols.keep(identity, text)
    if text is not None:
        return text
    with made_directory(None) as directory:
        steps = Plan(seed=0)
        steps.add("symbols", all=True)
        initramfs = directory / "initramfs"
        initramfs.write_bytes(steps.packed())
        board = qemu.Board(found.image, initramfs, cpus=1, memory_bytes=512 << 20, name=found.label)
        report = qemu.run(
            board,
            directory,
            steps.steps,
            deadline=deadline.within(LEARNING_LIMIT_S),
            should_stop=should_stop,
            on_look=lambda _: None,
        )
    if not report.is_over:
        return None
    of_kernel = symbols.of_kernel(report.symbols or b"")
    if not of_kernel:
        raise MachineError("the kernel does not list its symbols (KALLSYMS)", where=found.label)
    symbols.keep(identity, of_kernel)
    return of_kernel


def _source(trial: Trial, found: kernel.Kernel, deadline: Deadline) -> debug_files.Source | None:
    """If the probe's option asks for it. InputError: there is no file with debug information."""
    assert trial.guest is not None
    if not trial.probes.get(INSTRUCTIONS, {}).get("inlined"):
        return None
    path = found.debug if trial.guest.debug is None else path_of(trial.guest.debug, "guest.debug")
    source = None if path is None else debug_files.at(path, deadline)
    if source is None:
        raise InputError(
            f"{found.name} has no file with debug information" if path is None else f"no vmlinux at {path}",
            where="guest.debug",
            remedy="give its vmlinux, build a tree with CONFIG_DEBUG_INFO, or leave the probe's option inlined out",
        )
    return source


def _drives(trial: Trial, directory: Path) -> list[qemu.Drive]:
    """Sparse images in the machine's directory; drives of the kernel's own need none."""
    guest, target = trial.guest, trial.target
    assert guest is not None and isinstance(target, ScratchTarget)
    if guest.drive not in qemu.EMULATED:
        return []
    device = qemu.EMULATED[guest.drive]
    found = []
    for number in range(target.drives):
        image = _image(directory / f"drive{number}", target) if plan.reads_what_it_wrote(trial) else target.drive_bytes
        own = {"serial": f"iolab{number}"} if guest.drive == "nvme" else {}
        # A doorbell is then served by the virtual CPU's own thread (counter/completion.c).
        own |= {"ioeventfd": "off"} if guest.drive == "virtio-blk" and guest.accelerator == "tcg" else {}
        own |= {} if target.sector_bytes is None else {"logical_block_size": str(target.sector_bytes)}
        found.append(qemu.Drive(image, device, {**own, **guest.drive_parameters}))
    return found


def _image(image: Path, target: ScratchTarget) -> Path:
    try:
        with image.open("wb") as file:
            file.truncate(target.drive_bytes)
    except OSError as error:
        what = f"no image of {format_bytes(target.drive_bytes)} can be made there: {error.strerror}"
        remedy = "lower [target] size, or name another backing"
        raise MachineError(what, where=str(image.parent), remedy=remedy) from None
    return image


def _directory(trial: Trial) -> Any:
    assert isinstance(trial.target, ScratchTarget)
    return made_directory(trial.target.backing_directory)


def _failed(trial: Trial, started_unix_ns: int, fault: Fault) -> Record:
    return Record(
        spec=trial,
        status="failed",
        started_unix_ns=started_unix_ns,
        ended_unix_ns=time.time_ns(),
        controls_applied={},
        controls_absent={},
        phases=[],
        observed=observed(trial, None, None),
        faults=[fault],
        notes=[],
    )
