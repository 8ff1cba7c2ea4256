"""A sweep: experiments on machines, each pair of them a run.

The runs of this machine come first, a trial at a time with nothing beside it. Then come those of simulated machines and
guests, all trials of all runs side by side, since nothing that runs beside them changes their records. Each trial's
file is durable, and its run's journal reports it, as soon as its record is there, whatever the order. A sweep that was
killed continues from its directory: what is finished stays, and is not run again.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError, InterruptedRun, IolabError
from iolab.base.plain_text import counted
from iolab.base.stop import stop_flag
from iolab.base.version import VERSION
from iolab.domain.executor import Display, Executor
from iolab.domain.machine import HOST
from iolab.domain.trial import Trial
from iolab.domain.trial.trial import SEED_MAX
from iolab.files.experiment import Experiment, loads
from iolab.files.store import sweep_directory as store
from iolab.files.store.directory import RunDirectory, check_free, default_path
from iolab.files.store.event import SessionEvent
from iolab.files.store.journal import Journal, read_journal
from iolab.files.store.state import RunState, fold
from iolab.files.store.sweep_directory import Cell, SweepDirectory
from iolab.machines.ports import port_of
from iolab.studies.run import origin, preflight, remote_hosts, run_start
from iolab.studies.run.goal import Goal
from iolab.studies.run.loop import Loop, RunStopped
from iolab.studies.run.plan import Plan
from iolab.studies.run.reconcile import check_resumable, reconcile

CELLS_MAX = 10_000
NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class Source:
    """An experiment as it was given."""

    path: Path
    text: str
    """An experiment's, in TOML."""


@dataclass(frozen=True)
class CellRequest:
    """A cell as it is asked for. `machine`, `rounds`: instead of the experiment's own."""

    source: Source
    machine: str | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class SweepResult:
    """How a sweep ended."""

    path: Path
    runs: int
    impossible: int
    """Cells without a run."""
    trials_by_status: dict[str, int]


def create(asked: Sequence[CellRequest], out: Path | None, *, seed: int | None) -> SweepDirectory:
    """Makes the directory of a sweep with a run for each cell that is asked for, all of one seed, so that every machine
    sees the same offsets.

    Args:
        out: None: a new one under ./iolab-runs.

    A cell that cannot be run has its reason. InputError if none can be, or `out` is taken.
    """
    stems = {one.source.path.stem for one in asked}
    path = out or default_path(stems.pop() if len(stems) == 1 else "sweep")
    check_free(path)
    if len(asked) > CELLS_MAX:
        raise InputError(f"{counted(len(asked), 'cell')}; {CELLS_MAX:,} are the most")
    seed = secrets.randbelow(SEED_MAX) if seed is None else seed
    cells: list[Cell] = []
    ready: dict[str, tuple[Experiment, Plan, Goal]] = {}
    for one in asked:
        stem = one.source.path.stem
        name = _free(_name(stem, one.machine), {cell.run for cell in cells})
        try:
            experiment = loads(one.source.text, str(one.source.path), machine=one.machine)
            _check_one_boot(experiment, one.source.path)
            plan = Plan(experiment, seed)
            plan.check()
            ready[name] = experiment, plan, Goal.at_start(experiment, one.rounds, until_decided=False)
            why = None
        except InputError as error:
            why = str(error).splitlines()[0]
        described = ready[name][0].machine.name if why is None else one.machine or "?"
        cells.append(Cell(experiment=stem, machine=described, run=name, impossible=why))
    if not ready:
        raise InputError(f"no cell of the sweep can be run; the first: {cells[0].impossible}")

    def make_run(cell: Cell, place: Path) -> None:
        experiment, plan, goal = ready[cell.run]
        run_start.create(
            place, experiment, plan, goal, port_of(experiment.machine).describe(experiment.machine, experiment.target)
        )

    return store.create(path, cells, make_run, VERSION)


def complete(directory: SweepDirectory, *, executor: Executor, progress: Display) -> SweepResult:
    """Runs what is missing. InterruptedRun after Ctrl-C and MachineError if the disk or the executor gives up: after
    both, and after a kill, the sweep can be continued."""
    with directory.locked():
        return _Sweep(directory, executor, progress).complete()


def _check_one_boot(experiment: Experiment, path: Path) -> None:
    if experiment.parts:
        raise InputError(
            "has settings that need several boots", where=str(path), remedy="measure it with iolab run --part"
        )


def _name(experiment: str, machine: str | None) -> str:
    """`schedulers.one_disk`."""
    of_machine = None if machine is None else Path(machine.rpartition(":")[2]).name.removesuffix(".toml")
    name = experiment if of_machine is None else f"{experiment}.{of_machine}"
    return re.sub(r"[^\w.+-]+", "-", name).strip(".-")[:NAME_LENGTH_MAX] or "run"


def _free(name: str, taken: set[str]) -> str:
    copies, free = 1, name
    while free in taken | {store.FILE}:
        copies += 1
        free = f"{name}-{copies}"
    return free


@dataclass
class _Sweep:
    directory: SweepDirectory
    executor: Executor
    progress: Display
    open: dict[str, _CellLoop] = field(default_factory=dict)
    """By the run's name: those with a trial in progress."""
    owners: dict[int, tuple[Trial, _CellLoop]] = field(default_factory=dict)
    """By the identity of an expected trial: the run that it is of. Trials of two runs may be equal."""
    statuses: Counter[str] = field(default_factory=Counter)

    def complete(self) -> SweepResult:
        of_host: list[tuple[Cell, Path]] = []
        side_by_side: list[tuple[Cell, Path]] = []
        to_come: Counter[str] = Counter()
        finished = 0
        for cell, path in self.directory.runs:
            state = fold(read_journal(path / "journal.jsonl").events)
            finished += len(state.finished)
            if state.ended:
                self.statuses.update(event["status"] for event in state.finished.values())
            else:
                (of_host if cell.machine == HOST else side_by_side).append((cell, path))
                to_come += _to_come(state)
        if of_host and isinstance(self.executor, remote_hosts.OnHosts):
            raise InputError(
                f"has trials of this machine, such as those of {of_host[0][0].run}; a cluster's hosts are other ones",
                where=str(self.directory.path),
                remedy=f"run it here: iolab sweep --resume {self.directory.path}",
            )
        self.progress.begin(self.directory.path, finished=finished)
        self.progress.planned(to_come)
        try:
            with stop_flag() as stop:
                for cell, path in of_host:
                    self._complete(self._opened(cell, path), stop)
                    self._close(cell.run)
                self.executor.expect(self._coming(side_by_side))
                for cell, path in side_by_side:
                    self._complete(self._opened(cell, path), stop)
                    self._close(cell.run)
        except (RunStopped, InterruptedRun, KeyboardInterrupt):
            self._append_to_all("run_interrupted")
            raise InterruptedRun(
                f"interrupted, {self.directory.path} keeps every trial that was finished",
                remedy=f"continue with: iolab sweep --resume {self.directory.path}",
            ) from None
        except IolabError as error:
            self._append_to_all("run_failed", error=str(error))
            if error.remedy is None:
                error.remedy = f"continue with: iolab sweep --resume {self.directory.path}"
            raise
        finally:
            self.progress.end()
            for loop in self.open.values():
                loop.journal.close()
        cells = self.directory.cells
        impossible = sum(cell.impossible is not None for cell in cells)
        return SweepResult(self.directory.path, len(cells) - impossible, impossible, dict(self.statuses))

    def _coming(self, missing: Sequence[tuple[Cell, Path]]) -> Iterator[Trial]:
        """All that is missing, run by run, planned as it is taken."""
        for cell, path in missing:
            loop = self._opened(cell, path)
            for trial in loop._coming():
                self.owners[id(trial)] = trial, loop
                yield trial

    def _complete(self, loop: _CellLoop, stop: threading.Event) -> None:
        for number in loop._rounds():
            for trial in loop._missing(number - 1):
                loop.run_until_finished(trial, stop)
        loop.journal.append("run_finished", rounds=loop.goal.rounds)

    def _opened(self, cell: Cell, path: Path) -> _CellLoop:
        if cell.run not in self.open:
            self.open[cell.run] = self._load(RunDirectory.open(path))
        return self.open[cell.run]

    def _load(self, opened: RunDirectory) -> _CellLoop:
        journal = Journal(opened.journal_file)
        try:
            events = read_journal(opened.journal_file).events
            state = fold(events)
            started = check_resumable(opened, state, accept_other_machine=False)
            experiment = loads(
                opened.experiment_text(),
                str(opened.experiment_file),
                machine=started["machine"],
                already_run=True,
                copies=opened.files,
            )
            if experiment.machine.acts_here and not origin.is_ours(experiment, state):
                raise InputError(
                    "has something run here, and was made by somebody else, or changed since",
                    where=str(opened.path),
                    remedy=f"look at it, then continue with: iolab run --resume {opened.path}",
                )
            if experiment.machine.is_of_host:
                preflight.check(experiment, self.progress)
            plan, goal = Plan(experiment, started["seed"]), Goal(state.rounds, until_decided=False)
            if len(events) > 1:  # not just made: an earlier session ended, or was killed, in it
                resumed: SessionEvent = {"event": "run_resumed", "rounds": goal.rounds}
                run_start.describe_session(resumed, experiment, plan, None)
                journal.append(**resumed, iolab_version=VERSION)
                reconcile(opened, journal, state, plan, retry_failed=False)
        except BaseException:
            journal.close()
            raise
        return _CellLoop(opened, journal, state, plan, goal, self.executor, self.progress, sweep=self)

    def _close(self, run: str) -> None:
        loop = self.open.pop(run)
        self.statuses.update(event["status"] for event in loop.state.finished.values())
        loop.journal.close()

    def _append_to_all(self, event: str, **content: Any) -> None:
        for loop in self.open.values():
            with suppress(IolabError):  # the journal's disk may be what failed
                loop.journal.append(event, **content)


@dataclass
class _CellLoop(Loop):
    """The loop of one run of the sweep."""

    sweep: _Sweep | None = None

    def owner(self, trial: Trial) -> Loop:
        assert self.sweep is not None
        return self.sweep.owners.pop(id(trial), (trial, self))[1]


def _to_come(state: RunState) -> Counter[str]:
    """By workload, how many trials the run still has."""
    if state.started is None:
        return Counter()
    each = len(state.started["settings"]) * state.rounds
    found = Counter(dict.fromkeys(state.started["workloads"], each))
    found.subtract(event["workload"] for event in state.finished.values())
    return found
