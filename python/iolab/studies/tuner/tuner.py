"""Drives the search for the best setting: each block it asks for is a run, each run's records are its answer.

A run is made, and continued, by `iolab.studies.run`, so that a kill at any instant loses no finished trial and leaves
nothing changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from iolab.base.errors import InputError, InterruptedRun
from iolab.base.plain_text import counted
from iolab.domain.executor import Display, Executor
from iolab.domain.metric import describe
from iolab.domain.record import Record
from iolab.domain.summary import Jobs, summarise
from iolab.domain.trial.trial import SEED_MAX, derive_seed
from iolab.domain.tune.answer import Answer, ConfirmedCandidate, answer
from iolab.domain.tune.keys import Reduction
from iolab.domain.tune.search import Block, Search, signed_log
from iolab.domain.tune.space import Parameter, Point, Space
from iolab.domain.tune.tuning import Budget
from iolab.files.experiment import Experiment
from iolab.files.store.read import RunData, read
from iolab.studies.run import origin, run
from iolab.studies.run import resume as go_on
from iolab.studies.run.bisect import value_of
from iolab.studies.run.origin import Consent
from iolab.studies.tuner.directory import TuneDirectory, names_of
from iolab.studies.tuner.proposer import check_installed, proposer
from iolab.studies.tuner.refusals import RefusalGuard

SURVIVORS = 6
"""So many of the candidates that the simulated machine finds best are measured on the machine itself."""
SURVIVOR_ROUNDS = 5
WINNER, SMALLER, CANDIDATE = "winner", "smaller", "candidate"


@dataclass(frozen=True)
class TunerResult:
    """The state of a tuner. `on_model`: the search on the simulated machine, if there is one."""

    directory: TuneDirectory
    search: Search
    on_model: Search | None
    answer: Answer
    confirmed: Path | None
    left_out: tuple[str, ...]
    """Keys that can't be set on the machine itself."""
    left_out_on_model: tuple[str, ...]


def start(
    experiment: Experiment, out: Path, *, executor: Executor, progress: Display, seed: int | None = None
) -> TunerResult:
    """Makes the directory and searches until the answer stands. InputError for an experiment without [tune]."""
    if experiment.tuning is None:
        raise InputError(
            "the experiment does not name what to tune", where="[tune]", remedy="give it a table [tune]: docs/tuning.md"
        )
    check_installed()
    given = experiment.seed if seed is None else seed
    directory = TuneDirectory.create(out, experiment, secrets.randbelow(SEED_MAX) if given is None else given)
    directory.sign(origin.mark(experiment, directory.seed))
    return _Tuner(directory, executor, progress).complete()


def resume(
    path: Path, *, executor: Executor, progress: Display, consent_of: Callable[[Path], Consent] | None = None
) -> TunerResult:
    """Continues the search where it was, also after a kill. `consent_of` yields who is asked about what is in a
    directory, the search itself and each of its runs, if this user did not make it; without one it is refused."""
    check_installed()
    directory = TuneDirectory.open(path)
    experiment = directory.experiment
    if experiment.machine.acts_here and not origin.is_marked(experiment, directory.seed, directory.origin):
        origin.ask(path, _deeds(directory), None if consent_of is None else consent_of(path))
    directory.sign(origin.mark(experiment, directory.seed))
    return _Tuner(directory, executor, progress, consent_of=consent_of).complete()


def _deeds(directory: TuneDirectory) -> list[str]:
    """What the search does here, a line each."""
    return [
        *origin.deeds(directory.experiment),
        *(f"try values of {one.key}" for one in directory.tuning.space.parameters),
    ]


def found_in(path: Path) -> TunerResult:
    """What the search in a directory has found, without continuing it."""
    return _Tuner(TuneDirectory.open(path), None, None).known()


@dataclass
class _Tuner:
    directory: TuneDirectory
    executor: Executor | None
    progress: Display | None
    refused: dict[str, str] = field(default_factory=dict)
    consent_of: Callable[[Path], Consent] | None = None
    _left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    """By machine the keys that can't be set on it, and why."""

    def complete(self) -> TunerResult:
        try:
            return self._complete()
        except InterruptedRun as stopped:
            what = stopped.what.split("; ")[0]
            raise InterruptedRun(what, remedy=f"continue with: iolab tune --resume {self.directory.path}") from None

    def known(self) -> TunerResult:
        """What the runs say that are there."""
        on_model, survivors, left_out = self._on_model(lambda search, stage: self._replay(search, stage, stage))
        search = self._search(survivors)
        self._replay(search, "search", self.directory.machine)
        self._replay_keys(search)
        return self._found(search, on_model, left_out)

    def _complete(self) -> TunerResult:
        on_model, survivors, left_out = self._on_model(self._searched)
        search = self._search(survivors)
        self._searched(search, "search")
        self._replay_keys(search)
        while (block := search.next()) is not None:
            if block.stage == "keys":
                self._measure_keys(search, block)
            else:
                self._confirm(search, block)
                break
        return self._found(search, on_model, left_out)

    def _on_model(
        self, searched: Callable[[Search, str], None]
    ) -> tuple[Search | None, Sequence[Point] | None, tuple[str, ...]]:
        """The search on the simulated machine: itself, its best candidates, and keys that mean nothing there."""
        tuning = self.directory.tuning
        if tuning.first is None:
            return None, None, ()
        space, left_out = self._space_on(tuning.first)
        search = self._new_search(space, tuning.budget, ())
        searched(search, "model")
        if search.nothing_acts:
            self._report_line(f"no key acts on {tuning.first}: the machine itself is searched without it")
            return search, None, left_out
        return search, search.best(SURVIVORS), left_out

    def _space_on(self, machine: str) -> tuple[Space, tuple[str, ...]]:
        """What can be set on a machine, and the keys that cannot. InputError if none can."""
        space = self.directory.tuning.space
        reasons = {key.key: self._reason_against(key, machine) for key in space.parameters}
        left_out = {key: reason for key, reason in reasons.items() if reason is not None}
        possible = space.without(tuple(left_out))
        if not possible.parameters:
            key, reason = next(iter(left_out.items()))
            raise InputError(f"no key can be set on {machine}; {key}: {reason}", where="[tune.space]")
        self._left_out[machine] = left_out
        return possible, tuple(left_out)

    def _reason_against(self, key: Parameter, machine: str) -> str | None:
        """Why the machine takes no value of the key, beside those that it depends on; None if it takes one."""
        space, reason = self.directory.tuning.space, None
        for beside in product(*([(other, place) for place in sorted(places)] for other, places in key.when.items())):
            for place in range(len(key.values)):
                try:
                    self.directory.of_points(machine, {CANDIDATE: {**dict(beside), key.key: place}}, space)
                except InputError as error:
                    reason = reason or error.what.splitlines()[0].rpartition(f"settings.{CANDIDATE}.")[2]
                    continue
                return None
        return reason

    def _search(self, survivors: Sequence[Point] | None) -> Search:
        tuning = self.directory.tuning
        if survivors is None:
            space, _ = self._space_on(self.directory.machine)
            return self._new_search(space, tuning.budget, ())
        most = min(tuning.budget.trials, SURVIVOR_ROUNDS * (len(survivors) + 1))
        given = tuning.budget
        budget = Budget(most, given.time_s, len(survivors) or 1, given.key_rounds, given.confirm)
        return self._new_search(tuning.space, budget, survivors, only_first=True)

    def _new_search(self, space: Space, budget: Budget, first: Sequence[Point], *, only_first: bool = False) -> Search:
        tuning = self.directory.tuning
        propose = (lambda _known, _count, _seed: []) if only_first else proposer(space, len(tuning.objectives))
        return Search(
            space,
            propose,
            budget,
            objectives=len(tuning.objectives),
            limits=tuple(tuning.limits[key] for key in tuning.metrics[len(tuning.objectives) :]),
            seed=self.directory.seed & 0x7FFFFFFF,
            first=first,
        )

    def _searched(self, search: Search, stage: str) -> None:
        """Goes through what is there of the stage, and on until its budget is used up."""
        machine = self._machine_of(stage)
        self._replay(search, stage, machine)
        begun = self.directory.of_runs(stage)[:1]
        for path in begun:
            self._check_values(path)
        for key, reason in {} if begun else self._left_out.get(machine, {}).items():
            self._report_line(f"{key} is left as it is on {machine}: {reason}")
        while (block := search.next()) is not None and block.stage == "search":
            name = f"{block.number + 1:04d}"
            experiment, points = self._block(search, block, machine)
            if not points:
                search.impossible += 1
                continue
            path = self.directory.path / stage / name
            self._run(experiment, path, derive_seed(self.directory.seed, stage, block.number))
            if block.number == 0:
                self._check_values(path)
            self._take(search, block, points, path)
            self._report_progress(search, stage)

    def _machine_of(self, stage: str) -> str:
        first = self.directory.tuning.first
        return first if stage == "model" and first is not None else self.directory.machine

    def _replay(self, search: Search, stage: str, _machine: str) -> None:
        for number, path in enumerate(self.directory.of_runs(stage)):
            data = read(path)
            points = self.directory.points_of(data, search.space)
            if self.executor is None and not data.state.ended:
                return
            if self.executor is not None and not _is_complete(data):
                self._go_on(path)
            self._take(search, Block("search", number, tuple(points.values())), points, path)

    def _replay_keys(self, search: Search) -> None:
        path = self.directory.path / "keys"
        if (path / "journal.jsonl").is_file():
            points = self.directory.points_of(read(path), search.space)
            # The first mixture has every key of the winner.
            search.reduction = Reduction(search.space, next(iter(points.values())))
            self._take_keys(search, search.reduction.points, path)

    def _block(self, search: Search, block: Block, machine: str) -> tuple[Experiment, dict[str, Point]]:
        """The block's experiment. A candidate that can't be a setting loses the key that is in the way, or is left
        out."""
        names = names_of(block.points, len(search.points) + 1)
        try:
            return self.directory.of_points(machine, names, search.space), dict(names)
        except InputError:
            pass
        possible: dict[str, Point] = {}
        for name, point in names.items():
            found = self._possible(point, machine, search.space)
            if found is not None and found not in possible.values():
                possible[name] = found
            if found != point:
                search.refuse(point)
        return self.directory.of_points(machine, possible, search.space), possible

    def _possible(self, point: Point, machine: str, space: Space) -> Point | None:
        shorter = (space.point({other: place for other, place in point.items() if other != key}) for key in point)
        for candidate in (point, *shorter):
            try:
                self.directory.of_points(machine, {CANDIDATE: candidate}, space)
            except InputError:
                continue
            # A candidate that is left with nothing is the default.
            return candidate or None
        return None

    def _measure_keys(self, search: Search, block: Block) -> None:
        path = self.directory.path / "keys"
        if not (path / "journal.jsonl").is_file():
            names = names_of(block.points, 1)
            experiment = self.directory.of_points(self.directory.machine, names, search.space, own_draws=True)
            self._run(experiment, path, derive_seed(self.directory.seed, "keys", 0))
        elif not _is_complete(read(path)):
            self._go_on(path)
        while True:
            self._take_keys(search, block.points, path)
            following = search.next()
            if following is None or following.stage != "keys":
                return
            self._go_on(path, rounds=following.number + 1)

    def _take_keys(self, search: Search, points: tuple[Point, ...], path: Path) -> None:
        """Every round of the mixtures that is there and was not taken yet."""
        data = read(path)
        settings = [self.directory.baseline, *names_of(points, 1)]
        taken = 0 if search.reduction is None else search.reduction.rounds
        rounds = sorted({event["round"] for event in data.state.finished.values()})
        for round_ in rounds[taken:]:
            arms = self._arms(data, settings, round_)
            search.measured(Block("keys", round_, points), [arm for arm, _ in arms])

    def _confirm(self, search: Search, block: Block) -> None:
        path = self.directory.path / "confirm"
        if (path / "journal.jsonl").is_file():
            if not _is_complete(read(path)):
                self._go_on(path)
        else:
            names = self.finalists(search, block.points)
            experiment = self.directory.of_points(
                self.directory.machine, names, search.space, self.directory.tuning.budget.confirm
            )
            seed = derive_seed(self.directory.seed, "confirm", 0)
            self._run(experiment, path, seed, until_decided=True)
        search.measured(block, ())

    @staticmethod
    def finalists(search: Search, points: Sequence[Point]) -> dict[str, Point]:
        """What fresh rounds measure, by name."""
        if search.objectives == 1:
            return dict(zip((WINNER, SMALLER), points, strict=False))
        return {f"{WINNER}{place}": point for place, point in enumerate(points, 1)}

    def _found(self, search: Search, on_model: Search | None, left_out: tuple[str, ...]) -> TunerResult:
        path = self.directory.path / "confirm"
        fresh: dict[str, ConfirmedCandidate] = {}
        confirmed = None
        if (path / "journal.jsonl").is_file():
            confirmed = path
            data = read(path)
            points = self.directory.points_of(data, search.space)
            tuning = self.directory.tuning
            keys = tuning.metrics
            judged = summarise(data, metrics=keys, jobs=Jobs("none")).comparisons
            for name, point in points.items():
                of_point = {one.metric: one.judgement for one in judged if one.setting == name}
                if all(key in of_point for key in keys):
                    fresh[name] = ConfirmedCandidate(
                        name,
                        point,
                        tuple(of_point[key] for key in tuning.objectives),
                        {key: of_point[key] for key in keys[len(tuning.objectives) :]},
                    )
        kept = answer(fresh, self.directory.tuning)
        here = tuple(self._left_out.get(self.directory.machine, ()))
        return TunerResult(self.directory, search, on_model, kept, confirmed, here, left_out)

    def _take(self, search: Search, block: Block, points: dict[str, Point], path: Path) -> None:
        """The records of a run of one round."""
        arms = self._arms(read(path), [self.directory.baseline, *points], 0)
        taken = Block("search", block.number, tuple(points.values()))
        search.measured(taken, [arm for arm, _ in arms], [seconds for _, seconds in arms])

    def _arms(
        self, data: RunData, settings: Iterable[str], round_: int
    ) -> list[tuple[tuple[float, ...] | None, float]]:
        """The logarithms of the metrics of each setting in a round, and how long the trial took, in seconds."""
        found: dict[str, tuple[tuple[float, ...] | None, float]] = {}
        for event in data.state.finished.values():
            if event["round"] == round_:
                record = data.record(event["trial"])
                found[event["setting"]] = self._arm(record), (event["duration_ns"] or 0) / 1e9
        return [found.get(setting, (None, 0.0)) for setting in settings]

    def _arm(self, record: Record) -> tuple[float, ...] | None:
        logs: list[float] = []
        for key in self.directory.tuning.metrics:
            value, _ = value_of(record, key)
            log = signed_log(value, describe(key).better)
            if log is None:
                return None
            logs.append(log)
        return tuple(logs)

    def _check_values(self, path: Path) -> None:
        """InputError if a trial of the default went well and has no value of what the search is about: nothing could
        be told from any number of such trials."""
        data = read(path)
        for event in data.state.finished.values():
            if event["setting"] != self.directory.baseline or event["status"] != "ok":
                continue
            record = data.record(event["trial"])
            for key in self.directory.tuning.metrics:
                value, reason = value_of(record, key)
                if signed_log(value, describe(key).better) is None:
                    why = reason or f"it is {value}, which no ratio is taken of"
                    raise InputError(
                        f"{key} has no value in a trial of the default: {why}",
                        where="[tune]",
                        remedy="name another metric, or let the workload do more",
                    )

    def _run(self, experiment: Experiment, path: Path, seed: int, *, until_decided: bool = False) -> None:
        executor, progress = self._means()
        watched = RefusalGuard(executor, self.directory.baseline, self.refused, progress)
        run(experiment, path, executor=watched, progress=progress, seed=seed, until_decided=until_decided)

    def _go_on(self, path: Path, rounds: int | None = None) -> None:
        executor, progress = self._means()
        watched = RefusalGuard(executor, self.directory.baseline, self.refused, progress)
        consent = None if self.consent_of is None else self.consent_of(path)
        go_on(path, executor=watched, progress=progress, rounds=rounds, consent=consent)

    def _means(self) -> tuple[Executor, Display]:
        assert self.executor is not None and self.progress is not None, "only who goes on measures"
        return self.executor, self.progress

    def _report_line(self, line: str) -> None:
        if self.progress is not None:
            self.progress.report_line(line)

    def _report_progress(self, search: Search, stage: str) -> None:
        progress = self._means()[1]
        best = search.leading()
        where = f"{stage}: {counted(search.trials_used, 'trial')}, {counted(search.candidates, 'candidate')}"
        if best is not None:
            looks = f"the best looks {best:.1%}" if best > 0 else "none looks"
            where += f"; {looks} better than the default"
        progress.report_look(where)


def _is_complete(data: RunData) -> bool:
    """Every trial is there; one whose file was lost is measured again."""
    return data.state.ended and data.state.finished.keys() <= data.found.trials.keys()
