"""Runs a trial on the simulated machine that it carries: a function of that machine and of the phases, which have the
seeds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from iolab import _native
from iolab.base.errors import InputError
from iolab.domain import control, native_model, simulated_machine
from iolab.domain import native_types as native
from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.domain.phase_record import Observations, PhaseRecord, failures_of, observed_with
from iolab.domain.probe.probe import ProbeOptions
from iolab.domain.record import Fault, Record, impossible, packed_trace
from iolab.domain.trial import Trial
from iolab.domain.trial.phase import at_once
from iolab.machines.host import load, outcome
from iolab.machines.host.extents import examined
from iolab.machines.model.describe import observed
from iolab.machines.model.phases import ModelPhase, named_files, phases_for_model
from iolab.machines.system.facts import FactAbsent


def execute(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
    """The trial's record; status `interrupted` when `should_stop` became true, `impossible` when this kernel or these
    CPUs have no such cell as the setting `affinity` asks for.

    Raises:
        InputError: there can be no such machine, or it has no mechanism for something in a phase.
    """
    on_progress(Progress(phase="", doing="preparing"))
    simulation = _Simulation(trial, on_progress, should_stop)
    try:
        simulation.run()
    except control.UnsupportedSetting as reason:
        return impossible(trial, {reason.control: str(reason)})
    except RuntimeError as defect:
        simulation.faults.append(Fault(what=f"an invariant of iolab's simulator does not hold: {defect}"))
        simulation.failed = True
    return simulation.record()


@dataclass
class _Simulation:
    """What accumulates towards the record."""

    trial: Trial
    on_progress: OnProgress
    should_stop: ShouldStop
    phases: list[PhaseRecord] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    traces: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    failed: bool = False
    started_unix_ns: int = field(default_factory=time.time_ns)

    @property
    def machine(self) -> native.MachineFile:
        assert self.trial.model is not None, "a trial of a simulated machine carries it"
        return self.trial.model

    def run(self) -> None:
        amended = control.amend(self.trial)
        phases = [phase for phase in amended.phases if isinstance(phase, ModelPhase)]
        assert len(phases) == len(amended.phases), "an experiment with other phases is refused before it runs"
        model = _switched_on(simulated_machine.with_groups(self.machine, phases), self.trial.controls)
        so_far: list[ModelPhase] = []
        for group in at_once(phases):
            first = group[0]
            so_far += group
            records = load.records_of(load.follow(first, partial(self._started, model, group), self))
            if first.measured:
                records[0] = self._with_all_probes(records[0], model, so_far)
                for name, content in model.take_traces().items():
                    self.traces[f"{first.name}.{name}"] = packed_trace(content)
                records[1:] = [{**done, **observed_with(first.name, self.trial.probes)} for done in records[1:]]
                self.phases += records
            for done in records:
                self.faults += outcome.faults(done)
                self.notes += outcome.notes(done)
                self.failed |= bool(failures_of(done) if first.measured else self.faults)
                self.interrupted |= done["stopped"]
            self.interrupted |= self.should_stop()
            if self.interrupted or self.failed:
                return
        model.check()

    def record(self) -> Record:
        return Record(
            spec=self.trial,
            status=outcome.status(self.faults, interrupted=self.interrupted, failed=self.failed),
            started_unix_ns=self.started_unix_ns,
            ended_unix_ns=time.time_ns(),
            controls_applied={name: {"before": None, "applied": value} for name, value in self.trial.controls.items()},
            controls_absent={},
            phases=self.phases,
            observed=observed(self.trial),
            faults=self.faults,
            notes=self.notes,
            traces=self.traces,
        )

    def _started(self, model: _native.Model, group: Sequence[ModelPhase]) -> _native.Model:
        phase = group[0]
        probes = self.trial.probes if phase.measured else {}
        native = {name: _for_model(name, options) for name, options in probes.items() if name != "extents"}
        try:
            model.start(json.dumps({**phases_for_model(group), "probes": native}))
        except ValueError as error:
            refusal = simulated_machine.InvalidMachine.from_native(error)
            where = ": ".join(filter(None, [f"phase {phase.name}", refusal.key]))
            raise InputError(refusal.what, where=where) from None
        return model

    def _with_all_probes(self, done: PhaseRecord, model: _native.Model, phases: list[ModelPhase]) -> PhaseRecord:
        """With what the probe `extents` saw, which looks when the phase is over, and why `io_cost` saw nothing."""
        if not self.trial.probes.keys() & {"extents", "io_cost"}:
            return done
        seen: Observations = {**done.get("probes", {})}
        absent = {**done.get("probes_absent", {})}
        if (options := self.trial.probes.get("extents")) is not None:
            try:
                seen["extents"] = examined(named_files(phases, self.machine), options, model.extents)
            except FactAbsent as reason:
                absent["extents"] = str(reason)
        if "io_cost" in self.trial.probes and "io_cost" not in seen:
            absent["io_cost"] = "io.cost is off: the machine has no io_cost, the mix no io_cost_qos or io_cost_model"
        return {**done, "probes": seen, "probes_absent": absent}


def _for_model(probe: str, options: ProbeOptions) -> ProbeOptions:
    """A probe's options as the model has them (crates/model/stack/src/model/observation.rs). Its ring buffer needs no
    size: the model's own look at its queues loses nothing, and it takes every stack."""
    if probe == "switches":
        return {"interval_ns": options["interval_ns"]}
    if probe != "block":
        return options
    form = options["trace"]
    return {"interval_ns": options["interval_ns"], "trace": None if form == "no" else form}


def _switched_on(machine: native.MachineFile, controls: Mapping[str, Any]) -> _native.Model:
    try:
        return native_model.switched_on(machine)
    except ValueError as error:
        text = simulated_machine.InvalidMachine.from_native(error)
        if text.is_of_cell and "affinity" in controls:
            reason = control.UnsupportedSetting(text.what)
            reason.control = "affinity"
            raise reason from None
        raise InputError(str(text), where="the simulated machine") from None
