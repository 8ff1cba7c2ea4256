"""What each kind of machine makes of an experiment's file: its target, itself under each setting, what it can't do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.experiment import CompiledWorkload
from iolab.domain.machine import Guest, Host, Machine, Model, kind_of
from iolab.domain.probe import Probes
from iolab.domain.trial import DrivesTarget, Target
from iolab.domain.trial.trial import Kind
from iolab.files.experiment import filesystems, guest, layers, model
from iolab.files.experiment.options import default_target_kind
from iolab.files.experiment.setting import Setting
from iolab.files.experiment.target import read_target
from iolab.files.experiment.workloads import Workload


@dataclass(frozen=True)
class ExperimentText:
    """The file, and the machine that it is read for."""

    machine: str
    given_by: str | None
    """The option of the command line that names the machine; None: the file does."""
    values: TomlTable
    problems: Problems

    def table(self, name: str) -> TomlTable:
        """Empty if the file has none."""
        found = self.values.get(name)
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class ExperimentPlan:
    """What is to be measured."""

    settings: list[Setting]
    workloads: list[Workload]
    under: Mapping[tuple[str, str], CompiledWorkload]
    """(workload, setting) -> the workload, if the setting changes it."""
    probes: Mapping[str, Probes]
    """By setting."""
    already_run: bool
    """What the machine can do was checked before."""


class Reader(Protocol):
    """Reads an experiment for a kind of machine; what is wrong is noted."""

    def __init__(self, written: ExperimentText) -> None: ...

    @property
    def target(self) -> Target | None:
        """Where I/O goes; None with what is wrong noted."""

    def probes(self, given: Mapping[str, Probes], settings: Sequence[Setting]) -> Mapping[str, Probes]:
        """The probes that are on, by setting: those that the file or the command line gives, and the machine's own."""

    def machine(self, asked: ExperimentPlan) -> Machine | None:
        """The machine under each setting; None with what is wrong noted."""


class _HostReader:
    def __init__(self, written: ExperimentText) -> None:
        self._written = written
        self.target = read_target(written.table("target"), default_target_kind(), written.problems)

    def probes(self, given: Mapping[str, Probes], settings: Sequence[Setting]) -> Mapping[str, Probes]:
        return given

    def machine(self, asked: ExperimentPlan) -> Host:
        problems = self._written.problems
        guest.check_none(asked.probes, asked.settings, problems)
        model.check_no_traces(asked.probes, asked.settings, problems)
        _check_filesystems(self.target, asked, problems)
        if self.target is not None:
            layers.check(self.target, asked.settings, problems)
        return Host(target_by_default=not self._written.table("target"))


class _GuestReader:
    def __init__(self, written: ExperimentText) -> None:
        self._written = written
        self.target = read_target(written.table("target"), "scratch", written.problems)

    def probes(self, given: Mapping[str, Probes], settings: Sequence[Setting]) -> Mapping[str, Probes]:
        return guest.counting(given, self._written.table("probes"), self._written.table("guest"), settings)

    def machine(self, asked: ExperimentPlan) -> Guest:
        written, problems = self._written, self._written.problems
        guest.check_probes(asked.probes, asked.settings, problems)
        guests = guest.machines_under(written.machine, written.table("guest"), asked.settings, problems)
        guest.check(self.target, asked.settings, asked.workloads, asked.under, problems)
        under = {} if self.target is None else layers.check(self.target, asked.settings, problems)
        guest.check_drives(under, guests, problems)
        if not asked.already_run:
            guest.check_kernels(guests, problems)
        _check_filesystems(self.target, asked, problems)
        return Guest(written.machine, guests)


class _ModelReader:
    def __init__(self, written: ExperimentText) -> None:
        self._written, problems = written, written.problems
        if "target" in written.values and kind_of(written.values.get("machine")) == "model":
            problems.add(("target",), "a simulated machine takes no [target]: files lie on its drives")
        self._file = model.read_machine(written.machine, problems, given_by=written.given_by)
        self.target = None if self._file is None else DrivesTarget(devices=self._file.places)

    def probes(self, given: Mapping[str, Probes], settings: Sequence[Setting]) -> Mapping[str, Probes]:
        return given

    def machine(self, asked: ExperimentPlan) -> Model | None:
        if self._file is None:
            return None
        problems = self._written.problems
        machines = model.machines_under(asked.settings, self._file, problems)
        if not asked.already_run:
            model.check_probes(asked.probes, machines, asked.settings, problems)
            model.check(self._file, machines, asked.settings, asked.workloads, asked.under, problems)
        under = {setting: changed.table for setting, changed in machines.items()}
        return Model(self._written.machine, self._file.table, under, self._file.copies)


def _check_filesystems(target: Target | None, asked: ExperimentPlan, problems: Problems) -> None:
    if target is not None:
        filesystems.check(target, asked.workloads, asked.settings, asked.under, problems)


READERS: Mapping[Kind, type[Reader]] = {"host": _HostReader, "guest": _GuestReader, "model": _ModelReader}
