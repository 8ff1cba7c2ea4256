"""A sweep: experiments on machines, each pair of them a run, all trials of all runs side by side.

Each trial's file is durable, and its run's journal says so, as soon as its record is there, whatever the order. A sweep
that was killed goes on from its directory: what is finished stays, and is not run again.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import iolab
from iolab.adapters.experiment import loads
from iolab.adapters.run import begin
from iolab.adapters.run.goal import Goal
from iolab.adapters.run.loop import Loop, Stopped, stop_flag
from iolab.adapters.run.plan import Plan
from iolab.adapters.run.reconcile import check_resumable, reconcile
from iolab.adapters.store import sweep as store
from iolab.adapters.store.directory import RunDirectory, check_free, default_path
from iolab.adapters.store.journal import Journal, read_journal
from iolab.adapters.store.state import RunState, fold
from iolab.adapters.store.sweep import Cell, SweepDirectory
from iolab.base.errors import InputError, InterruptedRun, IolabError
from iolab.domain.trial.trial import SEED_MAX

if TYPE_CHECKING:
    import threading

    from iolab.adapters.experiment import Experiment
    from iolab.adapters.store.event import SessionEvent
    from iolab.domain.executor import Display, Executor
    from iolab.domain.trial import Trial

CELLS_MAX = 10_000
NAME_LENGTH_MAX = 80


@dataclass(frozen=True)
class Source:
    """An experiment as it was given."""

    path: Path
    text: str
    """An experiment's, in TOML."""


@dataclass(frozen=True)
class Swept:
    """How a sweep ended."""

    path: Path
    runs: int
    impossible: int
    """Cells without a run."""
    trials_by_status: dict[str, int]


def create(
    sources: Sequence[Source], machines: Sequence[str], out: Path | None, *, rounds: int | None, seed: int | None
) -> SweepDirectory:
    """Makes the directory of a sweep with a run for each experiment on each machine, all of one seed, so that every
    machine sees the same offsets.

    Args:
        machines: none: each experiment's own.
        out: None: a new one under ./iolab-runs.

    A cell that cannot be run has its reason. InputError if none can be, or `out` is taken.
    """
    path = out or default_path(sources[0].path.stem if len(sources) == 1 else "sweep")
    check_free(path)
    if len(sources) * max(1, len(machines)) > CELLS_MAX:
        raise InputError(f"{len(sources)} experiments on {len(machines)} machines; {CELLS_MAX:,} cells are the most")
    seed = secrets.randbelow(SEED_MAX) if seed is None else seed
    chosen: list[str | None] = [*machines] or [None]
    cells: list[Cell] = []
    ready: dict[str, tuple[Experiment, Plan, Goal]] = {}
    for source in sources:
        for machine in chosen:
            name = _free(_name(source.path.stem, machine), {cell.run for cell in cells})
            try:
                experiment = loads(source.text, str(source.path), machine=machine)
                _check_simulated(experiment, source.path)
                plan = Plan(experiment, seed)
                plan.check()
                ready[name] = experiment, plan, Goal.at_start(experiment, rounds, until_decided=False)
                why = None
            except InputError as error:
                why = str(error).splitlines()[0]
            described = ready[name][0].machine if why is None else machine or "?"
            cells.append(Cell(experiment=source.path.stem, machine=described, run=name, impossible=why))
    if not ready:
        raise InputError(f"no cell of the sweep can be run; the first: {cells[0].impossible}")

    def make_run(cell: Cell, place: Path) -> None:
        experiment, plan, goal = ready[cell.run]
        begin.create(place, experiment, plan, goal, begin.describe_machine(experiment))

    return store.create(path, cells, make_run, iolab.__version__)


def complete(directory: SweepDirectory, *, executor: Executor, progress: Display) -> Swept:
    """Runs what is missing. InterruptedRun after Ctrl-C and MachineError if the disk or the executor gives up: after
    both, and after a kill, the sweep can be gone on with."""
    with directory.locked():
        return _Sweep(directory, executor, progress).complete()


def _check_simulated(experiment: Experiment, path: Path) -> None:
    if experiment.is_of_host:
        raise InputError(
            "is measured on this machine, and a sweep is of simulated machines and guests",
            where=str(path),
            remedy="name machines with --machine model:NAME, or measure it with iolab run",
        )


def _name(experiment: str, machine: str | None) -> str:
    """`schedulers.one_disk`."""
    of_machine = None if machine is None else Path(machine.partition(":")[2]).name.removesuffix(".toml")
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
    """By the run's name: those of which a trial is under way."""
    owners: dict[int, tuple[Trial, _CellLoop]] = field(default_factory=dict)
    """By the identity of an expected trial: the run that it is of. Trials of two runs may be equal."""
    statuses: Counter[str] = field(default_factory=Counter)

    def complete(self) -> Swept:
        missing: list[tuple[Cell, Path]] = []
        to_come: Counter[str] = Counter()
        finished = 0
        for cell, path in self.directory.runs:
            state = fold(read_journal(path / "journal.jsonl").events)
            finished += len(state.finished)
            if state.ended:
                self.statuses.update(event["status"] for event in state.finished.values())
            else:
                missing.append((cell, path))
                to_come += _to_come(state)
        self.progress.begin(self.directory.path, finished=finished)
        self.progress.planned(to_come)
        try:
            with stop_flag() as stop:
                self.executor.expect(self._coming(missing))
                for cell, path in missing:
                    self._complete(self._opened(cell, path), stop)
                    self._close(cell.run)
        except (Stopped, InterruptedRun, KeyboardInterrupt):
            self._say_everywhere("run_interrupted")
            raise InterruptedRun(
                f"interrupted, {self.directory.path} keeps every trial that was finished",
                remedy=f"go on with: iolab sweep --resume {self.directory.path}",
            ) from None
        except IolabError as error:
            self._say_everywhere("run_failed", error=str(error))
            if error.remedy is None:
                error.remedy = f"go on with: iolab sweep --resume {self.directory.path}"
            raise
        finally:
            self.progress.end()
            for loop in self.open.values():
                loop.journal.close()
        cells = self.directory.cells
        impossible = sum(cell.impossible is not None for cell in cells)
        return Swept(self.directory.path, len(cells) - impossible, impossible, dict(self.statuses))

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
            plan, goal = Plan(experiment, started["seed"]), Goal(state.rounds, until_decided=False)
            if len(events) > 1:  # not just made: an earlier session ended, or was killed, in it
                resumed: SessionEvent = {"event": "run_resumed", "rounds": goal.rounds}
                begin.describe_session(resumed, experiment, plan, None)
                journal.append(**resumed, iolab_version=iolab.__version__)
                reconcile(opened, journal, state, plan, retry_failed=False)
        except BaseException:
            journal.close()
            raise
        return _CellLoop(opened, journal, state, plan, goal, self.executor, self.progress, sweep=self)

    def _close(self, run: str) -> None:
        loop = self.open.pop(run)
        self.statuses.update(event["status"] for event in loop.state.finished.values())
        loop.journal.close()

    def _say_everywhere(self, event: str, **content: object) -> None:
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
